"""Last iterations that begin earlier give the same results; what would change them is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, Guard, Loop, LoweredKernel, Node, Scope
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.proof.partition import repeated_claims
from isamap.schedule.overlap import cut_tails, overlapping
from isamap.schedule.schedule import Level, Schedule, StatementSchedule, Treatment
from isamap.text.load import load_module, parse_module
from tests.lower.test_lowering import agrees, first_choice, machine

KERNELS = {k.name: k for k in load_module(Path(__file__).parent / "overlap.ir").kernels}
OVERLAPPING = ("product", "finished", "chain", "windows")
MACHINES = ("x86_avx2", "x86_avx512", "aarch64_neon", "x86_amx")


def overlapped(name: str, accelerator: Accelerator) -> tuple[Schedule, LoweredKernel]:
    """Return a first schedule with all tails that can be beginning earlier, and what it becomes."""
    kernel = bind_extents(KERNELS[name])
    schedule = direct(first_choice(kernel, accelerator).schedule)
    own = [
        statement if statement.within is not None else overlapping(statement)
        for statement in schedule.statements
    ]
    assert None not in own
    found = Schedule(tuple(statement for statement in own if statement is not None))
    return found, lower(kernel, accelerator, found)


def direct(schedule: Schedule) -> Schedule:
    """Return a schedule that packs nothing, and has a loop over each variable."""
    return Schedule(tuple(map(_direct, schedule.statements)))


def _direct(own: StatementSchedule) -> StatementSchedule:
    tile, statement = own.mapping.tile, own.mapping.matching.statement
    results = [v.name for v in statement.variables if v.name in statement.target.names]
    sums = [v.name for v in statement.variables if v.name not in statement.target.names]
    levels = tuple(Level(v, tile.get(v, 1)) for v in (*results, *sums))
    kinds = tuple("direct" if kind == "packed" else kind for kind in own.operands)
    return replace(own, levels=levels, operands=kinds, inside=(), early=(), pitches=(), bypass=None)


def calls(nodes: tuple[Node, ...]) -> list[Call]:
    found: list[Call] = []
    for node in nodes:
        match node:
            case Call():
                found.append(node)
            case Loop(body=body) | Scope(body=body):
                found += calls(body)
            case Guard(_, body, otherwise):
                found += [*calls(body), *calls(otherwise)]
            case _:
                pass
    return found


@pytest.mark.parametrize("hardware", MACHINES)
@pytest.mark.parametrize("name", OVERLAPPING)
def test_results_are_those_of_the_kernel(name: str, hardware: str) -> None:
    accelerator = machine(hardware)
    schedule, lowered = overlapped(name, accelerator)
    assert any(level.overlap for own in schedule.statements for level in own.levels)
    agrees(KERNELS[name], lowered, accelerator, 3)


def test_no_part_of_a_vector_is_left() -> None:
    accelerator = machine("x86_avx512")
    schedule, lowered = overlapped("product", accelerator)
    cut = Schedule(tuple(replace(o, levels=cut_tails(o.levels)) for o in schedule.statements))
    before = lower(bind_extents(KERNELS["product"]), accelerator, cut)
    assert any("mask" in call.instruction for call in calls(before.body))
    assert not any("mask" in call.instruction for call in calls(lowered.body))


@pytest.mark.parametrize("name", OVERLAPPING)
def test_the_certificate_proves_it(name: str) -> None:
    accelerator = machine("x86_avx512")
    kernel = bind_extents(KERNELS[name])
    schedule, lowered = overlapped(name, accelerator)
    found = certify(Evidence(kernel, (), kernel, accelerator, schedule, lowered))
    told = [(c.name, c.verdict) for c in found.claims if c.name in ("coverage", "repeated")]
    assert ("repeated", "proved") in told
    assert {verdict for _, verdict in told} == {"proved"}
    assert found.verdict == "proved"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("added", "what C holds is added to"),
        ("again", "X is read and written"),
    ],
)
def test_what_would_be_another_result_is_refused(name: str, why: str) -> None:
    accelerator = machine("x86_avx512")
    with pytest.raises(ScheduleError, match=f"cannot overlap: {why}"):
        overlapped(name, accelerator)
    kernel = bind_extents(KERNELS[name])
    (own,) = direct(first_choice(kernel, accelerator).schedule).statements
    wrong = Schedule(
        (replace(own, levels=(replace(own.levels[0], overlap=True), *own.levels[1:])),)
    )
    assert [c.verdict for c in repeated_claims(kernel, wrong, 0, name)] == ["refuted"]


def refused(own: StatementSchedule, kernel: Kernel) -> str:
    with pytest.raises(ScheduleError) as caught:
        lower(kernel, machine("x86_avx512"), Schedule((own,)))
    return caught.value.diagnostics[0].message


def test_loops_that_cannot_overlap_are_told() -> None:
    accelerator, kernel = machine("x86_avx512"), bind_extents(KERNELS["product"])
    (own,) = overlapped("product", accelerator)[0].statements
    lane = next(v for v, tile in own.mapping.tile.items() if tile > 1)
    index = next(n for n, level in enumerate(own.levels) if level.variable == lane)
    outer = Level(lane, 2 * own.levels[index].step, overlap=True)
    inner = replace(own.levels[index], overlap=False)
    twice = (*own.levels[:index], outer, inner, *own.levels[index + 1 :])
    assert "inside the one that overlaps" in refused(replace(own, levels=twice), kernel)
    packed: tuple[Treatment, ...] = tuple("packed" for _ in own.operands)
    assert "is packed outside its last loop" in refused(replace(own, operands=packed), kernel)
    parts = (own.levels[-1], *own.levels[:-1])
    assert "C is computed in parts" in refused(replace(own, levels=parts), kernel)


def test_where_parts_of_tiles_are_slow_the_first_schedule_overlaps() -> None:
    text = """kernel rows {
      in A : bf16[196, 64]  const B : bf16[64, 32]  out C : f32[196, 32]
      C[m, n] += f32(A[m, k]) * f32(B[k, n])
    }"""
    result = map_kernel(parse_module(text).kernels[0], machine("x86_amx"), Options())
    assert [x.variable for own in result.schedule.statements for x in own.levels if x.overlap] == [
        "m"
    ]
