"""The shipped descriptions and examples: complete lists, and the mappings that people know."""

from functools import lru_cache
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Statement
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.matching import Enumeration
from isamap.text.load import load_module

EXAMPLES = Path(__file__).parents[2] / "examples"


hardware_named = lru_cache(load_hardware)


def found(example: str, hardware: str) -> Enumeration:
    (kernel,) = load_module(EXAMPLES / example).kernels
    statement: Statement = kernel.statements[0]
    return enumerate_mappings(statement, hardware_named(hardware), kernel.permissions)


def layouts(enumeration: Enumeration, instruction: str) -> set[tuple[tuple[str, str], ...]]:
    return {
        tuple((str(p.form), p.axis) for p in m.matching.placements)
        for m in enumeration.mappings
        if m.matching.needle.name.startswith(instruction)
    }


def test_depthwise_layer_on_the_matrix_unit() -> None:
    enumeration = found("mobilenet_v1/dw1.ir", "gemm16")
    assert enumeration.complete
    placed = layouts(enumeration, "gemm")
    assert any(
        {("c", "j"), ("c", "k"), ("r", "k"), ("s", "k")} <= set(placements)
        or {("c", "i"), ("c", "k"), ("r", "k"), ("s", "k")} <= set(placements)
        for placements in placed
    )


@pytest.mark.parametrize("hardware", ["x86_avx2", "x86_avx512", "portable_c", "gemm16"])
@pytest.mark.parametrize(
    "example",
    [
        "resnet50/l2_1_c2.ir",
        "operators/dilated_convolution.ir",
        "operators/symbolic_gemm.ir",
        "operators/matvec.ir",
    ],
)
def test_layers_have_mappings(example: str, hardware: str) -> None:
    enumeration = found(example, hardware)
    assert enumeration.complete, enumeration.reason
    assert enumeration.mappings
    assert all(0 < m.utilisation <= 1 for m in enumeration.mappings)


def test_dot_products_of_bytes_take_four_at_a_time() -> None:
    enumeration = found("operators/u8s8_gemm.ir", "x86_avx512")
    best = enumeration.mappings[0]
    assert best.utilisation == 1.0
    reduced = [p for p in best.matching.placements if p.form.names == {"k"}]
    assert reduced
    assert best.tile["k"] == 4


def test_tied_reading_maps_pooling() -> None:
    enumeration = found("operators/max_pooling.ir", "x86_avx512")
    best = enumeration.mappings[0]
    assert best.matching.needle.reduction == "max="
    assert best.utilisation == 1.0
