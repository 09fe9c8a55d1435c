"""Registers that blocks chosen by rule leave to the compiler, and pointers that it keeps apart."""

from dataclasses import replace

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.schedule.shape import block_of, read_shape
from isamap.text.load import parse_module

TEXT = """\
kernel product { const A : f32[256, 480]  const B : f32[256, 480]  inout C : f32[480, 480]
  C[i, j] += A[k, i] * B[k, j] }
"""
BYTES = """\
kernel product { const A : u8[256, 480]  const B : s8[256, 480]  inout C : s32[480, 480]
  C[i, j] += s32(A[k, i]) * s32(B[k, j]) }
"""


def mapped(text: str, machine: str, spare: int | None = None) -> Result:
    found = load_hardware(machine)
    if spare is not None:
        storages = (replace(s, spare=spare) if s.name == "v" else s for s in found.storages)
        found = replace(found, storages=tuple(storages))
    kernel = parse_module(text).kernels[0]
    return map_kernel(kernel, found, Options(prove=False, rewrite=()))


@pytest.mark.parametrize(("spare", "results"), [(0, 25), (1, 24), (8, 18)])
def test_a_block_leaves_registers_to_spare(spare: int, results: int) -> None:
    own = mapped(TEXT, "aarch64_neon", spare).schedule.statements[0]
    block = block_of(read_shape(own.mapping), own.levels)
    assert block["i"] * block["j"] == results


@pytest.mark.parametrize(
    ("instruction", "taken", "results"),
    [
        ("fmla_f32", {}, 24),
        ("fmla_f32", {"v": 7}, 18),
        ("ldr_f32", {"v": 7}, 18),  # what makes an operand takes them as well
        ("ldr_f32", {"v2": 7}, 12),  # of two each
        ("fmul", {"v": 7}, 24),  # no part of it
    ],
)
def test_a_block_leaves_registers_that_instructions_take_besides(
    instruction: str, taken: dict[str, int], results: int
) -> None:
    found = load_hardware("aarch64_neon")
    assert any(entry.name == instruction for entry in found.entries)
    entries = (replace(e, besides=taken) if e.name == instruction else e for e in found.entries)
    machine = replace(found, entries=tuple(entries))
    kernel = parse_module(TEXT).kernels[0]
    own = map_kernel(kernel, machine, Options(prove=False, rewrite=())).schedule.statements[0]
    block = block_of(read_shape(own.mapping), own.levels)
    assert block["i"] * block["j"] == results


def test_of_several_instructions_the_one_counts_that_takes_most_besides() -> None:
    found = load_hardware("hexagon_hvx")
    entry = found.entry("vadd_s32")
    some = [replace(entry, besides={"v": 3}), replace(entry, besides={"v": 2, "word": 1})]
    assert found.besides(some) == {"v": 3, "reg": 1}
    assert found.besides([replace(entry, besides={"pair": 2})]) == {"v": 4}  # of two each


@pytest.mark.parametrize(("renamed", "rows"), [(True, 4), (False, 6)])
def test_an_operand_passes_through_one_register_that_is_renamed(renamed: bool, rows: int) -> None:
    found = load_hardware("x86_avx2")
    storages = (replace(s, renamed=renamed and s.renamed) for s in found.storages)
    machine = replace(found, storages=tuple(storages))
    kernel = parse_module(TEXT).kernels[0]
    result = map_kernel(kernel, machine, Options(prove=False, rewrite=()))
    own = result.schedule.statements[0]
    block = block_of(read_shape(own.mapping), own.levels)
    # 12 results and 3 vectors of B leave one of 16 registers for A, 12 and 2 leave two.
    assert (block["i"], block["j"]) == (rows, 12 // rows)


def test_what_is_packed_is_loaded_as_it_lies() -> None:
    # There is an instruction that weaves four rows; one load of another shape is cheaper.
    result = mapped(BYTES, "power_mma")
    assert result.schedule.statements[0].operands == ("packed", "packed")
    assert result.c is not None
    assert "isamap_weave4(" not in result.c.partition("int product(")[2]


def test_pointers_to_two_prepared_arrays_are_unrelated_to_a_compiler() -> None:
    two = mapped(BYTES, "power_mma").c
    one = mapped(TEXT.replace("const A", "in A"), "aarch64_neon").c
    assert two is not None
    assert one is not None
    assert two.count("ISAMAP_UNRELATED(kept);") == 2  # where it is filled, and where it is read
    assert "ISAMAP_UNRELATED(kept);" not in one
