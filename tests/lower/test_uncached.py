"""Stores past the caches: the same results, other templates, a fence before anybody reads them."""

from dataclasses import replace

import numpy as np
import pytest

from isamap.diagnostics import ScheduleError, Source
from isamap.emit.c import emit_c
from isamap.emit.liveness import calls
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.lower import lower
from isamap.lower.nodes import LoweredKernel
from isamap.lower.printer import print_lowered
from isamap.lower.uncached import uncached
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.proof.certificate import certify
from isamap.proof.evidence import Evidence
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Level, Schedule
from isamap.text.load import parse_module
from tests.lower.test_lowering import KERNELS, agrees, first_choice, machine

TWICE = """kernel twice(R = {rows}, C = {columns}) {{
  in X : f32[R, C]  local T : f32[R, C]  out Y : f32[R, C]{more}
  T[r, c] = X[r, c] + 1
  Y[r, c] = T[r, c] * T[r, c]{last}
}}"""


def twice(rows: int, columns: int, more: str = "", last: str = "") -> Kernel:
    text = TWICE.format(rows=rows, columns=columns, more=more, last=last)
    return parse_module(text, "test.ir").kernels[0]


def past(schedule: Schedule) -> Schedule:
    return Schedule(tuple(replace(own, bypass=True) for own in schedule.statements))


def stores(lowered: LoweredKernel) -> list[bool]:
    return [c.bypass for c in calls(lowered.code) if c.instruction.startswith("vstore")]


@pytest.mark.parametrize("hardware", ["portable_c", "x86_avx2", "x86_avx512"])
def test_only_the_way_of_storing_changes(hardware: str) -> None:
    changed = 0
    for name, kernel in KERNELS.items():
        accelerator = machine(hardware)
        choice = first_choice(kernel, accelerator)
        lowered = lower(kernel, accelerator, past(choice.schedule))
        text = print_lowered(lowered)
        assert text.replace(" past the caches", "") == print_lowered(choice.lowered), name
        changed += " past the caches" in text
    assert (changed > 5) == (hardware != "portable_c")
    agrees(kernel, lowered, accelerator, 1)


def test_what_is_too_large_for_all_caches_bypasses_them() -> None:
    accelerator = machine("x86_avx512")
    assert accelerator.largest_cache == 32 << 20

    def bypasses(kernel: Kernel) -> bool:
        result = map_kernel(kernel, accelerator, Options())
        (flag,) = {own.bypass for own in result.schedule.statements[:1]}
        assert any(stores(result.lowered)) == bool(flag)
        return bool(flag)

    assert bypasses(twice(5462, 1024))
    assert not bypasses(twice(5461, 1024))  # just fits two thirds
    # Something that is read again is wanted in the cache.
    assert not bypasses(twice(8193, 1024, "  out Z : f32[C]", "\n  Z[c] += Y[r, c]"))
    assert (
        not map_kernel(twice(8193, 1024), machine("portable_c"), Options())
        .schedule.statements[0]
        .bypass
    )


