"""Changes of a kernel's tables to those that are built into an instruction."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from isamap.explain.verify import Candidate
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Buffer, Contents, Expr, Kernel, Literal
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.laws.enumerate import enumerate_matchings
from isamap.mapping.matching import Mapping, Needle
from isamap.mapping.needles.needles import Needles, roots
from isamap.mapping.refused import MOST
from isamap.mapping.tiles.allowed import compare_table
from isamap.mapping.tiles.tile import tiles


def tabled(kernel: Kernel, number: int, needle: Needle, index: Needles) -> Iterator[Candidate]:
    """Yield the kernel with a table that holds what an instruction has built in.

    Of the ways to match the one that leaves most elements as they are.
    """
    statement = zero_based(bind_extents(kernel).statements[number])
    found: list[tuple[int, Buffer]] = []
    for candidate, operands in roots(statement, index):
        if candidate != needle:
            continue
        matchings, _, _ = enumerate_matchings(
            statement, needle, operands, MOST, permissions=kernel.permissions
        )
        for mapping in (mapping for matching in matchings for mapping in tiles(matching)):
            for name, expr in operands:
                table = needle.operand(name).contents
                if table is not None and (made := _table(kernel, mapping, name, expr)):
                    found.append(made)
    if not found:
        return
    changed, buffer = min(found, key=lambda one: one[0])
    assert buffer.contents is not None
    texts = ", ".join(literal.text for literal in buffer.contents.elements)
    buffers = tuple(buffer if b.name == buffer.name else b for b in kernel.buffers)
    text = f"make {buffer.name} hold {texts}" if changed else ""
    yield Candidate(text, "different", replace(kernel, buffers=buffers), number)


def _table(kernel: Kernel, mapping: Mapping, name: str, expr: Expr) -> tuple[int, Buffer] | None:
    """Return a table of the kernel as an instruction has it, and how many elements are others."""
    if not isinstance(expr, Access) or expr.contents is None:
        return None
    compared = compare_table(mapping, name, expr)
    if isinstance(compared, str):
        return None
    shape = expr.contents.shape
    elements = list(expr.contents.elements)
    at = np.atleast_1d(np.ravel_multi_index(np.broadcast_arrays(*compared.where), shape))
    own = np.broadcast_to(compared.own, at.shape)
    wanted: dict[int, str] = {}
    for place, text in zip(at.tolist(), own.tolist(), strict=True):
        if wanted.setdefault(place, text) != text or text == "nothing":
            return None
    for place, text in wanted.items():
        elements[place] = Literal(text, elements[place].dtype)
    changed = sum(
        value(a) != value(b) for a, b in zip(elements, expr.contents.elements, strict=True)
    )
    contents = Contents(shape, tuple(elements))
    return changed, replace(kernel.buffer(expr.buffer), contents=contents)
