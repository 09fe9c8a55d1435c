import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.emit.expressions import Env, text
from isamap.ir.index import Index, const, read, var
from tests.emit.building import compiled
from tests.emit.samples import indices
from tests.profiles import examples

COUNTS = (4, 5)
M = 6


def values() -> st.SearchStrategy[Index]:
    leaves = st.one_of(st.integers(-9, 9).map(const), st.sampled_from(["i", "j", "M"]).map(var))

    def larger(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
        divisor = st.integers(1, 7)
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda a, d: a // d, inner, divisor),
            st.builds(lambda a, d: a % d, inner, divisor),
            # Any index into a table of M elements, M being 6.
            st.builds(lambda a: read("T", (a % M,)), inner),
        )

    return st.recursive(leaves, larger, max_leaves=8)


@examples(0.5)
@given(st.lists(values(), min_size=30, max_size=40))
def test_c_computes_what_the_expression_means(found: list[Index]) -> None:
    table = np.array([3, -7, 0, 2, -1, 11], np.int32)
    expected = np.empty((*COUNTS, len(found)), np.int64)
    for place in np.ndindex(*COUNTS):
        at = {"i": place[0], "j": place[1], "M": M}
        for n, value in enumerate(found):
            expected[(*place, n)] = value.evaluate(at, lambda _, index: int(table[index[0]]))
    actual = compiled(indices(tuple(found), COUNTS))(T=table)["Y"]
    np.testing.assert_array_equal(actual, expected)


def test_division_is_plain_only_where_nothing_is_negative() -> None:
    env = Env().with_symbols(("M",)).with_counter("i", const(4))
    assert text(var("i") // 3, env) == "(i_i / 3)"
    assert text((var("M") + 3) // 4, env) == "((n_M + 3) / 4)"
    assert text((var("i") - 1) // 3, env) == "((i_i + 2) / 3) - 1"
    element = read("T", (var("i"),))
    assert text(element // 3, env) == "isamap_div((int64_t)p_T[i_i], 3)"
    assert text((element + 1) % 3, env) == "isamap_mod((int64_t)p_T[i_i] + 1, 3)"
