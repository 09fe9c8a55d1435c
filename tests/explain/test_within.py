"""What can be computed in the registers of another statement only, and lacks an operand there."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.explain.explain import explain, explain_started
from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: kept
clock: 1 GHz
units: {u: 1}
storages:
  acc: {kind: registers, count: 16, bits: 8192}
  ub: {kind: registers, count: 64, bits: 2048}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction load(P) {
        in m : s8[16, 16] @ memory strides [P, 1]    out u : s8[16, 16] @ ub
        u[i, j] = m[i, j]
      }
    throughput: 16
    latency: 50
  - semantics: |
      instruction mm {
        in a : s8[16, 16] @ ub    in b : s8[16, 16] @ ub    inout c : s32[16, 16] @ acc
        c[i, j] += s32(a[i, k]) * s32(b[k, j])
      }
    throughput: 16
    latency: 30
  - semantics: |
      instruction zero { out c : s32[16, 16] @ acc    c[i, j] = 0 }
    throughput: 16
    latency: 30
  - semantics: |
      instruction bias {
        in b : s32[16] @ ub    in c : s32[16, 16] @ acc    out r : s32[16, 16] @ acc
        r[i, j] = c[i, j] + b[j]
      }
    throughput: 16
    latency: 30
  - semantics: |
      instruction store(P) {
        in c : s32[16, 16] @ acc    out m : s8[16, 16] @ memory strides [P, 1]
        m[i, j] = sat[s8](c[i, j])
      }
    throughput: 16
    latency: 50
"""
LOAD = """\
  - semantics: |
      instruction load_bias { in m : s32[16] @ memory    out u : s32[16] @ ub    u[j] = m[j] }
    throughput: 16
    latency: 50
"""
KERNEL = """
kernel biased { in A : s8[64, 64]  in B : s8[64, 64]  in Bi : s32[64]
  local S : s32[64, 64]  local T : s32[64, 64]  out C : s8[64, 64]
  S[i, j] += s32(A[i, k]) * s32(B[k, j])
  T[i, j] = S[i, j] + Bi[j]
  C[i, j] = sat[s8](T[i, j]) }
"""
LACKING = "operand 'b' of bias cannot be brought to it: no instruction writes s32[16] in ub; "
LACKING += "missing is a movement of s32[16] from memory to ub"


@pytest.mark.parametrize("more", ["", LOAD])
def test_an_operand_that_no_other_statement_leaves_has_to_be_brought(
    more: str, tmp_path: Path
) -> None:
    path = tmp_path / "kept.yaml"
    path.write_text(MACHINE + more)
    machine = load_hardware(str(path))
    (kernel,) = parse_module(KERNEL).kernels
    found = [statement.instructions[0] for statement in explain(kernel, machine)]
    if more:
        assert [one.verdict for one in found] == ["matches"] * 3
        report = make_report(kernel, machine, Options(prove=False))
        assert report.result.schedule.statements[1].within == 0
        # All 16 accumulators, with one more for what bias leaves, were one too many.
        assert report.check is not None
        assert report.check.ok
        return
    assert [one.verdict for one in found] == ["matches", "unreachable", "matches"]
    assert [reason.text for reason in found[1].reasons] == [LACKING]
    with pytest.raises(NoMappingError) as caught:
        map_kernel(kernel, machine)
    told = caught.value.diagnostics[0]
    assert told.message.startswith("what matches the statement that writes T cannot be made")
    assert told.notes[0].message == f"bias: {LACKING}"


SUMS = "in A : s8[16, 16]\nin B : s8[16, 16]\nlocal S : s32[16, 16]\nout Y : s8[16, 16]\n"
SUMS += "S[m, n] += s32(A[m, k]) * s32(B[k, n])"


@pytest.mark.parametrize(
    ("value", "machine"),
    [
        ("sat[s8](f32(max(S[m, n] * 3, 0)) * 0.5)", "gemmini"),
        ("sat[s8](f32(max(S[m, n], 0)) * 0.5)", "vta"),
        ("sat[s8](f32(max(S[m, n], 0)) * 0.5)", "gemmini"),
        ("sat[s8](S[m, n] >> 3)", "vta"),
    ],
)
def test_what_is_explained_to_map_maps(value: str, machine: str) -> None:
    (kernel,) = parse_module(f"kernel k {{ {SUMS}\nY[m, n] = {value} }}").kernels
    hardware = load_hardware(machine)
    _, told = explain_started(kernel, hardware)
    try:
        map_kernel(kernel, hardware, Options(prove=False))
    except NoMappingError:
        assert not all(one.maps for one in told)
    else:
        assert all(one.maps for one in told)


def test_results_that_nothing_stores_or_takes_are_said_to_be_lost() -> None:
    value = "sat[s8](f32(max(S[m, n], 0)) * 0.5)"
    (kernel,) = parse_module(f"kernel k {{ {SUMS}\nY[m, n] = {value} }}").kernels
    found = explain(kernel, load_hardware("nvdla"))[0].instructions[0]
    assert found.verdict == "unreachable"
    assert [reason.text for reason in found.reasons] == [
        "no instruction takes s32[16, 32] from cacc to memory, and no instructions make Y of what "
        "stripe_s8 leaves in a register"
    ]


HANDED = """\
format: 1
name: handed
clock: 1 GHz
units: {u: 1}
storages:
  acc: {kind: scratchpad, size: 128 KiB, alignment: 64}
  ub: {kind: scratchpad, size: 192 KiB, alignment: 32}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction store(rows in 1..17, cols in 1..17, P) {
        in c : s32[16, 16] @ acc    out m : s8[rows, cols] @ memory strides [P, 1]
        for i in 0..rows for j in 0..cols
        m[i, j] = sat[s8](c[i, j])
      }
    throughput: 1
    latency: 80
  - semantics: |
      instruction add {
        in a : s32[64] @ ub    in b : s32[64] @ ub    out r : s32[64] @ ub
        r[i] = a[i] + b[i]
      }
    throughput: 1
    latency: 10
  - semantics: |
      instruction mul {
        in a : s32[64] @ ub    in b : s32[64] @ ub    out r : s32[64] @ ub
        r[i] = a[i] * b[i]
      }
    throughput: 1
    latency: 10
  - semantics: |
      instruction extend(n in 1..65) {
        in m : s8[n] @ memory pad 0    out r : s32[64] @ ub
        for i in 0..64
        r[i] = s32(m[i])
      }
    throughput: 1
    latency: 110
"""


def test_changes_of_extents_do_not_take_what_was_found_for_others(tmp_path: Path) -> None:
    # A multiple of 16 is suggested for N: what S takes there is not what it takes for 17.
    path = tmp_path / "handed.yaml"
    path.write_text(HANDED)
    text = """kernel q(M = 16, N = 17, K = 32) {
      in A : s8[M, K]  in B : s8[K, N]  in b : s32[N]  local S : s32[M, N]  out C : s8[M, N]
      S[m, n] += s32(A[m, k]) * s32(B[k, n])
      C[m, n] = sat[s8](S[m, n] + b[n])
    }"""
    (kernel,) = parse_module(text).kernels
    _, (sums, results) = explain_started(kernel, load_hardware(str(path)))
    verdicts = [one.verdict for one in (*sums.instructions, *results.instructions)]
    assert verdicts == ["unreachable"] * 2 + ["part", "differs", "unreachable", "part", "differs"]
    reasons = {c.rest.partition(",")[0] for one in results.instructions for c in one.changes}
    assert reasons == {"no instruction takes s32[64] from ub to memory"}
