"""Copies of buffers with the dimension that windows slide along as their last one."""

from pathlib import Path

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import NAMES
from isamap.rewrite.turned import NAME, turn_windows
from tests.rewrite.products import assert_valid, kernel_of

RULES = ((NAME, turn_windows),)

CHANNELS_LAST = """kernel k { in X : s16[L, C] pad 0  const F : s16[R, C, K]  out Y : s32[L, K]
  Y[l, k] += s32(X[l + r - 2, c]) * s32(F[r, c, k]) }"""


def sized(text: str, **sizes: int) -> str:
    """Return the text of a kernel with sizes."""
    given = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return text.replace("kernel k {", f"kernel k({given}) {{", 1)


def turned(text: str) -> list[list[str]]:
    found = rewritings(kernel_of(text), 0, RULES)
    assert not found.refused
    return [[print_statement(s) for s in r.kernel.statements] for r in found.proved]


def test_the_dimension_of_a_window_becomes_the_last_one() -> None:
    assert turned(sized(CHANNELS_LAST, L=20, C=3, R=5, K=4)) == [
        [
            "X_turned[j, i] = X[i, j]",
            "Y[l, k] += s32(X_turned[c, l + r - 2]) * s32(F[r, c, k])",
        ]
    ]


def test_each_dimension_that_windows_slide_along_is_one_way() -> None:
    text = (
        "kernel k { in X : f32[9, 9, 4]  in F : f32[3, 3, 4]  out Y : f32[7, 7, 4] "
        "Y[p, q, c] += X[p + r, q + s, c] * F[r, s, c] }"
    )
    assert [one[0] for one in turned(text)] == [
        "X_turned[j, l, i] = X[i, j, l]",
        "X_turned[i, l, j] = X[i, j, l]",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "in A : f32[7, 5] in B : f32[5, 6] out Y : f32[7, 6] Y[m, n] += A[m, k] * B[k, n]",
        "in X : f32[3, 9] in F : f32[3] out Y : f32[3, 7] Y[c, l] += X[c, l + r] * F[r]",
        "const X : f32[9, 3] in F : f32[3] out Y : f32[7, 3] Y[l, c] += X[l + r, c] * F[r]",
    ],
)
def test_what_has_no_such_dimension_is_left(text: str) -> None:
    assert turned(f"kernel k {{ {text} }}") == []


@pytest.mark.parametrize(
    "text",
    [
        sized(CHANNELS_LAST, L=20, C=3, R=5, K=4),
        "kernel k { in X : f32[9, 4] in F : f32[3] out Y : f32[6, 4] "
        "Y[p, c] += X[p + r, c] * F[r] - X[p - r + 2, c] }",
        "kernel k { in X : u8[9, 2, 4] pad 7 in F : u8[3] out Y : u8[9, 4] "
        "Y[p, c] max= X[p + r - 1, s, c] + F[r] }",
    ],
)
def test_it_computes_the_same_bits(text: str) -> None:
    kernel = kernel_of(text)
    inputs = random_inputs(kernel, {}, 0)
    found = rewritings(kernel, 0, RULES).proved
    assert found
    for rewriting in found:
        assert_valid(rewriting, kernel)
        after = interpret(rewriting.kernel, inputs)["Y"]
        np.testing.assert_array_equal(after, interpret(kernel, inputs)["Y"])


def test_taps_of_neighbours_get_their_windows_from_a_turned_copy() -> None:
    """Packed, each element would be copied for each tap."""
    kernel = kernel_of(sized(CHANNELS_LAST, L=131, C=12, R=8, K=20))
    machine = load_hardware(str(Path(__file__).with_name("taps.yaml")))
    report = make_report(kernel, machine, Options(prove=False))
    assert report.check is not None
    assert report.check.ok
    assert NAME in [one.rule for one in report.result.rewritings]
    others = Options(prove=False, rewrite=tuple(n for n in NAMES if n != NAME))
    packed = make_report(kernel, machine, others).result
    assert report.result.estimate.cycles < 0.7 * packed.estimate.cycles
