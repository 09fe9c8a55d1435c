"""What a call takes by several threads: their parts, their meetings, and what they hand over."""

import pytest

from isamap.diagnostics import Source
from isamap.lower.cost import MEETING, Estimate, estimate
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.source import load_hardware
from isamap.schedule.reader import parse_schedule
from isamap.text.load import parse_module

PRODUCT = """kernel product {{
  in A : f32[{m}, 64]  in B : f32[64, {n}]  out C : f32[{m}, {n}]
  C[m, n] += A[m, k] * B[k, n]
}}"""

PADDED = """kernel padded {{
  in X : bf16[{h}, {h}, 64] pad 0  const F : bf16[3, 3, 64, {k}]  out Y : f32[{h}, {h}, {k}]
  Y[p, q, k] += f32(X[p + r - 1, q + t - 1, c]) * f32(F[r, t, c, k])
}}"""

SEPARATE = """kernel separate {{
  in X : f32[{h}, {h}, 64]  local T : f32[{h}, {h}, 64]  out Y : f32[{h}, {h}, 64]
  T[p, q, c] = X[p, q, c] * 2
  Y[p, q, c] = T[p, q, c] * T[q, p, c]
}}"""


def estimated(kernel: str, schedule: str, threads: int, hardware: str = "x86_avx512") -> Estimate:
    (parsed,) = parse_module(kernel).kernels
    written = parse_schedule(Source("s", f"schedule {parsed.name} {{\n{schedule}\n}}"))
    options = Options(threads=threads, schedule=written)
    return map_kernel(parsed, load_hardware(hardware), options).estimate


@pytest.mark.parametrize(("rounds", "longest"), [(2, 1), (3, 2), (8, 4)])
def test_the_longest_part_counts(rounds: int, longest: int) -> None:
    kernel = PRODUCT.format(m=48 * rounds, n=64)
    schedule = "C {{\n loops m/48{}, n/32, m/6, k/1\n operands A direct, B direct\n }}"
    one, two = (estimated(kernel, schedule.format(" parallel"), n) for n in (1, 2))
    assert two.busy == pytest.approx(one.busy * longest / rounds + MEETING, rel=0.01)
    # Without a loop that they share, one of them does all.
    alone = estimated(kernel, schedule.format(""), 2)
    assert alone.busy == estimated(kernel, schedule.format(""), 1).busy


def test_threads_meet_after_each_loop_that_they_share() -> None:
    kernel = PRODUCT.format(m=96, n=256)
    loops = "C {{\n loops {}, m/6, k/1\n operands A direct, B direct\n }}"
    once = estimated(kernel, loops.format("m/48 parallel, n/32"), 2)
    often = estimated(kernel, loops.format("n/32, m/48 parallel"), 2)
    assert often.busy - once.busy == pytest.approx(7 * MEETING, rel=0.1)


def test_what_others_have_written_is_waited_for() -> None:
    kernel = PADDED.format(h=28, k=128)
    loops = "Y {{\n loops {}, r/1, t/1, c/32\n operands X padded, F packed\n }}"
    rows = loops.format("p/2 parallel, k/16 parallel")
    filters = loops.format("k/16 parallel, p/2 parallel")
    # Threads that share rows pad and read the same ones but for those at the border.
    own, others = (estimated(kernel, one, 2, "x86_amx") for one in (rows, filters))
    assert "threads" not in own.parts
    assert others.parts["threads"] > 0
    assert others.cycles > own.cycles + 0.9 * others.parts["threads"]
    # One thread has written all that it reads.
    assert "threads" not in estimated(kernel, filters, 1, "x86_amx").parts


def test_what_is_too_large_for_their_caches_is_not_handed_over() -> None:
    loops = """Y {
      instruction tdpbf16ps
      axes i <- q, j <- k, k*p <- c
      tile q=16, k=16, c=32
      loops k/16 parallel, p/2 parallel, q/16, r/1, t/1, c/32
      operands X padded, F packed
    }"""
    small, large = (estimated(PADDED.format(h=h, k=64), loops, 2, "x86_amx") for h in (28, 280))
    assert small.parts["threads"] > 0
    assert "threads" not in large.parts
    assert large.parts["l3"] > 0


def test_results_of_other_rows_are_handed_over() -> None:
    schedule = """T {{
      loops p/8{0}, q/1, c/16
    }}
    Y {{
      loops p/8{0}, q/1, c/16
    }}"""
    kernel = SEPARATE.format(h=64)
    two = estimated(kernel, schedule.format(" parallel"), 2)
    # Of T[q, p] a thread has written half.
    assert two.parts["threads"] > 0


def test_loops_that_are_never_entered_hand_over_nothing() -> None:
    text = """kernel sized(N) {
      in X : f32[N, 64]  local T : f32[N, 64]  out Y : f32[64, N]
      T[n, c] = X[n, c] * 2
      Y[c, n] = T[n, c] + 1
    }"""
    (kernel,) = parse_module(text).kernels
    hardware = load_hardware("x86_avx512")
    lowered = map_kernel(kernel, hardware, Options(threads=2)).lowered
    few, many = (estimate(lowered, hardware, {"N": n}, 2) for n in (3, 4096))
    assert 0 < few.cycles < many.cycles