def test_what_lies_in_the_place_of_an_output_keeps_it_in_the_caches() -> None:
    text = """kernel softmax(R = 8192, C = 1024) {
      in X : f32[R, C]  local E : f32[R, C]  local S : f32[R]  out Y : f32[R, C]
      E[r, c] = exp(X[r, c])
      S[r] += E[r, c]
      Y[r, c] = E[r, c] / S[r]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    result = map_kernel(kernel, machine("x86_avx512"), Options())
    assert result.lowered.lent
    assert not any(stores(result.lowered))


def test_where_memory_is_waited_for_a_round_keeps_its_part_elsewhere() -> None:
    text = """kernel centred(R = 4096, C = 4096) {
      in X : f32[R, C]  local S : f32[R]  local D : f32[R, C]  local V : f32[R]  out Y : f32[R, C]
      S[r] += X[r, c]
      D[r, c] = X[r, c] - S[r] * 0.000244140625
      V[r] += D[r, c] * D[r, c]
      Y[r, c] = D[r, c] * rsqrt(V[r])
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    result = map_kernel(kernel, machine("x86_avx512"), Options())
    assert result.estimate.waits_for(machine("x86_avx512"))
    assert not result.lowered.lent
    assert result.schedule.statements[-1].bypass
    (own,) = (a for a in result.lowered.arrays if a.name == "D")
    assert own.size.constant is not None
    assert own.size.constant * 64 <= 4096 * 4096, "it has the rows of one round"
    # Where its last reader does not go round with the others, it would need an array of its own.
    bound, known = bind_extents(result.mapped), result.schedule.statements
    last = replace(known[-1], along=None, bypass=None)
    apart = Schedule((*known[:-1], last))
    assert uncached(bound, result.accelerator, apart, set(), waits=True) == apart


def test_sums_in_parts_stay_in_the_caches() -> None:
    text = """kernel gemm(M = 8193, N = 1024, K = 4096) {
      in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
      C[m, n] += A[m, k] * B[k, n]
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]

    accelerator = machine("x86_avx512")
    own = first_choice(kernel, accelerator).schedule.statements[0]

    def bypass(*names: str) -> bool | None:
        steps = {"m": 8, "n": 48, "k": 512 if names[0] == "k" else 1}
        levels = tuple(Level(v, steps[v]) for v in names)
        schedule = Schedule((replace(own, levels=levels, bypass=None),))
        return uncached(bind_extents(kernel), accelerator, schedule, set()).statements[0].bypass

    assert bypass("n", "m", "k") is True
    assert bypass("k", "n", "m") is None
    # What is settled, or said already, is nothing to the rule.
    levels = tuple(Level(v, 48 if v == "n" else 1) for v in "nmk")
    said = Schedule((replace(own, levels=levels, bypass=False),))
    said = replace(said, abreast=False, once=True)
    assert uncached(bind_extents(kernel), accelerator, said, set()) == said
    open_ = Schedule((replace(own, levels=levels, bypass=None),))
    assert uncached(bind_extents(kernel), accelerator, open_, {0}) == open_


def text_of(lowered: LoweredKernel, accelerator: Accelerator, kernel: Kernel) -> str:
    return emit_c(lowered, accelerator, kernel).functions


def test_the_c_has_a_fence_where_threads_meet_and_at_the_end() -> None:
    text = """kernel two(N = 4096) {
      in X : f32[N]  out Y : f32[N]  out Z : f32[N]
      Y[i] = X[i] * X[i]
      Z[i] = Y[4095 - i] + 1
    }"""
    kernel = parse_module(text, "test.ir").kernels[0]
    accelerator = machine("x86_avx512")
    result = map_kernel(kernel, accelerator, Options(threads=2))
    shared = Schedule(
        tuple(
            replace(s, levels=tuple(replace(level, parallel=True) for level in s.levels))
            for s in result.schedule.statements
        )
    )
    plain = text_of(lower(kernel, accelerator, shared), accelerator, kernel)
    assert "_mm_sfence" not in plain
    assert "isamap_stream_ps" not in plain
    lines = text_of(lower(kernel, accelerator, past(shared)), accelerator, kernel).splitlines()
    meets = [n for n, line in enumerate(lines) if "isamap_meet(" in line]
    assert meets
    assert all("_mm_sfence();" in lines[n - 1] for n in meets)
    ends = [n for n, line in enumerate(lines) if "_mm_sfence();" in line]
    assert len(ends) == len(meets) + 1
    assert lines[ends[-1] + 1] == "}", "the last thing that a thread does"


def test_arrays_need_no_alignment() -> None:
    accelerator = load_hardware("native")
    kernel = twice(50, 70)
    result = map_kernel(kernel, accelerator, Options())
    made = past(result.schedule)
    lowered = lower(result.mapped, accelerator, made)
    compiled = replace(result, schedule=made, lowered=lowered).compile()
    x = np.random.default_rng(0).integers(-4, 5, (50, 70)).astype(np.float32)
    room = np.zeros(50 * 70 + 16, np.float32)
    start = -room.ctypes.data // 4 % 16  # elements up to the next line
    for shift in (0, 1, 8):
        out = room[(start + shift) % 16 :][: 50 * 70].reshape(50, 70)
        out[:] = 0
        compiled.call({"X": x}, {}, out={"Y": out})
        np.testing.assert_array_equal(out, (x + 1) ** 2)


def test_the_certificate_proves_it() -> None:
    kernel = twice(50, 70)
    accelerator = machine("x86_avx512")
    result = map_kernel(kernel, accelerator, Options())
    made = past(result.schedule)
    lowered = lower(result.mapped, accelerator, made)
    assert any(stores(lowered))
    certificate = certify(Evidence(kernel, (), kernel, accelerator, made, lowered))
    assert {claim.verdict for claim in certificate.claims} <= {"proved", "assumed", "noted"}


def test_a_text_says_it() -> None:
    kernel = twice(50, 70)
    read = parse_schedule(Source("x.schedule", "schedule twice { T { results uncached } }"))
    result = map_kernel(kernel, machine("x86_avx512"), Options(schedule=read))
    assert any(stores(result.lowered))
    with pytest.raises(ScheduleError, match=r"error\[E415\]: no instruction of portable_c"):
        map_kernel(kernel, machine("portable_c"), Options(schedule=read))
