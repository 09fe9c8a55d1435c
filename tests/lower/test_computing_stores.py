"""Stores that compute what they store, of results and of what lies along the same axes."""

from pathlib import Path

import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: outputs
clock: 1 GHz
units: {load: 1, work: 1, store: 1}
queues: interlocked
storages:
  a: {kind: scratchpad, size: 4 KiB, alignment: 16}
  w: {kind: scratchpad, size: 4 KiB, alignment: 16}
  c: {kind: registers, count: 16, bits: 512}
  par: {kind: scratchpad, size: 1 KiB, alignment: 16}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction block {
        in a : s8[4, 4] @ a    in w : s8[4, 4] @ w    inout c : s32[4, 4] @ c
        c[i, j] += s32(a[i, k]) * s32(w[k, j])
      }
    throughput: 4
    latency: 8
    units: work
  - semantics: |
      instruction clear { out c : s32[4, 4] @ c    c[i, j] = 0 }
    throughput: 1
    latency: 1
    units: work
  - semantics: |
      instruction load_a(n in 1..5, k in 1..5, P) {
        in m : s8[n, k] @ memory strides [P, 1] pad 0    out a : s8[4, 4] @ a
        for i in 0..4    for j in 0..4
        a[i, j] = m[i, j]
      }
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction load_w(k in 1..5, n in 1..5, P) {
        in m : s8[k, n] @ memory strides [P, 1] pad 0    out w : s8[4, 4] @ w
        for i in 0..4    for j in 0..4
        w[i, j] = m[i, j]
      }
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction load_par<T = s32 f32>(n in 1..5) {
        in m : T[n] @ memory pad 0    out p : T[4] @ par
        for j in 0..4
        p[j] = m[j]
      }
    throughput: 1
    latency: 9
    units: load
  - semantics: |
      instruction plain(n in 1..5, q in 1..5, P) {
        in c : s32[4, 4] @ c    out m : s32[n, q] @ memory strides [P, 1]
        for i in 0..n    for j in 0..q
        m[i, j] = c[i, j]
      }
    throughput: 4
    latency: 9
    units: store
  - semantics: |
      instruction by_column(n in 1..5, q in 1..5, P) {
        in c : s32[4, 4] @ c    in b : s32[4] @ par    in s : f32[4] @ par
        out m : s8[n, q] @ memory strides [P, 1]
        for i in 0..n    for j in 0..q
        m[i, j] = sat[s8](f32(c[i, j] + b[j]) * s[j])
      }
    throughput: 4
    latency: 9
    units: store
"""

KERNEL = """kernel k(M = {m}, N = {n}, K = {k}) {{
  in A : s8[M, K]  const W : s8[K, N]
  const B : s32[N] values -1000 .. 1000  const F : f32[N]
  local S : s32[M, N]  out Y : s8[M, N]
  S[m, n] += s32(A[m, k]) * s32(W[k, n])
  Y[m, n] = sat[s8](f32(S[m, n] + B[{by}]) * F[{by}])
}}"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path: Path = tmp_path_factory.mktemp("outputs") / "outputs.yaml"
    path.write_text(MACHINE)
    return load_hardware(str(path))


def kernel(m: int, n: int, k: int, by: str = "n") -> Kernel:
    text = KERNEL.format(m=m, n=n, k=k, by=by)
    text = (
        text if by == "n" else text.replace("[N] values", "[M] values").replace("f32[N]", "f32[M]")
    )
    return parse_module(text).kernels[0]


def report(machine: Accelerator, own: Kernel) -> Report:
    found = make_report(own, machine, Options())
    assert found.check is not None, found.unchecked
    assert found.check.ok, found.check.text
    return found


@pytest.mark.parametrize(("m", "n", "k"), [(8, 8, 8), (9, 7, 5), (3, 2, 1), (16, 13, 4)])
def test_results_and_what_lies_along_their_columns_are_stored_at_once(
    machine: Accelerator, m: int, n: int, k: int
) -> None:
    result = report(machine, kernel(m, n, k)).result
    assert result.schedule.statements[1].within == 0
    assert "S" not in {array.name for array in result.lowered.arrays}


def test_what_lies_along_rows_is_not_what_the_store_takes(machine: Accelerator) -> None:
    with pytest.raises(NoMappingError, match="no instructions make Y of what block leaves"):
        report(machine, kernel(8, 12, 4, "m"))
