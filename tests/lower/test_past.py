"""Loads past the first cache: the same results, and room for what stays in that cache."""

from dataclasses import replace

import pytest

from isamap.diagnostics import ScheduleError, Source
from isamap.emit.c import emit_c
from isamap.emit.liveness import calls
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, LoweredKernel
from isamap.lower.printer import print_lowered
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Schedule
from isamap.text.load import parse_module
from tests.lower.test_lowering import agrees, first_choice, machine


def product(rows: int, columns: int, terms: int) -> Kernel:
    text = f"""kernel product {{
      in A : u8[{rows}, {terms}]  const B : s8[{terms}, {columns}]  out C : s32[{rows}, {columns}]
      C[m, n] += s32(A[m, k]) * s32(B[k, n])
    }}"""
    return bind_extents(parse_module(text).kernels[0])


def loads(lowered: LoweredKernel) -> dict[str, set[bool]]:
    """Return for each array whether loads from it go past the first cache."""
    found: dict[str, set[bool]] = {}
    for call in calls(lowered.code):
        for _, place in call.operands:
            if call.instruction.startswith("tile_load") and hasattr(place, "buffer"):
                found.setdefault(place.buffer, set()).add(call.bypass)
    return found


def past(schedule: Schedule, *accesses: int) -> Schedule:
    return Schedule((replace(schedule.statements[0], past=accesses),))


def test_only_the_loads_of_that_access_change() -> None:
    kernel, accelerator = product(40, 70, 130), machine("x86_amx")
    choice = first_choice(kernel, accelerator)
    assert choice.schedule.statements[0].operands[1] == "packed"
    for accesses, expected in (((), {}), ((1,), {"B_packed"}), ((0, 1), {"A", "B_packed"})):
        lowered = lower(kernel, accelerator, past(choice.schedule, *accesses))
        found = loads(lowered)
        assert {name for name, flags in found.items() if flags == {True}} == set(expected)
        assert all(len(flags) == 1 for flags in found.values())
        agrees(kernel, lowered, accelerator, 3)
        code = emit_c(lowered, accelerator, kernel).functions
        assert ("isamap_tile_load_past(" in code) == bool(expected)
        # Nothing is written past any cache: nobody has to wait for it.
        assert "_mm_sfence" not in code


def test_what_goes_past_is_asked_for_first() -> None:
    kernel, accelerator = product(64, 64, 256), machine("x86_amx")
    schedule = past(first_choice(kernel, accelerator).schedule, 1)
    lowered = lower(kernel, accelerator, schedule)
    names = [
        (call.instruction, call.bypass) for call in calls(lowered.body) if isinstance(call, Call)
    ]
    first = names.index(("tdpbusd", False))
    assert [flag for _, flag in names[:first] if _.startswith("tile_load")][:2] == [True, True]


def test_a_panel_stays_in_the_first_cache_while_others_pass_by() -> None:
    # 32 rows of 1024 bytes, and 32 columns at a time: together more than the first cache has.
    kernel, accelerator = product(32, 1024, 1024), machine("x86_amx")
    found = map_kernel(kernel, accelerator, Options()).schedule
    assert found.statements[0].past == (1,)
    plain, own = (
        estimate(lower(kernel, accelerator, s), accelerator) for s in (past(found), found)
    )
    assert own.cycles * 1.2 < plain.cycles
    # The panel came from the second cache for each of 32 blocks of columns, at 44 bytes a cycle.
    assert plain.parts["l2"] - own.parts["l2"] > 0.7 * 32 * 32 * 1024 / 44


def test_what_is_read_again_from_the_first_cache_does_not_go_past_it() -> None:
    kernel, accelerator = product(512, 32, 512), machine("x86_amx")
    found = map_kernel(kernel, accelerator, Options()).schedule
    own = found.statements[0]
    # The columns stay: they are what every block of rows reads.
    assert 1 not in own.past
    lowered = lower(kernel, accelerator, past(found, 1))
    assert (
        estimate(lowered, accelerator).cycles
        >= estimate(lower(kernel, accelerator, past(found)), accelerator).cycles
    )


