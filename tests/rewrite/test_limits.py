"""Limits that are moved over operations which keep the order of numbers."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite.apply import rewritings
from isamap.rewrite.rules import rules_for
from tests.rewrite.products import assert_valid, kernel_of

RULE = rules_for((), ("move-limits",))

BUFFERS = "in A : s32[99]\nin H : s32[99] values -100000..100000\nin F : f32[99]\nin B : u8[99]"

EXTREME = (0, 1, -1, 2**31 - 1, -(2**31), 64, -64, 100000, -100000, 127, 128, -128, -129)


def _kernel(value: str, dtype: str) -> Kernel:
    return kernel_of(f"kernel k {{ {BUFFERS}\nout C : {dtype}[99]\nC[i] = {value} }}")


def _inputs() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    a = generator.integers(-(2**31), 2**31, 99).astype(np.int32)
    a[: len(EXTREME)] = EXTREME
    a[20:60] = generator.integers(-40000, 40000, 40)
    h = generator.integers(-100000, 100001, 99).astype(np.int32)
    h[:40] = generator.integers(-300, 300, 40)
    f = generator.normal(0, 100, 99).astype(np.float32)
    f[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38]
    return {"A": a, "H": h, "F": f, "B": generator.integers(0, 256, 99).astype(np.uint8)}


def _texts(kernel: Kernel) -> Sequence[str]:
    found = rewritings(kernel, 0, RULE)
    assert not found.refused
    inputs = _inputs()
    wanted = interpret(kernel, inputs)["C"]
    for one in found.proved:
        assert_valid(one, kernel)
        assert (interpret(one.kernel, inputs)["C"] == wanted).all() or np.array_equal(
            interpret(one.kernel, inputs)["C"], wanted, equal_nan=True
        )
    return [print_statement(one.kernel.statements[0]) for one in found.proved]


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        ("sat[s8](max(f32(A[i]) * 0.1, 0))", "s8", "max(sat[s8](f32(A[i]) * 0.1), 0)"),
        ("sat[s8](min(f32(A[i]) * 0.1, 100))", "s8", "min(sat[s8](f32(A[i]) * 0.1), 100)"),
        ("sat[s8](max(A[i] + 3, -7))", "s8", "max(sat[s8](A[i] + 3), -7)"),
        ("sat[s8](max(0, F[i]))", "s8", "max(sat[s8](F[i]), 0)"),
        ("sat[s8](min(max(F[i], 0), 6))", "s8", "min(max(sat[s8](F[i]), 0), 6)"),
        ("sat[s8](f32(max(A[i], 0)) * 0.1)", "s8", "max(sat[s8](f32(A[i]) * 0.1), 0)"),
        (
            "sat[s8](round(f32(max(A[i], 0)) * 0.1))",
            "s8",
            "max(sat[s8](round(f32(A[i]) * 0.1)), 0)",
        ),
        ("f32(max(A[i], 3)) * 0.1", "f32", "max(f32(A[i]) * 0.1, 0.3)"),
        ("max(f32(A[i]) * 0.5, 3)", "f32", "f32(max(A[i], 6)) * 0.5"),
        ("max(F[i], 3) - 1", "f32", "max(F[i] - 1.0, 2.0)"),
        ("s16(max(B[i], 7))", "s16", "max(s16(B[i]), 7)"),
        ("min(s16(B[i]), 7)", "s16", "s16(min(B[i], 7))"),
        ("sat[s8](max(H[i], 0) + 64 >> 7)", "s8", "max(sat[s8](H[i] + 64 >> 7), 0)"),
        ("max(sat[s8](H[i] + 64 >> 7), 0)", "s8", "sat[s8](max(H[i], -64) + 64 >> 7)"),
        ("sat[s8](max(A[i], 0) // 3)", "s8", "max(sat[s8](A[i] // 3), 0)"),
        ("max(floor(F[i] * 2), 4)", "f32", "floor(max(F[i], 2.0) * 2.0)"),
        ("bf16(max(F[i], 1))", "bf16", "max(bf16(F[i]), 1.0)"),
        ("s32(max(F[i], 0))", "s32", "max(s32(F[i]), 0)"),
    ],
)
def test_limits_go_all_the_way(value: str, dtype: str, want: str) -> None:
    assert f"C[i] = {want}" in _texts(_kernel(value, dtype))


def test_each_place_between_is_offered() -> None:
    assert _texts(_kernel("sat[s8](f32(max(A[i], 0)) * 0.1)", "s8")) == [
        "C[i] = max(sat[s8](f32(A[i]) * 0.1), 0)",
        "C[i] = sat[s8](max(f32(A[i]), 0.0) * 0.1)",
        "C[i] = sat[s8](max(f32(A[i]) * 0.1, 0.0))",
    ]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ("sat[s8](max(F[i], 3))", "s8"),  # of NaN 3 would be left, not 0
        ("min(s32(F[i]), -1)", "s32"),
        ("sat[s8](max(A[i], A[i] * 2))", "s8"),
        ("max(A[i], 0) + 64", "s32"),  # which may wrap
        ("max(A[i] * 2, 0)", "s32"),
        ("max(s8(H[i]), 0)", "s8"),
        ("max(A[i], 0) * -2", "s32"),
        ("max(F[i], 0) * -1", "f32"),
        ("max(F[i], 0) * F[i]", "f32"),
        ("1 - max(F[i], 0)", "f32"),
        ("f8e4m3(max(F[i], 1))", "f8e4m3"),  # what is too large is NaN
        ("sqrt(max(F[i], 1))", "f32"),
        ("max(F[i] * 0, 1)", "f32"),
    ],
)
def test_limits_stay_where_the_order_may_change(value: str, dtype: str) -> None:
    assert _texts(_kernel(value, dtype)) == []


@given(
    st.lists(
        st.sampled_from(
            [
                ("max", "max({}, {})"),
                ("min", "min({}, {})"),
                ("+", "{} + {}"),
                ("*", "{} * {}"),
                ("round", "round({})"),
                ("half", "f32(bf16({}))"),
            ]
        ),
        min_size=2,
        max_size=5,
    ),
    st.lists(
        st.sampled_from(["0", "0.5", "3", "-2", "0.1", "1e20", "1e-30"]), min_size=5, max_size=5
    ),
    st.sampled_from(["F[i]", "f32(A[i])"]),
    st.sampled_from([("{}", "f32"), ("sat[s8]({})", "s8"), ("s16({})", "s16")]),
)
def test_any_chain_computes_the_same(
    steps: list[tuple[str, str]], numbers: list[str], start: str, end: tuple[str, str]
) -> None:
    text = start
    for (_, step), number in zip(steps, numbers, strict=False):
        text = step.format(text, number)
    _texts(_kernel(end[0].format(text), end[1]))


def test_a_limit_before_the_scale_is_one_after_saturating() -> None:
    kernel = kernel_of(
        "kernel k { in A : s8[20, 33]\nin B : s8[33, 20]\nlocal S : s32[20, 20]\n"
        "out Y : s8[20, 20]\nS[i, j] += s32(A[i, k]) * s32(B[k, j])\n"
        "Y[i, j] = sat[s8](f32(max(S[i, j], 0)) * 0.015625) }"
    )
    report = make_report(kernel, load_hardware("gemmini"), Options(prove=False))
    assert "move-limits" in [r.rule for r in report.result.rewritings]
    assert report.check is not None
    assert report.check.ok
