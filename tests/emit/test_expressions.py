import subprocess
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.emit.expressions import HELPERS, Env, text
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


@examples(0.3)
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


def test_what_may_exceed_32_bits_is_computed_in_64() -> None:
    env = Env().with_symbols(("M",)).with_counter("i", const(1 << 20)).with_counter("j", const(9))
    i, j, m = var("i"), var("j"), var("M")
    assert (env.kind("i"), env.kind("M")) == ("ptrdiff_t", "int64_t")
    assert env.with_counter("k", m).kind("k") == "int64_t"
    assert text(i * 2048 + j, env) == "i_i * 2048 + i_j"
    assert text(i * 2049 + j, env) == "(int64_t)i_i * 2049 + (int64_t)i_j"
    assert text(i * m * 5000 + j, env) == "n_M * i_i * 5000 + i_j"
    wide = env.with_counter("l", const(1 << 30))
    assert text(var("l") * 3 // 7, wide) == "(((int64_t)i_l * 3) / 7)"


BIG = {"i": 1 << 20, "j": 1 << 11, "k": 1 << 31}


def large() -> st.SearchStrategy[Index]:
    """Sums of products of counters, some divided, with values up to some 2^62."""
    terms = st.builds(
        lambda names, factor: const(factor) * prod((var(n) for n in names), start=const(1)),
        st.lists(st.sampled_from(sorted(BIG)), min_size=1, max_size=2, unique=True),
        st.sampled_from([1, 2, 3, 100, 400, -1, -300]),
    )
    sums = st.lists(terms, min_size=1, max_size=3).map(lambda found: sum(found, start=const(0)))
    return st.one_of(sums, st.builds(lambda a, d, b: a // d + b, sums, st.integers(2, 9), sums))


@examples(0.1)
@given(st.lists(large(), min_size=20, max_size=30))
def test_pointers_of_32_bits_are_enough(found: list[Index]) -> None:
    env = Env()
    for name, count in BIG.items():
        env = env.with_counter(name, const(count))
    last = {name: count - 1 for name, count in BIG.items()}
    places = [dict.fromkeys(BIG, 0), last, {**last, "i": 0}, {**last, "j": 1}]
    expected = [value.evaluate(at) for at in places for value in found]
    counters = [f"volatile {env.kind(n)} v_{n}" for n in BIG]
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#define ptrdiff_t int32_t", HELPERS]
    lines += ["int main(void) {", *(f"{line};" for line in counters)]
    for at in places:
        lines += ["{", *(f"v_{n} = INT64_C({at[n]});" for n in BIG)]
        lines += [f"const {env.kind(n)} {env.integers[n]} = v_{n};" for n in BIG]
        lines += [f'printf("%lld\\n", (long long)({text(value, env)}));' for value in found]
        lines += ["}"]
    with TemporaryDirectory() as folder:
        source, program = Path(folder, "large.c"), Path(folder, "large")
        source.write_text("\n".join([*lines, "}"]))
        subprocess.run(["gcc", "-fwrapv", "-w", "-o", program, source], check=True)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert list(map(int, printed.split())) == expected
