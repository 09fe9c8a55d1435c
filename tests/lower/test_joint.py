"""Padded copies that shifted accesses share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, machine
from tests.profiles import examples

STENCIL = """kernel stencil {{ in A : f32[{m}, {n}] pad 0
  out B : f32[{m}, {n}]
  B[i, j] = {value} }}"""


def stencil(m: int, n: int, taps: list[tuple[int, int]]) -> Kernel:
    """Return a kernel that adds elements at some places around each."""
    value = " + ".join(f"A[i + {i}, j + {j}]" for i, j in taps).replace("+ -", "- ")
    (kernel,) = parse_module(STENCIL.format(m=m, n=n, value=value)).kernels
    return kernel


def copies(lowered: LoweredKernel) -> list[str]:
    return [a.name for a in lowered.arrays if a.name.startswith("A_p")]


@pytest.mark.parametrize(
    ("taps", "count"),
    [
        ([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)], 1),
        ([(0, -1), (0, 1)], 1),
        ([(0, -1), (45, 55)], 2),  # one for both had more elements than both of them
    ],
)
def test_taps_of_a_stencil_have_one_copy(taps: list[tuple[int, int]], count: int) -> None:
    kernel = stencil(50, 61, taps)
    lowered = map_kernel(kernel, machine("x86_avx2"), Options(prove=False, rewrite=())).lowered
    assert len(copies(lowered)) == count


@given(
    st.integers(1, 40),
    st.integers(1, 70),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=6),
    st.sampled_from(["x86_avx2", "x86_avx512", "vector_c"]),
    st.integers(0, 9),
)
@examples(0.4)
def test_stencils_are_right(
    m: int, n: int, taps: list[tuple[int, int]], hardware: str, seed: int
) -> None:
    kernel = stencil(m, n, taps)
    lowered = map_kernel(kernel, machine(hardware), Options(prove=False, rewrite=())).lowered
    agrees(kernel, lowered, machine(hardware), seed)
