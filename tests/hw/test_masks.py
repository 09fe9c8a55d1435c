"""Vectors choose: what compares data or positions and selects by it is computed in lanes."""

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.text.load import parse_module

LANES = {
    "x86_avx512": 16,
    "x86_avx2": 8,
    "aarch64_neon": 4,
    "vector_c": 4,
    "loongarch_lasx": 8,
    "mips_msa": 4,
    "power_mma": 4,
    "s390x_vector": 4,
    "wasm_relaxed": 4,
}
"""Elements of 32 bits in a register of machines whose vectors compare."""

VALUES = {
    "a leaky rectifier": "select(X[i, j] > 0, X[i, j], X[i, j] * 0.01)",
    "numbers of a label": "select(L[i, j] != 3, X[i, j], 1)",
}


def _kernel(value: str) -> Kernel:
    label = "in L : s32[64, 64] " if "L[" in value else ""
    text = f"kernel k {{ in X : f32[64, 64] {label}out Y : f32[64, 64] Y[i, j] = {value} }}"
    (kernel,) = parse_module(text).kernels
    return kernel


def _lanes(name: str, value: str, statement: int = -1) -> dict[str, int]:
    """Return the iterations that one instruction computes of a statement of what is mapped."""
    result = map_kernel(_kernel(value), load_hardware(name), Options(prove=False))
    found = result.statements[statement]
    return dict(found.mappings[found.chosen].tile)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", LANES)
def test_what_is_selected_is_computed_in_lanes(name: str, value: str) -> None:
    assert _lanes(name, value) == {"i": 1, "j": LANES[name]}


@pytest.mark.parametrize("name", ["x86_avx512", "x86_avx2", "aarch64_neon", "vector_c"])
def test_a_triangle_is_computed_in_lanes(name: str) -> None:
    assert _lanes(name, "select(j <= i, X[i, j], 0)") == {"i": 1, "j": LANES[name]}


def test_a_machine_that_flushes_subnormal_numbers_does_not_compare_them() -> None:
    # On MVE 2^-140 < 2^-130 is false.  The first statement compares, others may take its results.
    assert _lanes("arm_mve", VALUES["a leaky rectifier"], 0) == {}
    assert _lanes("arm_mve", VALUES["numbers of a label"]) == {"i": 1, "j": 4}
