"""Units that both calls and what makes their operands need: blocks make little of what is dear."""

from dataclasses import replace

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.shape import block_of, read_shape
from isamap.text.load import parse_module

TEXT = """\
kernel product { const A : s8[256, 480]  const B : s8[256, 480]  inout C : s32[480, 480]
  C[i, j] += s32(A[k, i]) * s32(B[k, j]) }
"""


def rows(unit: str | None) -> int:
    """Return the rows of a block, where elements come to all lanes on a unit."""
    machine = load_hardware("hexagon_hvx")
    entries = (
        replace(entry, units={unit: entry.throughput})
        if unit is not None and entry.name == "vsplat4_s8"
        else entry
        for entry in machine.entries
    )
    machine = replace(machine, entries=tuple(entries))
    result = map_kernel(parse_module(TEXT).kernels[0], machine, Options(prove=False, rewrite=()))
    own = result.schedule.statements[0]
    assert own.mapping.matching.needle.name == "vrmpy_s8"
    return block_of(read_shape(own.mapping), own.levels)["i"]


def test_operands_made_on_the_unit_of_the_calls_are_fewer() -> None:
    assert rows("mpy") == rows(None)
    assert rows(None) < rows("any")
