"""A quick part of the examples, each mapped, run and checked in a process of its own.

``examples/check_examples.py`` does that with all of them.
"""

import pytest

from examples.check_examples import HERE, SIMULATED, Example, all_examples, check, host, load
from examples.check_examples import smallest as smallest_products
from isamap.hw.load import load_hardware
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.find import enumerate_mappings
from isamap.text.load import load_module

QUICK = (
    "separable",
    "mobilenet_v1/dw12",
    "mobilenet_v1/conv1",
    "resnet50/fc",
    "deepbench/gemm_512x16x512_nt",
    "operators/bf16_gemm",
    "operators/embedding",
    "operators/quantized_dense",
    "operators/symbolic_gemm",
    "operators/u8s8_convolution",
)


def example(name: str) -> Example:
    return load(HERE / f"{name}.ir")


@pytest.mark.parametrize("name", QUICK)
def test_example_is_mapped_run_and_checked(name: str) -> None:
    outcome = check(example(name), host())
    assert outcome.ok, outcome.facts


@pytest.mark.parametrize("name", ["operators/grouped_dense", "mobilenet_v1/dw12"])
def test_example_runs_on_the_simulated_accelerator(name: str) -> None:
    outcome = check(example(name), SIMULATED)
    assert outcome.ok, outcome.facts


@pytest.mark.parametrize("machine", ["x86_avx512", "x86_avx2"])
def test_max_pooling_maps_to_a_vector_maximum(machine: str) -> None:
    (kernel,) = load_module(HERE / "operators" / "max_pooling.ir", {}).kernels
    bound = bind_extents(kernel)
    found = enumerate_mappings(
        zero_based(bound.statements[0]), load_hardware(machine), bound.permissions
    )
    best = found.mappings[0]
    assert best.matching.needle.reduction == "max="
    assert best.tile.get("c", 1) >= 8


def test_three_smallest_products_of_every_folder_are_simulated() -> None:
    chosen = list(smallest_products(all_examples()))
    folders = [e.path.parent.name for e in chosen]
    assert {folder: folders.count(folder) for folder in set(folders)} == {
        "mobilenet_v1": 3,
        "resnet50": 3,
        "deepbench": 3,
        "operators": 3,
        "examples": 2,
    }
    assert all(e.products for e in chosen)
