"""Narrower arithmetic and narrower copies compute the same integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_expr
from isamap.rewrite.apply import rewritings
from isamap.rewrite.narrow import narrow_arithmetic
from isamap.rewrite.narrow_copies import narrow_copies
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_equal, boxes, buffers, kernel_of

RULES = [("narrow-arithmetic", narrow_arithmetic), ("narrow-copies", narrow_copies)]


def _offered(kernel: Kernel, number: int = 0) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, number, RULES)
    assert found.refused == ()
    return found.proved


def _values(kernel: Kernel, number: int = 0) -> set[str]:
    return {print_expr(r.kernel.statements[-1].value) for r in _offered(kernel, number)}


@st.composite
def _kernels(draw: st.DrawFn) -> str:
    """Arithmetic on values of declared ranges, through a local buffer or not."""
    drawn: Drawn = draw(boxes())
    wide = draw(st.sampled_from(["s32", "u32", "s64", "s16"]))
    leaves = []
    for name in "AB":
        dtype = draw(st.sampled_from(["s8", "u8", "s32", "s16", wide]))
        low = draw(st.integers(0 if dtype[0] == "u" else -40, 20))
        high = draw(st.integers(max(low, 0), 120))
        names = draw(st.sampled_from(["mk", "nk", "mnk", "k"]))
        access = draw(buffers(drawn, name, dtype, names, f" values {low} .. {high}"))
        leaves.append(access if dtype == wide else f"{wide}({access})")
    leaves += [str(draw(st.integers(0, 9)))]
    a, b = leaves[0], draw(st.sampled_from(leaves))
    op = draw(st.sampled_from(["{} * {}", "{} + {}", "{} - {}", "max({}, {})", "{} * {} - 3"]))
    value = op.format(a, b)
    form = draw(st.integers(0, 3))
    if form == 1:
        value = f"abs({value})"
    elif form == 2:
        value = f"select({a} < 3, {value}, {b})"
    elif form == 3:
        value = f"{wide}(sat[s8]({value}))"
    m, n = drawn.sizes["m"], drawn.sizes["n"]
    drawn.lines += [f"local T : {wide}[{m}, {n}] pad 2", f"out C : {wide}[{m}, {n}]"]
    drawn.used |= {"m", "n"}
    reduction = draw(st.sampled_from(["+=", "max=", "min="]))
    return drawn.text(f"T[m, n] {reduction} {value}\nC[m, n] = T[m - 1, n] * T[m, n] + 1")


@given(_kernels(), st.integers(0, 99))
@examples(0.5)
def test_narrower_types_compute_the_same(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    for number in range(2):
        for rewriting in _offered(kernel, number):
            assert_equal(rewriting, kernel, seed)


def _product(a: str, b: str) -> Kernel:
    return kernel_of(f"""kernel k {{
      in A : {a}
      in B : {b}
      out C : s32[4]
      for k in 0..5
      C[m] += s32(A[m, k]) * s32(B[k])
    }}""")


def test_products_that_fit_are_formed_in_sixteen_bits() -> None:
    found = _values(_product("u8[4, 5] values 0 .. 15", "s8[5]"))
    assert "s32(s16(A[m, k]) * s16(B[k]))" in found
    found = _values(_product("u8[4, 5]", "s8[5]"))
    assert found == {"s32(s16(A[m, k]) * s16(B[k]))"}
    assert _values(_product("u8[4, 5]", "s16[5]")) == set()
    found = _values(_product("u8[4, 5]", "u8[5]"))
    assert found == {"s32(u16(A[m, k]) * u16(B[k]))"}


def test_products_of_declared_values_reach_the_edge_of_a_type_and_not_beyond() -> None:
    assert "s32(A[m, k] * s8(B[k]))" in _values(
        _product("s8[4, 5] values -64 .. 63", "u8[5] values 0 .. 2")
    )
    over = _values(_product("s8[4, 5] values -65 .. 63", "u8[5] values 0 .. 2"))
    assert "s32(A[m, k] * s8(B[k]))" not in over
    assert "s32(s16(A[m, k]) * s16(B[k]))" in over


def test_wide_buffers_of_narrow_values_are_copied_for_a_dot_product() -> None:
    found = _values(_product("s32[4, 5] values -128 .. 127", "s32[5] pad 5 values -128 .. 100"))
    assert "s32(A_s8[m, k]) * s32(B_s8[k])" in found
    found = _values(_product("s32[4, 5] values -128 .. 127", "s32[5] pad 200 values -128 .. 100"))
    assert "s32(A_s8[m, k]) * B[k]" in found, "the padding value does not fit"
    assert "s32(A_s16[m, k]) * s32(B_s16[k])" in found


def test_ranges_follow_from_earlier_statements() -> None:
    kernel = kernel_of("""kernel k {
      in A : s32[4]
      local T : s32[4]
      out C : s32[4]
      T[i] = min(max(A[i], -100), 100)
      C[i] = T[i] * T[i]
    }""")
    values = _values(kernel, 1)
    assert "s32(T_s8[i]) * s32(T_s8[i])" in values
    assert "s32(s16(T[i]) * s16(T[i]))" in values
    (rewriting, *_) = _offered(kernel, 1)
    assert_equal(rewriting, kernel)


def test_a_copy_is_not_copied_again() -> None:
    kernel = _product("s32[4, 5] values -8 .. 7", "s8[5]")
    copied = next(r for r in _offered(kernel) if r.note.startswith("A as s16"))
    rules = [("narrow-copies", narrow_copies)]
    assert rewritings(copied.kernel, 1, rules).proved == ()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_integers_held_in_floats_stay_there(dtype: str) -> None:
    kernel = kernel_of(f"""kernel k {{
      in A : {dtype}[4] values 0 .. 1
      out C : {dtype}[4]
      C[i] = A[i] * A[i]
    }}""")
    assert _offered(kernel) == ()
