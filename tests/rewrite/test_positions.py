"""Positions are read from memory: comparisons and conversions have the same values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import rewritings
from isamap.rewrite.positions import NAME, positions_from_memory
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import assert_equal, kernel_of

RULES = [(NAME, positions_from_memory)]


def _offered(kernel: Kernel) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, 0, RULES)
    assert found.refused == ()
    return found.proved


def _texts(text: str) -> list[list[str]]:
    return [
        [print_statement(s).strip() for s in r.kernel.statements] for r in _offered(kernel_of(text))
    ]


def _of(value: str, more: str = "") -> list[list[str]]:
    return _texts(
        f"kernel k {{ in X : f32[90, 900] out Y : f32[90, 900] {more} Y[i, j] = {value} }}"
    )


def test_a_triangle_compares_what_lies_in_two_buffers() -> None:
    found = _of("select(j <= i, X[i, j], 0)")
    assert found[0] == [
        "j_s32[j] = s32(j)",
        "i_s32[i] = s32(i)",
        "Y[i, j] = select(j_s32[j] <= i_s32[i], X[i, j], 0.0)",
    ]
    firsts = [texts[0] for texts in found]
    assert firsts == ["j_s32[j] = s32(j)", "j_s64[j] = j", "j_s16[j] = s16(j)"]


def test_each_side_of_a_band_has_a_variable_of_its_own() -> None:
    found = _of("select(i - j < 8, X[i, j], 0)")[0]
    assert found == [
        "j_s32[j] = s32(-j)",
        "i_s32[i] = s32(-i + 8)",
        "Y[i, j] = select(j_s32[j] < i_s32[i], X[i, j], 0.0)",
    ]


def test_only_the_widest_type_holds_far_positions() -> None:
    (found,) = _of("select(10000000000*i < j, X[i, j], 0)")
    assert found[1] == "i_s64[i] = -10000000000*i"


def test_a_border_meets_a_number() -> None:
    assert _of("select(2*j + 1 >= 900, X[i, j], 0)")[0] == [
        "j_s32[j] = s32(2*j)",
        "Y[i, j] = select(j_s32[j] >= 899, X[i, j], 0.0)",
    ]


def test_a_conversion_of_one_variable_is_that_of_the_value() -> None:
    assert _of("X[i, j] * f32(j // 3)") == [
        ["j_f32[j] = f32(j // 3)", "Y[i, j] = X[i, j] * j_f32[j]"]
    ]


def test_a_conversion_of_several_is_that_of_a_difference() -> None:
    assert _of("X[i, j] * f32(i - j)")[0] == [
        "j_s32[j] = s32(-j)",
        "i_s32[i] = s32(-i)",
        "Y[i, j] = X[i, j] * f32(j_s32[j] - i_s32[i])",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "X[i, j]",
        # Neither side is of one variable.
        "select((i + j) // 2 < 40, X[i, j], 0)",
        # No type holds them.
        "select(9000000000000000000*i < j, X[i, j], 0)",
    ],
)
def test_it_is_left_where_it_is(value: str) -> None:
    assert _of(value) == []


def test_a_size_that_is_not_known_is_left_where_it_is() -> None:
    assert (
        _texts(
            "kernel k(N) { in X : f32[N, N] out Y : f32[N, N] "
            "Y[i, j] = select(j <= i, X[i, j], 0) }"
        )
        == []
    )


@st.composite
def _kernels(draw: st.DrawFn) -> str:
    """Values that depend on where they are, in every way."""
    sizes = [draw(st.integers(1, 6)) for _ in "mnk"]
    small = st.sampled_from([-3, -2, -1, 1, 2, 3])

    def position() -> str:
        a, b, c, d = (draw(small) for _ in range(4))
        own = draw(
            st.sampled_from(["{}*m", "{}*n", "{}*k", "{}*m + {}*n", "{0}*m + {1}*n + {2}*k"])
        )
        text = f"{own.format(a, b, c)} + {d}"
        return draw(st.sampled_from([text, f"({text}) // 2", f"({text}) % 3 + n"]))

    compared = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    other = draw(st.sampled_from([position(), str(draw(small))]))
    dtype = draw(st.sampled_from(["f32", "s32", "s8"]))
    value = draw(
        st.sampled_from(
            [
                f"select({position()} {compared} {other}, X[m, n, k], 1)",
                f"X[m, n, k] * {dtype}({position()})",
                f"X[m, n, k] + sat[{dtype}]({position()})",
                f"select({position()} {compared} {other}, {dtype}({position()}), X[m, n, k])",
            ]
        )
    )
    shape = ", ".join(map(str, sizes))
    target, out = draw(
        st.sampled_from([("Y[m, n]", shape.rsplit(",", 1)[0]), ("Y[m, n, k]", shape)])
    )
    reduction = "=" if "k" in target else draw(st.sampled_from(["+=", "max="]))
    return (
        f"kernel random {{ in X : {dtype}[{shape}] out Y : {dtype}[{out}] "
        f"{target} {reduction} {value} }}"
    )


@given(_kernels(), st.integers(0, 99))
@examples(1)
def test_what_is_read_from_memory_is_the_same(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    for rewriting in _offered(kernel):
        assert_equal(rewriting, kernel, seed)


def test_masks_of_positions_are_those_of_vectors() -> None:
    kernel = kernel_of(
        "kernel k { in X : f32[64, 64] out Y : f32[64, 64] Y[i, j] = select(j <= i, X[i, j], 0) }"
    )
    result = map_kernel(kernel, load_hardware("x86_avx512"), Options(prove=False))
    # Rows and columns are the same positions: one buffer holds both.
    assert [r.rule for r in result.rewritings] == [NAME, "share-local"]
    (*_, last) = result.statements
    assert last.mappings[last.chosen].tile == {"i": 1, "j": 16}
