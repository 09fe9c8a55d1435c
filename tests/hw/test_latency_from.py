"""Operands that an instruction needs late: sums in one register follow each other sooner."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from isamap.cli import main
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.lower.abreast import calls_abreast
from isamap.lower.cost import estimate
from isamap.lower.nodes import Array, Call, Loop, LoweredKernel, Register, Scope, Window
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.pipeline.unmapped import enumerate_each
from isamap.sim.run import simulate
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: late
clock: 1 GHz
issue: 4
units: {{load: 1, work: 1, store: 1}}
{queues}
storages:
  v: {{kind: registers, count: 16, bits: 128}}
  memory: {{kind: memory}}
instructions:
  - semantics: |
      instruction get {{ in m : f32[4] @ memory    out r : f32[4] @ v    r[i] = m[i] }}
    throughput: 1
    latency: 3
    units: load
  - semantics: |
      instruction zero {{ in x : f32[] @ imm    out r : f32[4] @ v    r[i] = x[] }}
    throughput: 1
    latency: 1
    units: load
  - semantics: |
      instruction mac {{
        in a : f32[4] @ v    in b : f32[4] @ v    inout c : f32[4] @ v    c[i] += a[i] * b[i]
      }}
    throughput: 1/2
    latency: 8
    {late}
    units: work
  - semantics: |
      instruction put {{ in r : f32[4] @ v    out m : f32[4] @ memory    m[i] = r[i] }}
    throughput: 1
    latency: 1
    units: store
"""
MACHINE = MACHINE.replace("  memory:", "  imm: {{kind: immediate}}\n  memory:")
F32 = DTYPES["f32"]
STEPS = 20
SUMS = parse_module(
    "kernel sums { in A : f32[64, 4]  in B : f32[64, 4]  out C : f32[4]\n"
    "  C[n] += A[k, n] * B[k, n] }"
).kernels[0]


def machine(folder: Path, late: str = "", queues: str = "") -> Accelerator:
    path = folder / "late.yaml"
    path.write_text(MACHINE.format(late=late, queues=queues), encoding="utf-8")
    return load_hardware(str(path))


def register(name: str) -> Register:
    return Register(name, "v", F32, (4,))


def mac(a: str, b: str, c: str) -> Call:
    return Call("mac", tuple((name, register(r)) for name, r in (("a", a), ("b", b), ("c", c))))


def lowered(*steps: Call) -> LoweredKernel:
    """A sum in ``c`` of what ``steps`` add to it, again and again."""
    arrays = (Array("A", "in", F32, const(4)), Array("C", "out", F32, const(4)))
    get = [Call("get", (("m", Window("A", const(0))), ("r", register(r)))) for r in "abcd"]
    put = Call("put", (("r", register("c")), ("m", Window("C", const(0)))))
    loop = Loop("k", const(STEPS), steps)
    body = Scope(tuple(map(register, "abcd")), (*get, loop, put))
    return LoweredKernel("k", (), arrays, (body,))


def cycles(found: LoweredKernel, own: Accelerator) -> Fraction:
    return simulate(found, own, {"A": np.ones(4, np.float32)}).cycles


def test_sums_in_one_register_follow_each_other_when_the_old_one_is_needed(tmp_path: Path) -> None:
    for late, each in (("", 8), ("latency_from: {c: 2}", 2), ("latency_from: {c: 5/2}", 2.5)):
        own = machine(tmp_path, late)
        result = simulate(lowered(mac("a", "b", "c")), own, {"A": np.ones(4, np.float32)})
        # Loads, a product, and sums of which only the first one waits for a factor.
        assert result.latency == 3 + 8 + (STEPS - 1) * Fraction(each)
        made = estimate(lowered(mac("a", "b", "c")), own, copies=False)
        assert made.busy == pytest.approx(STEPS * each, abs=8)


