"""Tables of a kernel: arrays of C constants."""

from collections.abc import Mapping

from isamap.emit import literals, names
from isamap.emit.liveness import buffers_used
from isamap.lower.nodes import LoweredKernel, Node

_WIDTH = 90


def table_lines(
    lowered: LoweredKernel, nodes: tuple[Node, ...], alignments: Mapping[str, int]
) -> list[str]:
    """Return the definition of each table that some nodes read."""
    used = buffers_used(nodes)
    lines: list[str] = []
    for array in lowered.arrays:
        if array.contents is None or array.name not in used:
            continue
        aligned = alignments.get(array.name, 1)
        place = f"_Alignas({aligned}) " if aligned > array.dtype.bytes else ""
        elements = [literals.memory_text(literal) for literal in array.contents.elements]
        c_type = literals.memory_type(array.dtype)
        lines.append(
            f"static {place}const {c_type} {names.buffer(array.name)}[{len(elements)}] = {{"
        )
        lines += _wrapped(elements)
        lines.append("};")
    return lines


def _wrapped(elements: list[str]) -> list[str]:
    lines, line = [], ""
    for element in elements:
        if len(line) + len(element) > _WIDTH:
            lines.append(line.rstrip())
            line = ""
        line = f"{line or '    '}{element}, "
    return [*lines, line.rstrip()]
