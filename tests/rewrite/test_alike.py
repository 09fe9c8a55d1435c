"""Local buffers that hold the same are one."""

import numpy as np
import pytest

from isamap.diagnostics import Source
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.schedule_text import schedule_text
from isamap.rewrite.alike import NAME
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import rules_for
from isamap.schedule.reader import parse_schedule
from tests.rewrite.products import assert_valid, kernel_of

GIVEN = "in X : s8[4, 6]  inout Z : s8[4, 6] local A : s16[4, 6] "
GIVEN += " local B : s16[4, 6]  out Y : s16[4, 6]"
FIRST = "A[i, j] = s16(X[i, j])"


def shared(*lines: str, given: str = GIVEN) -> list[str] | None:
    text = "\n".join((FIRST, *lines))
    kernel = kernel_of(f"kernel k {{ {given}\n{text} }}")
    found = [
        one
        for n in range(len(kernel.statements))
        for one in rewritings(kernel, n, rules_for((), (NAME,))).proved
    ]
    if not found:
        return None
    (only,) = found
    assert_valid(only, kernel)
    inputs = random_inputs(kernel, {}, 3)
    want = interpret(kernel, {name: array.copy() for name, array in inputs.items()})
    got = interpret(only.kernel, inputs)
    for name in ("Y", "Z"):
        np.testing.assert_array_equal(got[name], want[name])
    assert "B" not in [buffer.name for buffer in only.kernel.buffers]
    return [print_statement(one) for one in only.kernel.statements]


SUM = "Y[i, j] = A[i, j] + B[i, j]"


def test_what_is_alike_is_computed_once() -> None:
    left = [FIRST, "Y[i, j] = A[i, j] + A[i, j]"]
    assert shared("B[i, j] = s16(X[i, j])", SUM) == left
    # The names of variables say nothing.
    assert shared("B[p, q] = s16(X[p, q])", SUM) == left


@pytest.mark.parametrize(
    "lines",
    [
        ("B[i, j] = s16(X[i, j]) + 1", SUM),
        ("B[i, j] = s16(Z[i, j])", SUM),
        ("B[i, j] = s16(X[i, j])", "B[i, j] += 1", SUM),  # more is done to it
        ("A[i, j] += 1", "B[i, j] = s16(X[i, j])", SUM),
    ],
)
def test_what_is_not_stays(lines: tuple[str, ...]) -> None:
    assert shared(*lines) is None


def test_what_is_read_must_be_the_same_in_between() -> None:
    between = ("Z[i, j] = X[i, j]", "B[i, j] = s16(Z[i, j])", SUM)
    text = "\n".join((FIRST.replace("X", "Z"), *between))
    kernel = kernel_of(f"kernel k {{ {GIVEN}\n{text} }}")
    assert not rewritings(kernel, 2, rules_for((), (NAME,))).proved


def test_transposed_is_something_else() -> None:
    given = GIVEN.replace("4, 6", "6, 6")
    assert shared("B[i, j] = s16(X[j, i])", SUM, given=given) is None


def test_two_products_widen_what_they_share_once() -> None:
    kernel = kernel_of(
        "kernel k { in X : u8[16, 32]  const A : s8[32, 24]  const B : s8[32, 24] "
        "out G : s32[16, 24]  out U : s32[16, 24]\n"
        "G[m, n] += s32(X[m, k]) * s32(A[k, n])\nU[m, n] += s32(X[m, k]) * s32(B[k, n]) }"
    )
    machine = load_hardware("x86_avx2")
    report = make_report(kernel, machine, Options(simulate=True))
    assert NAME in [one.rule for one in report.result.rewritings]
    assert report.check is not None
    assert report.check.ok
    # A schedule that says so makes the same of it.
    text = schedule_text(report.result)
    assert f"rewrite {NAME} of " in text
    again = make_report(
        kernel, machine, Options(simulate=True, schedule=parse_schedule(Source("x.schedule", text)))
    )
    assert again.result.lowered == report.result.lowered
