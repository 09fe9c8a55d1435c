"""Divisions of integers by constants: high halves of products."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.printer import print_statement
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.rewrite import multiplier
from isamap.rewrite.apply import rewritings
from isamap.rewrite.multiplier import Division, division
from isamap.rewrite.rules import rules_for
from tests.profiles import examples
from tests.rewrite.products import assert_valid, kernel_of

RULE = rules_for((), ("by-multiplier",))


def quotient(x: int, way: Division) -> int:
    """Return what the steps of a division compute, each in its bits."""
    whole = 1 << way.bits
    product = (x >> way.before) * way.factor
    assert way.factor < whole
    assert product < whole * whole
    high = product >> way.bits
    if not way.more:
        return high >> way.after
    assert (x - high >> 1) + high < whole
    return (x - high >> 1) + high >> way.after - 1


@pytest.mark.parametrize("most", [255, 127])
def test_all_bytes_by_all_divisors(most: int) -> None:
    for divisor in (d for d in range(3, most + 1) if d & (d - 1)):
        way = division(divisor, most, 8)
        assert [quotient(x, way) for x in range(most + 1)] == [
            x // divisor for x in range(most + 1)
        ]


@given(st.sampled_from([16, 32]), st.booleans(), st.data())
@examples(30)
def test_numbers_next_to_multiples(bits: int, signed: bool, data: st.DataObject) -> None:
    most = (1 << bits - signed) - 1
    divisor = data.draw(st.integers(3, most).filter(lambda d: d & (d - 1)))
    way = division(divisor, most, bits)
    times = data.draw(st.integers(0, most // divisor))
    for x in (times * divisor - 1, times * divisor, most - most % divisor - 1, most):
        if 0 <= x <= most:
            assert quotient(x, way) == x // divisor


@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "u16", "s32", "u32"])
@pytest.mark.parametrize("divisor", [3, 7, 10, 14, 100, 127])
@pytest.mark.parametrize("op", ["//", "%"])
def test_products_are_quotients(dtype: str, divisor: int, op: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in A : {dtype}[512]\nout C : {dtype}[512]\nC[i] = A[i] {op} {divisor} }}"
    )
    (only,) = rewritings(kernel, 0, RULE).proved
    assert_valid(only, kernel)
    own = DTYPES[dtype]
    step = (own.highest - own.lowest) // 511
    numbers = [own.lowest + n * step for n in range(512)]
    numbers[:5] = [own.lowest, own.highest, 0, divisor - 1, divisor]
    if own.kind == "signed":
        numbers[6:10] = [-1, -divisor, -divisor - 1, 1 - divisor]
    values = np.array(numbers, own.numpy)
    got, want = (interpret(k, {"A": values})["C"] for k in (only.kernel, kernel))
    assert (got == want).all()


def test_what_is_written() -> None:
    kernel = kernel_of("kernel k { in A : u16[9]\nout C : u16[9]\nC[i] = A[i] // 10 + A[i] // 4 }")
    (only,) = rewritings(kernel, 0, RULE).proved
    want = "C[i] = u16(u32(A[i]) * 52429 >> 16) >> 3 + A[i] // 4"
    assert print_statement(only.kernel.statements[0]).replace("(", "").replace(")", "") == (
        want.replace("(", "").replace(")", "")
    )


@pytest.mark.parametrize("value", ["A[i] // 4", "A[i] // -3", "A[i] // 1", "4 // A[i]"])
@pytest.mark.parametrize("dtype", ["s32", "s64"])
def test_others_are_divided_by(dtype: str, value: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : {dtype}[9]\nout C : {dtype}[9]\nC[i] = {value} }}")
    found = rewritings(kernel, 0, RULE)
    assert not (*found.proved, *found.refused)


def test_of_64_bits_there_is_no_type_of_twice_as_many() -> None:
    kernel = kernel_of("kernel k { in A : s64[9]\nout C : s64[9]\nC[i] = A[i] // 10 }")
    assert not rewritings(kernel, 0, RULE).proved


@pytest.mark.parametrize(("dtype", "divisor"), [("u16", 10), ("u32", 7), ("s16", 7), ("u8", 14)])
def test_a_factor_that_is_off_by_one_is_refuted(
    dtype: str, divisor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"kernel k {{ in A : {dtype}[9]\nout C : {dtype}[9]\nC[i] = A[i] // {divisor} }}"

    def near(by: int, most: int, bits: int) -> Division:
        way = division(by, most, bits)
        return replace(way, factor=way.factor - 1)

    monkeypatch.setattr(multiplier, "division", near)
    found = rewritings(kernel_of(text), 0, RULE)
    assert found.refused
    assert not found.proved


@pytest.mark.parametrize("dtype", ["u8", "s8", "u16", "s16", "u32", "s32"])
@pytest.mark.parametrize("name", ["x86_avx2", "x86_avx512"])
def test_integers_are_divided_in_vectors(dtype: str, name: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in A : {dtype}[200]\nout C : {dtype}[200]\nC[i] = A[i] // 10 }}"
    )
    report = make_report(kernel, load_hardware(name), Options(prove=False))
    assert "by-multiplier" in [r.rule for r in report.result.rewritings]
    (own,) = report.result.mappings
    assert own.tile["i"] > 1
    assert report.check is not None
    assert report.check.ok
