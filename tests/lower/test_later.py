"""Results that are finished while the next ones are computed."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.later import between
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, Loop, LoweredKernel, Node, Prefetch, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.schedule import Schedule
from isamap.text.load import load_module
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
