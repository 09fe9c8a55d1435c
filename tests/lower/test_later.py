"""Results that are finished while the next ones are computed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.later import between
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Prefetch, Register, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.schedule import Level, Schedule
from isamap.text.load import load_module, parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "later.ir").kernels}
THREADS = (1, 2)


def later(name: str, threads: int = 1) -> tuple[Schedule, LoweredKernel, LoweredKernel]:
    """Return a kernel's schedule with results finished later, and what it and the other become."""
    kernel, accelerator = bind_extents(KERNELS[name]), machine("x86_amx")
    found = map_kernel(kernel, accelerator, Options(threads=threads)).schedule
    (root,) = {own.within for own in found.statements if own.within is not None}
    one, other = (
        Schedule(
            tuple(
                replace(own, later=flag) if n == root else own
                for n, own in enumerate(found.statements)
            )
        )
        for flag in (True, False)
    )
    return one, lower(kernel, accelerator, one), lower(kernel, accelerator, other)


def handed_on(nodes: tuple[Node, ...], declared: frozenset[str] = frozenset()) -> set[str]:
    """Return registers that are declared outside of a loop and written inside of it."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case Loop(body=body):
                inside = {r for call in _calls(body) for r in call}
                found |= (inside & declared) | handed_on(body, declared)
            case Scope(registers, body):
                names = frozenset(r.name for r in registers if r.storage == "rows")
                found |= handed_on(body, declared | names)
            case _:
                pass
    return found


def _calls(nodes: tuple[Node, ...]) -> list[set[str]]:
    found: list[set[str]] = []
    for node in nodes:
        match node:
            case Call(operands=operands):
                found.append({getattr(place, "name", "") for _, place in operands})
            case Loop(body=body) | Scope(body=body):
                found += _calls(body)
            case _:
                pass
    return found


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", KERNELS)
def test_results_are_those_of_the_kernel(name: str, threads: int) -> None:
    _, lowered, other = later(name, threads)
    # Of a loop that threads share, no iteration follows another one.
    assert handed_on(lowered.body) or threads > 1
    assert not handed_on(other.body)
    agrees(KERNELS[name], lowered, machine("x86_amx"), 7)


@pytest.mark.parametrize("name", KERNELS)
def test_the_certificate_proves_it(name: str) -> None:
    kernel = bind_extents(KERNELS[name])
    schedule, lowered, _ = later(name)
    found = certify(Evidence(kernel, (), kernel, machine("x86_amx"), schedule, lowered))
    assert found.verdict == "proved"


def test_the_estimate_has_units_work_beside_each_other() -> None:
    _, lowered, other = later("plain")
    accelerator = machine("x86_amx")
    assert estimate(lowered, accelerator).busy < 0.9 * estimate(other, accelerator).busy


def test_the_first_schedule_does_it_where_tiles_and_vectors_are_apart() -> None:
    kernel = bind_extents(KERNELS["plain"])
    for hardware, expected in (("x86_amx", True), ("x86_avx512", False)):
        schedule = map_kernel(kernel, machine(hardware), Options()).schedule
        assert any(own.later for own in schedule.statements) == expected


@pytest.mark.parametrize(
    ("columns", "terms", "expected"),
    [(64, 128, True), (128, 256, True), (80, 128, False), (320, 128, False), (64, 512, False)],
    ids=["few", "short", "rest", "many", "long"],
)
def test_the_last_block_of_some_rows_hands_on_to_the_first_of_the_next_ones(
    columns: int, terms: int, expected: bool
) -> None:
    text = f"""kernel product {{
      in A : bf16[112, {terms}]  const B : bf16[{terms}, {columns}]  local S : f32[112, {columns}]
      out C : bf16[112, {columns}]
      S[m, n] += f32(A[m, k]) * f32(B[k, n])
      C[m, n] = bf16(S[m, n])
    }}"""
    (kernel,) = parse_module(text).kernels
    hardware = machine("x86_amx")
    found = map_kernel(kernel, hardware, Options()).schedule
    levels = (Level("m", 32), Level("n", 32), Level("k", 32))
    root = replace(found.statements[0], levels=levels, later=True, past=())
    assert found.statements[1].within == 0
    schedule = Schedule((root, found.statements[1]))
    lowered = lower(kernel, hardware, schedule)
    # Registers that all rows of blocks share are declared outside of their loop.
    scopes = [node for node in lowered.body if isinstance(node, Scope) and node.registers]
    counters = {node.counter for own in scopes for node in own.body if isinstance(node, Loop)}
    assert any(counter.startswith("m_") for counter in counters) == expected
    agrees(kernel, lowered, hardware, 3)
    proof = certify(Evidence(kernel, (), kernel, hardware, schedule, lowered))
    assert proof.verdict == "proved"


def test_results_that_stay_in_their_registers_are_not_finished_later() -> None:
    kernel, accelerator = bind_extents(KERNELS["plain"]), machine("x86_avx512")
    schedule = first_choice(kernel, accelerator).schedule
    root = replace(schedule.statements[0], later=True)
    joined = replace(schedule.statements[1], within=0)
    with pytest.raises(ScheduleError, match="C is not finished later: nothing takes it out"):
        lower(kernel, accelerator, Schedule((root, joined)))


def test_units_are_spread_over_the_parts_of_a_reduction() -> None:
    parts = [[Prefetch("l1", "A", n)] for n in range(3)]  # type: ignore[arg-type]
    units = [(Prefetch("l1", "B", n),) for n in range(4)]  # type: ignore[arg-type]
    names = [node.buffer for node in between(parts, units) if isinstance(node, Prefetch)]
    assert names == ["A", "B", "A", "B", "A", "B", "B"]


def test_what_finishes_a_tile_stands_between_the_calls_of_a_part() -> None:
    def call(name: str) -> Call:
        return Call(name, ())

    def names(nodes: Sequence[Node]) -> list[str]:
        found: list[str] = []
        for node in nodes:
            inside = node.body if isinstance(node, Scope | Loop) else ()
            found += names(inside) if inside else [node.instruction]  # type: ignore[union-attr]
        return found

    register = Register("r", "rows", DTYPES["f32"], (16, 16))
    steps = [Scope((), (call("load"), call("a"), call("b"))), Scope((), (call("c"), call("d")))]
    unit = (Scope((register,), (call("x"), Scope((), (call("y"), call("z"))))),)
    (woven,) = between([steps], [unit])
    # Its registers are there while all of it is done.
    assert isinstance(woven, Scope)
    assert woven.registers == (register,)
    assert names(woven.body) == ["load", "a", "x", "b", "c", "y", "d", "z"]
    # What has no calls, as where all that it would add is nothing, keeps what is to be finished.
    assert names(between([[], steps], [unit, unit]))[:3] == ["x", "y", "z"]
    # There is no place in a loop for what is done once.
    loop = Loop("k", const(4), tuple(steps))
    assert names(between([[loop]], [unit])) == [*names(steps), "x", "y", "z"]


def test_steps_stand_alone_where_that_is_little_code() -> None:
    """Sixteen products of four tiles have what finishes four others between them."""
    for terms, loops in ((256, False), (4096, True)):
        text = f"""kernel product {{
          in A : bf16[96, {terms}]  const B : bf16[{terms}, 64]  local S : f32[96, 64]
          out C : bf16[96, 64]
          S[m, n] += f32(A[m, k]) * f32(B[k, n])
          C[m, n] = bf16(S[m, n])
        }}"""
        (kernel,) = parse_module(text).kernels
        own = map_kernel(kernel, machine("x86_amx"), Options()).schedule
        assert own.statements[1].within == 0
        if not own.statements[0].later:
            own = own.with_results_later(0)
        found = lower(kernel, machine("x86_amx"), own)
        assert any(name.startswith("k") for name in _counters(found.body)) == loops


def _counters(nodes: Sequence[Node]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        match node:
            case Loop(counter, body=body):
                found += [counter, *_counters(body)]
            case Scope(body=body) | Guard(body=body):
                found += _counters(body)
            case _:
                pass
    return found
