"""The text of a schedule: what may be left out, and what no text may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import Diagnostic, ScheduleError, Source
from isamap.hw.load import load_hardware
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.schedule.reader import parse_schedule
from isamap.schedule.written import CLAUSES, WrittenSchedule, WrittenStatement
from isamap.text.load import parse_module
from tests.profiles import examples

FULL = """\
# made for M = 24
schedule mm on x86_avx512 {
  rewrite zero-points of C way 2
  together D, C
  calls abreast, again

  # D[m, n] += A[m, k] * B[k, n]
  D#2 {
    instruction vmul_f32 + vadd_f32(a = A[m, k], b = B[k, n + 1]) way 3
    axes i <- [m, n + r], j <- k
    tile m=4, n=4
    loops m/96 parallel, n/64,
          m/8
    operands A packed, B[k, n + 1] as b direct
    stream B[k, n + 1]
    prefetch A 2 of m, B[k, n + 1] as b 16 of n, D
    results uncached, later
  }
  tile { within D#2 }
  C { along D#2 }
}
"""
WORDS = (
    *CLAUSES,
    *"{}()[],=/+#",
    "<-",
    "none",
    "way",
    "calls",
    "once",
    "as",
    "of",
    "on",
    "C",
    "m",
    "4",
    "\n",
    "é",
)


def read(text: str) -> WrittenSchedule:
    return parse_schedule(Source("x.schedule", text))


def test_everything_that_may_be_said_is_read() -> None:
    found = read(FULL)
    assert (found.kernel.text, found.machine and found.machine.text) == ("mm", "x86_avx512")
    (rewriting,) = found.rewritings
    assert (rewriting.rule.text, rewriting.statement.text) == ("zero-points", "C")
    assert rewriting.way is not None
    assert rewriting.way.number == 2
    assert [[word.text for word in words] for words in found.together] == [["D", "C"]]
    assert [word.text for word in found.calls] == ["abreast", "again"]
    first, second, third = found.statements
    assert first.instruction is not None
    assert first.instruction.name.text == "vmul_f32 + vadd_f32"
    assert first.instruction.bound is not None
    assert [(o.text, e.text) for o, e in first.instruction.bound] == [
        ("a", "A[m,k]"),
        ("b", "B[k,n+1]"),
    ]
    assert first.axes is not None
    assert [(a.text, [f.text for f in forms]) for a, forms in first.axes] == [
        ("i", ["m", "n+r"]),
        ("j", ["k"]),
    ]
    assert first.loops is not None
    assert [(v.variable.text, v.step.number, v.parallel) for v in first.loops] == [
        ("m", 96, True),
        ("n", 64, False),
        ("m", 8, False),
    ]
    assert first.operands is not None
    assert [(o.what.text, o.operand and o.operand.text, o.treatment.text) for o in first.operands]
    assert first.prefetch is not None
    assert [
        (e.what.text, e.operand and e.operand.text, e.count and e.count.number)
        for e in first.prefetch
    ] == [("A", None, 2), ("B[k,n+1]", "b", 16), ("D", None, None)]
    assert first.results is not None
    assert [word.text for word in first.results] == ["uncached", "later"]
    assert (second.name.text, second.within and second.within.text) == ("tile", "D#2")
    assert (third.along and third.along.text, third.loops) == ("D#2", None)


def test_words_after_a_loop_or_an_operand_come_in_any_order() -> None:
    def statement(text: str) -> WrittenStatement:
        source = Source("x.schedule", f"schedule mm {{ C {{ {text} }} }}")
        return parse_schedule(source).statements[0]

    (one,) = statement("loops m/4 overlap parallel").loops or ()
    assert one.parallel
    assert one.overlap is not None
    (own,) = statement("operands A padded pitch 80 inside 2").operands or ()
    assert (own.inside and own.inside.number, own.pitch and own.pitch.number) == (2, 80)
    (own,) = statement("operands A padded inside 2 pitch 80").operands or ()
    assert (own.inside and own.inside.number, own.pitch and own.pitch.number) == (2, 80)


def test_comments_and_line_ends_say_nothing() -> None:
    text = "schedule mm{#x\nC{loops m/4,#y\nn/16#z\n}}"
    (statement,) = read(text).statements
    assert statement.loops is not None
    assert [level.step.number for level in statement.loops] == [4, 16]


@examples(5.0)
@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_no_text_does_anything_but_be_read_or_refused(words: list[str]) -> None:
    try:
        read("schedule mm {" + " ".join(words))
    except ScheduleError as error:
        told = error.diagnostics
    else:
        return
    assert told
    assert all(d.code in ("E410", "E411", "") for d in told)
    assert all(d.span is not None for d in told if d.code)


@examples(5.0)
@given(st.integers(0, len(FULL)), st.integers(0, len(FULL)))
def test_what_is_cut_out_of_a_text_is_told_in_its_place(start: int, end: int) -> None:
    text = FULL[: min(start, end)] + FULL[max(start, end) :]
    told: tuple[Diagnostic, ...] = ()
    try:
        read(text)
    except ScheduleError as error:
        told = error.diagnostics
    lines = text.count("\n") + 1
    assert all(d.span is not None and 1 <= d.span.line <= lines for d in told if d.code)


def test_all_errors_of_a_text_are_told_at_once() -> None:
    with pytest.raises(ScheduleError) as caught:
        read("schedule mm {\n C { loops m\n tile m\n }\n D { axes\n }\n}")
    assert [d.span.line for d in caught.value.diagnostics if d.span] == [3, 4, 6]


def test_what_an_operand_is_made_of_is_told_where_it_cannot_lie_as_it_does() -> None:
    # b of fadd is a product: of A, one element of it, and B, which is transposed.
    text = "kernel k { in A : f32[8, 16]  in B : f32[32, 16]  out C : f32[8, 32] "
    (kernel,) = parse_module(text + "C[m, n] += A[m, k] * B[n, k] }").kernels
    written = "C {\n instruction fadd\n axes i <- n\n tile n=4\n loops none\n"
    written += " operands A direct, B packed\n}\n"
    schedule = parse_schedule(Source("s.sched", f"schedule k on aarch64_neon {{\n{written}}}\n"))
    with pytest.raises(ScheduleError) as caught:
        map_kernel(kernel, load_hardware("aarch64_neon"), Options(schedule=schedule))
    (found,) = caught.value.diagnostics
    assert found.code == "E415"
    assert found.hint == "it is made of A[m, k] and B[n, k]: all can be packed"
