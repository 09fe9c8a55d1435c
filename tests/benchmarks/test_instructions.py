"""Instructions of packed products: what is executed, and the fewest."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import remedy, runnable
from isamap.text.load import load_module, parse_module

ROOT = Path(__file__).parents[2]
FRESH = "python benchmarks/instructions.py --markdown docs/matrix.md"
MATRIX = "python benchmarks/matrix.py --markdown docs/matrix.md"
KERNELS = ROOT / "tests" / "targets" / "kernels.ir"
PAGE = ROOT / "docs" / "matrix.md"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    if name not in sys.modules:
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module(name)


def fewest(
    machine: Accelerator, types: str, instruction: str, monkeypatch: pytest.MonkeyPatch
) -> float:
    minimum = module("executed.minimum", monkeypatch)
    text = module("executed.products", monkeypatch).product_text(types, 7680, 7680, 256)
    (kernel,) = parse_module(text).kernels
    found: float = minimum.fewest(machine, kernel, 0, instruction).instructions
    return found


@pytest.mark.parametrize(
    ("machine", "types", "instruction", "instructions"),
    [
        # 5 x 5 results of 4 lanes, 5 fragments of each factor: 35 for 100 products.
        ("aarch64_neon", "f32", "fmla_f32", 0.35),
        # Results of 2 x 2, 8 products each: 35 for 800.
        ("aarch64_neon", "s8 to s32", "smmla", 0.04375),
        # 9 x 3 results of 4 lanes; what is loaded to all lanes takes two instructions: 42 for 108.
        ("mips_msa", "f32", "v_mac_f32", 42 / 108),
        # 4 x 5 results of 16 lanes, each a product and a sum, and loads: 49 for 320.
        ("x86_avx512", "s32", "vadd_s32", 49 / 320),
    ],
)
def test_the_fewest_follow_from_the_description(
    machine: str, types: str, instruction: str, instructions: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fewest(load_hardware(machine), types, instruction, monkeypatch)
    assert found == pytest.approx(instructions)


def test_the_fewest_leave_registers_that_instructions_take_besides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = load_hardware("aarch64_neon")
    entries = (replace(e, besides={"v": 12}) if e.name == "fmla_f32" else e for e in found.entries)
    least = fewest(replace(found, entries=tuple(entries)), "f32", "fmla_f32", monkeypatch)
    # 20 registers hold 3 x 5 results of 4 lanes, 3 fragments and one of 5: 23 for 60 products.
    assert least == pytest.approx(23 / 60)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("x86_avx512", "f16"),
        ("x86_avx512", "s8 to s32"),
        ("x86_avx512", "u8 to s32"),
        ("s390x_vector", "f16 to f32"),
        ("hexagon_hvx", "s32"),
    ],
)
def test_what_takes_registers_besides_does_not_spill(
    name: str, types: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    (one,) = module("executed.measured", monkeypatch).measure(machine, types)
    assert one.executed is not None
    assert one.good, (one.ratio, one.spilled)


def test_a_product_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = load_hardware("aarch64_neon")
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    measured = module("executed.measured", monkeypatch)
    (one,) = measured.measure(machine, "f32")
    assert one.executed is not None
    assert one.fewest.instructions < one.executed < measured.LIMIT * one.fewest.instructions
    assert one.spilled == ""
    assert one.good
    assert any("fmla" in line for line in measured.profile(one.deep))


@pytest.mark.parametrize(
    ("name", "types", "instruction"),
    [
        (
            "power_mma",
            "s8 to s32",
            "xvi8ger4pp",
        ),  # takes bytes without a sign beside those with one
        ("arm_mve", "f16 to f32", "v_mac_all_f32"),  # what is converted pays in several blocks only
    ],
)
def test_products_are_counted_as_they_are_rewritten(
    name: str, types: str, instruction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    (one,) = module("executed.measured", monkeypatch).measure(machine, types)
    assert one.product.instruction == instruction
    assert one.product.schedule.rewritings
    assert one.good, (one.ratio, one.spilled)


def test_every_target_is_in_the_table() -> None:
    for name in shipped_names():
        if load_hardware(name).toolchain is not None:
            table = PAGE.read_text().partition(f"<!-- begin products {name} -->")[2]
            assert f"| `{name}` |" in table.partition("<!-- end")[0], FRESH


def test_a_cell_of_the_matrix_tells_what_a_kernel_becomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = load_hardware("aarch64_neon")
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    cells = module("executed.cells", monkeypatch)
    kernels = {k.name: k for k in load_module(KERNELS).kernels}
    found = cells.cell(kernels["pooling"], machine)
    assert found is not None
    assert found.instruction == "fmax"
    assert not found.scalar
    assert found.fewest == 0.25
    assert found.executed is not None
    assert found.fewest < found.executed < 1


def test_a_cell_of_a_simulated_machine_has_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = module("executed.cells", monkeypatch)
    kernels = {k.name: k for k in load_module(KERNELS).kernels}
    found = cells.cell(kernels["gemm_f32"], load_hardware("gemm16"))
    assert found is not None
    assert found.executed is not None
    assert found.executed > found.fewest


def test_every_target_and_kernel_is_in_the_matrix() -> None:
    kernels = [k.name for k in load_module(KERNELS).kernels]
    for name in shipped_names():
        table = PAGE.read_text().partition(f"<!-- begin matrix {name} -->")[2]
        table = table.partition("<!-- end")[0]
        assert f"### `{name}`" in table, MATRIX
        if "Not run here" not in table:
            rows = [line.split(" | ")[0].strip("| ") for line in table.splitlines()]
            assert [row for row in rows if row in kernels] == kernels, MATRIX


@pytest.mark.parametrize("name", ["gemmini", "vta", "nvdla"])
def test_what_accelerators_compute_is_in_the_matrix(name: str) -> None:
    table = PAGE.read_text().partition(f"<!-- begin matrix {name} -->")[2].partition("<!-- end")[0]
    rows = {line.split(" | ")[0].partition(": ")[2] for line in table.splitlines()}
    assert rows >= {"gemm", "one", "convolution", "depthwise", "dilated", "grouped", "vector"}, (
        MATRIX
    )
