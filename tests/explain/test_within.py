"""What can be computed in the registers of another statement only, and lacks an operand there."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.explain.explain import explain
from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
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
        assert map_kernel(kernel, machine, Options(prove=False)).schedule.statements[1].within == 0
        return
    assert [one.verdict for one in found] == ["matches", "unreachable", "matches"]
    assert [reason.text for reason in found[1].reasons] == [LACKING]
    with pytest.raises(NoMappingError) as caught:
        map_kernel(kernel, machine)
    told = caught.value.diagnostics[0]
    assert told.message.startswith("what matches the statement that writes T cannot be made")
    assert told.notes[0].message == f"bias: {LACKING}"
