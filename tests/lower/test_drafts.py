"""Drafts of statements, which serve all schedules of a kernel that have them in common."""

from dataclasses import replace

import pytest

from isamap.diagnostics import ScheduleError
from isamap.hw.load import load_hardware
from isamap.ir.printer import print_statement
from isamap.lower import lower as lowering
from isamap.lower.apart import every
from isamap.lower.cost import estimate
from isamap.lower.drafts import Drafts
from isamap.lower.lower import lower
from isamap.lower.nodes import Call, LoweredKernel
from isamap.pipeline.mapped import map_kernel
from isamap.text.load import parse_module

BLOCK = """kernel block permit reassociate {
  in X : f32[64, 96]  const W : f32[96, 80]  const B : f32[80]
  local H : f32[64, 80]  local G : f32[64, 80]  local M : f32[64]  local S : f32[64]
  out Y : f32[64, 80]
  H[r, d] += X[r, c] * W[c, d]
  G[r, d] = max(H[r, d] + B[d], 0)
  M[r] max= G[r, d]
  S[r] += G[r, d] * G[r, d]
  Y[r, d] = (G[r, d] - M[r]) * S[r] }
"""


BYTES = """kernel bytes {
  in X : s8[64, 96]  const W : s8[96, 80]  local S : s32[64, 80]  out Y : s8[64, 80]
  in R : s8[64, 80]  out Z : s8[64, 80]
  S[r, d] += s32(X[r, c]) * s32(W[c, d])
  Y[r, d] = sat[s8](S[r, d])
  Z[r, d] = sat[s8](s32(Y[r, d]) + s32(R[r, d])) }
"""


def shape(lowered: LoweredKernel) -> list[tuple[str, ...]]:
    """Return what a lowered kernel does, in order, without names and places."""
    nodes = every((*lowered.prepare, *lowered.body))
    return [(type(n).__name__, *([n.instruction] if isinstance(n, Call) else ())) for n in nodes]


@pytest.mark.parametrize("machine", ["x86_avx512_zen4", "x86_amx", "riscv_rvv", "gemmini"])
def test_a_kernel_made_of_drafts_differs_in_names_only(machine: str) -> None:
    hardware = load_hardware(machine)
    (kernel,) = parse_module(BYTES if machine == "gemmini" else BLOCK).kernels
    found = map_kernel(kernel, hardware)
    schedule = found.schedule
    drafts = Drafts()
    for threads in (1, 2):
        draft = lower(found.mapped, hardware, schedule, drafts=drafts)
        whole = lower(found.mapped, hardware, schedule)
        assert shape(draft) == shape(whole)
        mine = estimate(draft, hardware, threads=threads)
        assert mine == estimate(whole, hardware, threads=threads)


def test_statements_that_schedules_have_in_common_are_lowered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []
    before = lowering.lower_statement

    def counting(context, statement, *rest):  # type: ignore[no-untyped-def]
        made.append(print_statement(statement))
        return before(context, statement, *rest)

    monkeypatch.setattr(lowering, "lower_statement", counting)
    hardware = load_hardware("x86_avx512_zen4")
    (kernel,) = parse_module(BLOCK).kernels
    found = map_kernel(kernel, hardware)
    own = found.schedule.statements
    alone = replace(found.schedule, statements=tuple(replace(s, along=None) for s in own))
    made.clear()
    drafts = Drafts()
    for schedule in (found.schedule, alone, found.schedule):
        lower(found.mapped, hardware, schedule, drafts=drafts)
    assert len(made) == len([s for s in own if s.within is None])
    assert len(made) == len({*made})


def test_what_cannot_be_lowered_is_refused_again() -> None:
    hardware = load_hardware("x86_avx512_zen4")
    (kernel,) = parse_module(BLOCK).kernels
    found = map_kernel(kernel, hardware)
    own = found.schedule.statements[0]
    levels = tuple(replace(level, step=level.step + 1) for level in own.levels)
    wrong = found.schedule.with_statement(0, replace(own, levels=levels))
    drafts = Drafts()
    messages = []
    for _ in range(2):
        with pytest.raises(ScheduleError) as error:
            lower(found.mapped, hardware, wrong, drafts=drafts)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
