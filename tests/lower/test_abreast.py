"""Calls that do not depend on each other go on where a queue would wait."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.lower import ordered
from isamap.lower.abreast import calls_abreast
from isamap.lower.nodes import Call, LoweredKernel, Register, Scope, Window
from isamap.lower.queued import queued_cycles
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module

MACHINE = """\
format: 1
name: lanes
clock: 1 GHz
units: {load: 1, work: 1, store: 1}
queues: interlocked
storages:
  v: {kind: registers, count: 64, bits: 128}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction get { in m : f32[4] @ memory    out r : f32[4] @ v    r[i] = m[i] }
    throughput: 2
    latency: 30
    units: load
  - semantics: |
      instruction more { in m : f32[4] @ memory    inout r : f32[4] @ v    r[i] += m[i] }
    throughput: 2
    latency: 30
    units: load
  - semantics: |
      instruction both {
        in a : f32[4] @ v    in b : f32[4] @ v    out r : f32[4] @ v    r[i] = a[i] + b[i]
      }
    throughput: 1
    latency: 7
    units: work
  - semantics: |
      instruction put { in r : f32[4] @ v    out m : f32[4] @ memory    m[i] = r[i] }
    throughput: 2
    latency: 20
    units: store
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path: Path = tmp_path_factory.mktemp("lanes") / "lanes.yaml"
    path.write_text(MACHINE)
    return load_hardware(str(path))


F32 = DTYPES["f32"]
REGISTERS = [Register(f"r{n}", "v", F32, (4,), number=n) for n in range(6)]

numbers = st.integers(0, 5)
calls = st.one_of(
    st.builds(lambda r, at: _call("get", r=r, m=("X", at)), numbers, numbers),
    st.builds(lambda r, at: _call("more", r=r, m=("X", at)), numbers, numbers),
    st.builds(lambda a, b, r: _call("both", a=a, b=b, r=r), numbers, numbers, numbers),
    st.builds(
        lambda r, at, name: _call("put", r=r, m=(name, at)), numbers, numbers, st.sampled_from("XY")
    ),
)


def _call(name: str, **places: int | tuple[str, int]) -> Call:
    operands = (
        (operand, REGISTERS[at] if isinstance(at, int) else Window(at[0], const(4 * at[1])))
        for operand, at in places.items()
    )
    return Call(name, tuple(operands))


def _ordered(machine: Accelerator, given_: list[Call]) -> list[Call]:
    whole = LoweredKernel("k", (), (), (Scope(tuple(REGISTERS), tuple(given_)),))
    (scope,) = calls_abreast(whole, machine).body
    assert isinstance(scope, Scope)
    return [node for node in scope.body if isinstance(node, Call)]


def _touched(machine: Accelerator, call: Call) -> dict[object, bool]:
    """Return the places of a call, and whether it writes each."""
    entry = next(e for e in machine.entries if e.name == call.instruction)
    found: dict[object, bool] = {}
    for name, place in call.operands:
        key = place.name if isinstance(place, Register) else place.buffer  # type: ignore[union-attr]
        writes = entry.instruction.operand(name).role != "in"
        found[key] = found.get(key, False) or writes
    return found


def _end(machine: Accelerator, given_: list[Call]) -> float:
    entries = {entry.name: entry for entry in machine.entries}
    nodes = (Scope(tuple(REGISTERS), tuple(given_)),)
    return queued_cycles(
        nodes,
        machine,
        entries,
        lambda index, counters: float(index.evaluate(dict(counters))),
        lambda _: 1.0,
        lambda _: 0.0,
    )


@given(given_=st.lists(calls, min_size=3, max_size=14, unique_by=id))
def test_what_depends_on_another_call_comes_after_it(
    machine: Accelerator, given_: list[Call]
) -> None:
    made = _ordered(machine, given_)
    assert sorted(map(id, made)) == sorted(map(id, given_))
    at = {id(call): n for n, call in enumerate(made)}
    for n, first in enumerate(given_):
        for then in given_[n + 1 :]:
            one, other = _touched(machine, first), _touched(machine, then)
            if any(one[place] or other[place] for place in one.keys() & other.keys()):
                assert at[id(first)] < at[id(then)]


def test_tiles_that_are_finished_one_by_one_go_on_side_by_side(machine: Accelerator) -> None:
    given_: list[Call] = []
    for n in range(6):
        given_ += [
            _call("get", r=n, m=("X", n)),
            _call("more", r=n, m=("X", n)),
            _call("put", r=n, m=("Y", n)),
        ]
    made = _ordered(machine, given_)
    # One after the other each waits for two loads; side by side the first one's waits hide all.
    assert _end(machine, given_) > 6 * 30
    assert _end(machine, made) < 100
    assert [call.instruction for call in made[:6]] == ["get"] * 6


def test_calls_that_wait_for_nothing_keep_their_order(machine: Accelerator) -> None:
    given_ = [_call("get", r=n, m=("X", n)) for n in (3, 1, 2, 0)]
    assert _ordered(machine, given_) == given_


def test_a_sum_of_two_arrays_takes_a_third_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """kernel resid {
      in X : s8[64, 96]  in R : s8[64, 96]  out Y : s8[64, 96]
      Y[m, n] = sat[s8](s32(X[m, n]) + s32(R[m, n])) }"""
    (kernel,) = parse_module(text).kernels
    hardware, options = load_hardware("gemmini"), Options(prove=False)
    taken = []
    for _ in range(2):
        report = make_report(kernel, hardware, options)
        assert report.check is not None
        assert report.check.ok
        taken.append(report.result.estimate.cycles)
        monkeypatch.setattr(ordered, "calls_abreast", lambda lowered, _: lowered)
    assert 3 * taken[0] < taken[1]