def test_what_is_multiplied_is_waited_for_as_long_as_ever(tmp_path: Path) -> None:
    soon, late = machine(tmp_path), machine(tmp_path, "latency_from: {c: 2}")
    # Each product is a factor of the next one.
    chained = (mac("c", "b", "d"), mac("d", "b", "c"))
    assert cycles(lowered(*chained), late) == cycles(lowered(*chained), soon)


def test_in_queues_it_may_come_later(tmp_path: Path) -> None:
    ends = {}
    for late in ("", "latency_from: {c: 2}"):
        own = machine(tmp_path, late, "queues: interlocked")
        ends[late] = cycles(lowered(mac("a", "b", "c")), own)
        assert estimate(lowered(mac("a", "b", "c")), own, copies=False).busy == ends[late]
    # The first sum need not wait for c either, which is loaded a cycle after both factors.
    assert ends[""] - ends["latency_from: {c: 2}"] == (STEPS - 1) * 6 + 1


def test_what_is_still_read_late_is_not_overwritten_before(tmp_path: Path) -> None:
    own = machine(tmp_path, "latency_from: {c: 2}", "queues: interlocked")
    get = Call("get", (("m", Window("A", const(0))), ("r", register("c"))))
    found = lowered(mac("a", "b", "c"), get)
    # It is read six cycles after a product began, and loaded then; the next product needs it six
    # cycles after it began, so it begins three before the load is done.
    assert cycles(found, own) == estimate(found, own, copies=False).busy
    plain = machine(tmp_path, "", "queues: interlocked")
    assert cycles(found, own) < cycles(found, plain)


def test_queues_are_ordered_by_when_operands_are_needed(tmp_path: Path) -> None:
    own = machine(tmp_path, "latency_from: {c: 2}", "queues: interlocked")
    steps = [mac("a", "b", "c")] * 2 + [mac("a", "b", "d")] * 2
    body = Scope(tuple(map(register, "abcd")), tuple(replace(step) for step in steps))
    (found,) = calls_abreast(LoweredKernel("k", (), (), (body,)), own).body
    assert isinstance(found, Scope)
    sums = [dict(node.operands)["c"] for node in found.body if isinstance(node, Call)]
    assert [place.name for place in sums if isinstance(place, Register)] == ["c", "d", "c", "d"]


def test_it_decides_the_schedule_and_the_bound(tmp_path: Path) -> None:
    def report(late: str) -> Report:
        return make_report(SUMS, machine(tmp_path, late), Options(prove=False))

    plain, late = report(""), report("latency_from: {c: 1}")
    assert plain.check is not None
    assert plain.check.ok
    assert late.check is not None
    assert late.check.ok
    assert late.result.estimate.cycles < plain.result.estimate.cycles / 3


def test_compositions_wait_for_what_is_added_last() -> None:
    """A sum of lanes after a product: the accumulator waits for the addition alone."""
    own = load_hardware("x86_avx512")
    text = "kernel dot { in A : s64[512]  in B : s64[512]  out C : s64[]\n  C[] += A[k] * B[k] }"
    found = enumerate_each(parse_module(text).kernels[0], own)
    needles = [m.matching.needle for each in found for m in each.mappings]
    sums = [needle for needle in needles if "vsum_s64" in needle.entry.name]
    assert sums
    assert {needle.chain for needle in sums} == {1}


def test_a_changed_description_may_say_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path, "latency_from: {c: 2}")
    path = tmp_path / "child.yaml"
    path.write_text(
        "format: 1\nname: child\nextends: late.yaml\nchange:\n"
        "  mac: {latency: 6, latency_from: {c: 1, a: 5}}\n",
        encoding="utf-8",
    )
    entry = next(e for e in load_hardware(str(path)).entries if e.name == "mac")
    assert [entry.after(name) for name in "abc"] == [5, 6, 1]
    assert main(["hw", "show", str(path)]) == 0
    assert "6, 1 from c, 5 from a" in capsys.readouterr().out