def test_machines_without_such_loads_have_none() -> None:
    found = map_kernel(product(32, 1024, 1024), machine("x86_avx512"), Options())
    assert not any(own.past for own in found.schedule.statements)
    assert " past the caches" not in print_lowered(found.lowered)


def test_the_certificate_proves_it() -> None:
    kernel, accelerator = product(40, 70, 130), machine("x86_amx")
    schedule = past(first_choice(kernel, accelerator).schedule, 1)
    lowered = lower(kernel, accelerator, schedule)
    found = certify(Evidence(kernel, (), kernel, accelerator, schedule, lowered))
    assert found.verdict == "proved"


def written(
    clause: str, hardware: str = "x86_amx", size: tuple[int, int, int] = (40, 70, 130)
) -> Schedule:
    text = f"schedule product {{\n  C {{\n    {clause}\n  }}\n}}\n"
    options = Options(prove=False, schedule=parse_schedule(Source("s.sched", text)))
    return map_kernel(product(*size), machine(hardware), options).schedule


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("past B", (1,)),
        ("past B[k, n] as b", (1,)),
        ("past A, B", (0, 1)),
        ("past none", ()),
        ("loops m/32, n/32, k/64\n    past none", ()),
    ],
)
def test_a_schedule_says_it(clause: str, expected: tuple[int, ...]) -> None:
    assert written(clause).statements[0].past == expected


@pytest.mark.parametrize(
    ("clause", "hardware", "message"),
    [
        ("past X", "x86_amx", r"s\.sched:3:10: error\[E412\]: there is no access 'X'"),
        ("past B, B", "x86_amx", r"s\.sched:3:13: error\[E4\d\d\]: 'B' is said twice"),
        ("past B", "x86_avx512", r"s\.sched:3:10: error\[E415\]: no instruction of x86_avx512"),
    ],
)
def test_faults_of_it_are_told(clause: str, hardware: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        written(clause, hardware)


FINISHED = """kernel finished({rows}) {{
  in A : u8[{m}, 1024]  const B : s8[1024, 1024]  in Z : s32[1024]
  local S : s32[{m}, 1024]  out C : s8[{m}, 1024]
  S[m, n] += s32(A[m, k]) * s32(B[k, n])
  C[m, n] = sat[s8](f32(S[m, n] + Z[n]) * 0.0625)
}}"""


def test_results_that_are_finished_later_leave_a_panel_where_it_is() -> None:
    """Steps that stand alone fill two thirds of the first cache and more: part of it stays."""
    kernel = parse_module(FINISHED.format(rows="", m=64)).kernels[0]
    found = map_kernel(kernel, machine("x86_amx"), Options(prove=False)).schedule
    assert found.statements[0].later
    assert found.statements[0].past == (1,)


def test_each_access_is_tried_alone() -> None:
    """That of the panel would gain a little, too, and keep the stream in its way."""
    kernel = parse_module(FINISHED.format(rows="", m=256)).kernels[0]
    accelerator = machine("x86_amx")
    found = map_kernel(kernel, accelerator, Options(prove=False))
    own = found.schedule.statements[0]
    ways: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (0, 1))
    cycles = {
        past: estimate(
            lower(
                bind_extents(found.mapped),
                accelerator,
                found.schedule.with_statement(0, replace(own, past=past)),
            ),
            accelerator,
        ).cycles
        for past in ways
    }
    assert cycles[own.past] < 1.03 * min(cycles.values())


def test_a_block_without_a_register_to_spare_brings_nothing_ahead() -> None:
    loops = "loops m/16, n/96, k/64\n    past B"
    # Six results, one row, one column: a second column has no register.
    assert written(loops, size=(40, 200, 520)).statements[0].past == (1,)


def test_results_that_can_be_taken_are_where_sizes_are_not_known() -> None:
    """The product that is fastest alone stores columns, which nothing finishes in registers."""
    kernel = parse_module(FINISHED.format(rows="M", m="M")).kernels[0]
    found = map_kernel(kernel, machine("x86_amx"), Options(prove=False)).schedule
    assert [own.within for own in found.statements] == [None, 0]
