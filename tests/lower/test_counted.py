"""Sums and maxima of registers of which an instruction is told how many elements count."""

from pathlib import Path

import pytest

from isamap.emit.liveness import calls
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.text.load import parse_module

TREE = """\
format: 1
name: tree
clock: 1 GHz
units: {dma: 1, work: 1, tree: 1}
queues: interlocked
storages:
  v: {kind: registers, count: 12, bits: 256}
  s: {kind: registers, count: 12, bits: 32}
  imm: {kind: immediate}
  near: {kind: scratchpad, size: 4 KiB, alignment: 32}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction fetch(n in 1..9, P) {
        in m : f32[n] @ memory strides [P] pad 0    out r : f32[8] @ near
        for i in 0..8
        r[i] = m[i]
      }
    throughput: 4
    latency: 20
    units: dma
  - semantics: |
      instruction load {
        in m : f32[8] @ near    out r : f32[8] @ v
        r[i] = m[i]
      }
    throughput: 1
    latency: 2
    units: work
  - semantics: |
      instruction save {
        in r : f32[8] @ v    out m : f32[8] @ near
        m[i] = r[i]
      }
    throughput: 1
    latency: 2
    units: work
  - semantics: |
      instruction begin {
        in v : f32[] @ imm    out r : f32[] @ s
        r[] = v[]
      }
    throughput: 1
    latency: 1
    units: work
  - semantics: |
      instruction result {
        in r : f32[] @ s    out m : f32[] @ memory
        m[] = r[]
      }
    throughput: 1
    latency: 20
    units: dma
  - semantics: |
      instruction multiply {
        in a : f32[8] @ v    in b : f32[8] @ v    out r : f32[8] @ v
        r[i] = a[i] * b[i]
      }
    throughput: 1
    latency: 4
    units: work
  - semantics: |
      instruction exponential {
        in a : f32[8] @ v    out r : f32[8] @ v
        r[i] = exp(a[i])
      }
    throughput: 4
    latency: 10
    units: work
  - semantics: |
      instruction total(n in 1..9) {
        in a : f32[8] @ v    inout r : f32[] @ s
        for i in 0..n
        r[] += a[i]
      }
    throughput: 2
    latency: 8
    units: tree
  - semantics: |
      instruction greatest(n in 1..9) {
        in a : f32[8] @ v    inout r : f32[] @ s
        for i in 0..n
        r[] max= a[i]
      }
    throughput: 2
    latency: 8
    units: tree
"""

KERNEL = """kernel k(R = 3, C{size}) {{
  in X : f32[R, C]  in G : f32[R, C]  out Y : f32[R]
  Y[r] {what}
}}"""

ROWS = """kernel rows(B = 3, H = {h}, W = {w}) {{
  in X : f32[B, H, W]  in G : f32[B, H, W]  out Y : f32[B]
  Y[b] max= X[b, h, w] * G[b, h, w]
}}"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path: Path = tmp_path_factory.mktemp("tree") / "tree.yaml"
    path.write_text(TREE)
    return load_hardware(str(path))


def report(machine: Accelerator, text: str) -> Report:
    found = make_report(parse_module(text).kernels[0], machine, Options())
    assert found.check is not None, found.unchecked
    assert found.check.ok, found.check.text
    assert found.certificate is not None
    assert found.certificate.verdict == "proved", found.certificate
    return found


def counts(found: Report, *names: str) -> set[str]:
    """Return what the instructions that sum up are told, of results without a copy before them."""
    lowered = found.result.lowered
    assert {array.role for array in lowered.arrays} == {"in", "out"}
    called = [call for call in calls(lowered.code) if call.instruction in names]
    return {str(dict(call.symbols)["n"]) for call in called}


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("max= X[r, c]", "greatest"),  # loads fill up with 0, which may be the greatest
        ("+= X[r, c] * G[r, c]", "total"),
        ("max= X[r, c] * G[r, c]", "greatest"),
        ("+= exp(X[r, c])", "total"),  # of 0 it is 1
    ],
)
@pytest.mark.parametrize(
    ("size", "wanted"), [(" = 8", {"8"}), (" = 5", {"5"}), (" = 21", {"8", "5"})]
)
def test_elements_behind_the_last_one_do_not_count(
    machine: Accelerator, what: str, name: str, size: str, wanted: set[str]
) -> None:
    assert counts(report(machine, KERNEL.format(size=size, what=what)), name) <= wanted


def test_the_number_may_be_known_only_when_the_code_runs(machine: Accelerator) -> None:
    found = report(machine, KERNEL.format(size="", what="max= X[r, c] * G[r, c]"))
    assert any("C" in count for count in counts(found, "greatest"))


@pytest.mark.parametrize(("h", "w"), [(2, 3), (2, 4), (3, 5)])
def test_rows_that_lie_together_are_counted_together(machine: Accelerator, h: int, w: int) -> None:
    report(machine, ROWS.format(h=h, w=w))


@pytest.mark.parametrize("size", [" = 16", " = 20"])
def test_a_number_that_may_not_be_just_any_is_that_of_all(tmp_path: Path, size: str) -> None:
    path = tmp_path / "tree.yaml"
    asks = 'r[] max= a[i]\n      }\n    constraints: ["n % 4 == 0"]\n'
    path.write_text(TREE.replace("r[] max= a[i]\n      }\n", asks))
    found = report(load_hardware(str(path)), KERNEL.format(size=size, what="max= X[r, c]"))
    called = [c for c in calls(found.result.lowered.code) if c.instruction == "greatest"]
    assert {str(dict(call.symbols)["n"]) for call in called} == {"8"}
