"""A machine with one place for its weights: blocks are rows that share them."""

from pathlib import Path

from isamap.hw.load import load_hardware
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

CROSSBAR = """\
format: 1
name: crossbar
title: one array of weights, four sums
clock: 1.0 GHz
units: {array: 1, bus: 1}
queues: interlocked
storages:
  cells: {kind: registers, count: 1, bits: 2048, numbered: true}
  line: {kind: registers, count: 2, bits: 128, numbered: true}
  sums: {kind: registers, count: 4, bits: 512, numbered: true}
  memory: {kind: memory, read: 8 B/cycle, write: 8 B/cycle, latency: 50}
instructions:
  - semantics: |
      instruction multiply {
        in x : s8[16] @ line    in w : s8[16, 16] @ cells    inout y : s32[16] @ sums
        y[j] += s32(x[k]) * s32(w[k, j])
      }
    throughput: 2
    latency: 4
    units: array
  - semantics: |
      instruction clear {
        out y : s32[16] @ sums
        y[j] = 0
      }
    throughput: 1
    latency: 1
    units: array
  - semantics: |
      instruction weights {
        in m : s8[16, 16] @ memory    out w : s8[16, 16] @ cells
        w[k, j] = m[k, j]
      }
    throughput: 10000
    latency: 10000
    units: array
  - semantics: |
      instruction feed {
        in m : s8[16] @ memory    out x : s8[16] @ line
        x[k] = m[k]
      }
    throughput: 2
    latency: 50
    units: bus
  - semantics: |
      instruction send {
        in y : s32[16] @ sums    out m : s32[16] @ memory
        m[j] = y[j]
      }
    throughput: 8
    latency: 50
    units: bus
"""


def test_what_there_is_one_of_needs_one_register(tmp_path: Path) -> None:
    file = tmp_path / "crossbar.yaml"
    file.write_text(CROSSBAR)
    text = """kernel product { in A : s8[32, 16]  const B : s8[16, 32]  out C : s32[32, 32]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    (kernel,) = parse_module(text).kernels
    report = make_report(kernel, load_hardware(str(file)), Options(prove=False))
    assert report.check is not None
    assert report.check.ok, report.check
    # Both panels bring weights once, and what there is one of is left for four rows at a time.
    assert 2 * 10_000 <= report.result.estimate.cycles < 3 * 10_000
