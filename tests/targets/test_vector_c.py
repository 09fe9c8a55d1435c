"""Vectors of C: what they widen, other signs, and what is told of a load that reads too much."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.targets.probe.probe import probe
from isamap.text.load import parse_module

POWER8 = Path(__file__).parents[2] / "examples" / "machines" / "power8.yaml"
BYTES = """
kernel gemm { in A : s8[37, 29]  in B : s8[29, 43]  out C : s32[37, 43]
  C[i, j] += s32(A[i, k]) * s32(B[k, j]) }
"""


def test_half_floats_of_every_kind_are_widened() -> None:
    names = ["v_load_f32_f16", "v_load_f32_first_f16", "v_load_all_f32_f16"]
    findings = probe(load_hardware("vector_c"), names, 2000)
    assert [(f.name, f.status) for f in findings] == [(name, "right") for name in names]


def test_a_load_beyond_its_operand_is_asked_whether_it_is_one() -> None:
    machine = load_hardware("vector_c")
    name, emit = "v_load_first_f32", "{r} = *(const isamap_u_f32 *){m}; (void){n};"
    entries = tuple(replace(e, emit=emit) if e.name == name else e for e in machine.entries)
    (finding,) = probe(replace(machine, entries=entries), [name], 50)
    assert finding.status == "wrong"
    asked = "does it read or write beyond an operand, or need an aligned one"
    assert f"(SIGSEGV); {asked}" in finding.text


needs_sse = pytest.mark.skipif(platform.machine() != "x86_64", reason="loads of x86")


@needs_sse
@pytest.mark.parametrize(("align", "status"), [(1, "wrong"), (8, "wrong"), (16, "right")])
def test_operands_begin_wherever_their_alignment_lets_them(align: int, status: str) -> None:
    machine = load_hardware("vector_c")
    name, emit = "v_load_f32", "{r} = (isamap_v_f32)_mm_load_ps((const float *){m});"
    entries = tuple(
        replace(e, emit=emit, align={"m": align}) if e.name == name else e for e in machine.entries
    )
    assert machine.toolchain is not None
    tools = replace(machine.toolchain, headers=(*machine.toolchain.headers, "xmmintrin.h"))
    changed = replace(machine, entries=entries, toolchain=tools)
    others = [e.name for e in machine.entries if e.name.startswith("v_add_f32")]
    findings = probe(changed, [name, *others], 50)
    assert [f.status for f in findings] == [status, *("right" for _ in others)]


def test_signs_of_bytes_change_in_vectors() -> None:
    (kernel,) = parse_module(BYTES).kernels
    result = map_kernel(kernel, load_hardware(str(POWER8), trust=True), Options(prove=False))
    used = [s.mapping.matching.needle.name for s in result.schedule.statements]
    assert (used[0], used[-1]) == ("v_add_u8", "vmsummbm")
