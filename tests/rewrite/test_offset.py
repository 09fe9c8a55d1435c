"""Products of other signedness and without zero points compute the same integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_expr
from isamap.rewrite.apply import rewritings
from isamap.rewrite.offset import flip_sign, zero_points
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_equal, boxes, buffers, kernel_of

NARROW = ["s8", "u8", "s16", "u16", "s4", "u4"]


def _offered(kernel: Kernel) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, 0, [("flip-sign", flip_sign), ("zero-points", zero_points)])
    assert found.refused == ()
    return found.proved


@st.composite
def _products(draw: st.DrawFn) -> str:
    drawn: Drawn = draw(boxes())
    one, other = draw(st.sampled_from(NARROW)), draw(st.sampled_from(NARROW))
    total = draw(st.sampled_from(["s32", "u32", "s64"]))
    a = draw(buffers(drawn, "A", one, draw(st.sampled_from(["mkr", "km", "k", "mnk"]))))
    b = draw(buffers(drawn, "B", other, draw(st.sampled_from(["nkr", "nk", "kr", "r"]))))
    role = draw(st.sampled_from(["out", "inout"]))
    drawn.lines.append(f"{role} C : {total}[{drawn.sizes['m']}, {drawn.sizes['n']}]")
    drawn.used |= {"m", "n"}
    return drawn.text(f"C[m, n] += {total}({a}) * {total}({b})")


@given(_products(), st.integers(0, 99))
@examples(1)
def test_products_of_other_signedness_are_exact(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    widening = [kernel.buffer("A").dtype, kernel.buffer("B").dtype]
    total = kernel.buffer("C").dtype
    kept = [t for t in widening if total.lowest <= t.lowest and t.highest <= total.highest]
    found = _offered(kernel)
    assert len(found) == len(kept)
    for rewriting in found:
        assert_equal(rewriting, kernel, seed)


@st.composite
def _differences(draw: st.DrawFn) -> str:
    drawn: Drawn = draw(boxes())
    one, other = draw(st.sampled_from(NARROW)), draw(st.sampled_from(NARROW))
    a = draw(buffers(drawn, "A", one, "mkr"))
    b = draw(buffers(drawn, "B", other, draw(st.sampled_from(["nkr", "nk"]))))
    zeros = []
    for name, names in (("za", ["", "m", "n", "mn", "k"]), ("zb", ["", "n", "m"])):
        if draw(st.integers(0, 2)) == 0:
            zeros.append(str(draw(st.integers(-300, 300))))
        else:
            used = draw(st.sampled_from(names))
            zeros.append(draw(buffers(drawn, name, "s32", used)))
    drawn.lines.append(f"out C : s32[{drawn.sizes['m']}, {drawn.sizes['n']}]")
    drawn.used |= {"m", "n"}
    signs = [draw(st.sampled_from("+-")) for _ in range(2)]
    value = f"(s32({a}) {signs[0]} {zeros[0]}) * (s32({b}) {signs[1]} {zeros[1]})"
    return drawn.text(f"C[m, n] += {value}")


@given(_differences(), st.integers(0, 99))
@examples(1)
def test_zero_points_are_corrected_exactly(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    for rewriting in _offered(kernel):
        assert_equal(rewriting, kernel, seed)


CONVOLUTION = """
kernel convolution(H = 5, W = 4, C, K = 3) {
  in    X : u8[H, W, C] pad 7
  const F : u8[3, 3, C, K]
  in    z : u8[K]
  out   Y : s32[H, W, K]
  Y[h, w, k] += (s32(X[h + r - 1, w + s - 1, c]) - 7) * (s32(F[r, s, c, k]) - s32(z[k]))
}
"""


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_a_padded_convolution_of_symbolic_channels_loses_its_zero_points_then_a_sign(
    channels: int,
) -> None:
    kernel = kernel_of(CONVOLUTION)
    (plain,) = _offered(kernel)
    assert_equal(plain, kernel, 1, {"C": channels})
    last = len(plain.kernel.statements) - 1
    rules = [("flip-sign", flip_sign)]
    flipped = rewritings(plain.kernel, last, rules).proved
    assert [r.kernel.statements[-1].target.buffer for r in flipped] == ["Y", "Y"]
    for rewriting in flipped:
        assert_equal(rewriting, kernel, 2, {"C": channels})
        again = rewritings(rewriting.kernel, len(rewriting.kernel.statements) - 1, rules).proved
        assert len(again) == 1, "a shifted copy is not shifted back"


def test_wrapping_sums_are_corrected_exactly() -> None:
    kernel = kernel_of("""kernel k {
      in A : s16[2, 70000] values 32767 .. 32767
      in B : s16[70000] values -32768 .. -32767
      out C : s32[2]
      C[m] += s32(A[m, k]) * s32(B[k])
    }""")
    for rewriting in _offered(kernel):
        assert_equal(rewriting, kernel)


def test_differences_in_a_narrow_type_are_expanded_where_they_do_not_wrap() -> None:
    text = """kernel k {{
      in A : u8[4, 5]
      in B : u8[5, 3]
      in z : u8[]
      out C : s32[4, 3]
      C[m, n] += s32({narrow}(A[m, k]) - {narrow}(z[])) * s32(s16(B[k, n]) - 9)
    }}"""
    kernel = kernel_of(text.format(narrow="s16"))
    (rewriting,) = _offered(kernel)
    assert_equal(rewriting, kernel)
    assert print_expr(rewriting.kernel.statements[-1].value) == "s32(A[m, k]) * s32(B[k, n])"
    wrapping = kernel_of(text.format(narrow="u8").replace("u8(", "("))
    for rewriting in _offered(wrapping):
        assert_equal(rewriting, wrapping)
        assert "A[m, k] - z[]" in print_expr(rewriting.kernel.statements[-1].value)


@pytest.mark.parametrize(
    "statement",
    [
        "C[m] = s32(A[m]) * s32(B[m])",
        "C[m] max= s32(A[m]) * s32(B[k])",
        "C[m] += s32(A[m]) * s32(B[m])",
        "C[m] += s32(sat[s8](D[m])) * s32(sat[s8](D[k]))",
    ],
)
def test_nothing_is_offered_where_nothing_is_summed_or_shiftable(statement: str) -> None:
    kernel = kernel_of(f"""kernel k {{
      in A : s8[4]  in B : s8[4]  in D : s16[4]
      inout C : s32[4]
      {statement}
    }}""")
    assert _offered(kernel) == ()
