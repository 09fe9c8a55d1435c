"""What no vectors of a machine compute is left to those that compilers make of plain loops."""

from dataclasses import replace
from itertools import pairwise

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.text.load import parse_module

SHIFTED = "in A : u8[64, 300] in B : u8[300] values 0..7 out Y : u8[64, 300] Y[i, j] = {}"
REQUEST = "#pragma omp simd"


def mapped(text: str, vector: int = 64) -> Result:
    """Return the kernel of some statements mapped to a machine whose compiler has such vectors."""
    machine = load_hardware("x86_avx512")
    assert machine.toolchain is not None
    machine = replace(machine, toolchain=replace(machine.toolchain, vector=vector))
    kernel = parse_module(f"kernel k {{ {text} }}").kernels[0]
    return map_kernel(kernel, machine, Options(prove=False, rewrite=()))


def steps(result: Result) -> dict[str, int]:
    (own,) = result.schedule.statements
    return {level.variable: level.step for level in own.levels}


@pytest.mark.parametrize("value", ["A[i, j] << B[j]", "A[i, 299 - j] << B[j]"])
def test_a_statement_of_single_elements_has_plain_loops(value: str) -> None:
    result = mapped(SHIFTED.format(value))
    assert steps(result) == {"i": 1, "j": 1}
    assert result.source is not None
    lines = result.source.functions.splitlines()
    inner = [line for before, line in pairwise(lines) if REQUEST in before]
    assert len(inner) == 1
    assert "i_j" in inner[0]


def test_without_vectors_of_the_compiler_blocks_are_unrolled() -> None:
    result = mapped(SHIFTED.format("A[i, j] << B[j]"), vector=0)
    assert max(steps(result).values()) > 1
    assert result.source is not None
    assert REQUEST not in result.source.functions


@pytest.mark.parametrize(
    "text",
    [
        "in A : u8[99, 64] in B : u8[99] values 0..7 out Y : u8[64, 99] Y[i, j] = A[j, i] << B[j]",
        "in A : u8[64, 8] in B : u8[8] values 0..7 out Y : u8[64, 8] Y[i, j] = A[i, j] << B[j]",
        "in A : u8[64] in B : u8[64] values 0..7 inout Y : u8[] Y[] += A[i] << B[i]",
        "in A : f64[640] out Y : f64[640] Y[i] = tanh(A[i])",
    ],
    ids=["from rows far apart", "of short rows", "of a sum", "of functions"],
)
def test_loops_that_vectors_do_not_shorten_are_not_asked_for(text: str) -> None:
    result = mapped(text)
    assert result.source is not None
    assert REQUEST not in result.source.functions
    assert steps(result) == steps(mapped(text, vector=0))


def test_estimates_count_the_calls_of_plain_loops_and_nothing_for_going_on() -> None:
    """A compiler's vectors are no figures of the machine: what has some of its own is not left to
    them for an estimate."""
    plain, unrolled = (
        mapped(SHIFTED.format("A[i, j] << B[j]"), vector).estimate for vector in (64, 0)
    )
    assert plain.cycles == pytest.approx(unrolled.cycles, rel=0.05)
