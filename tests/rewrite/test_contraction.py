"""Products of several factors, computed in steps."""

from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.ir.statements import accesses
from isamap.rewrite.apply import Rewritings, rewritings
from isamap.rewrite.contraction import contract
from isamap.rewrite.rule import Rewriting
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_equal, assert_valid, buffers, kernel_of

SEMIRINGS = [
    ("+=", "({} * {})"),
    ("max=", "({} + {})"),
    ("min=", "({} + {})"),
    ("max=", "min({}, {})"),
    ("min=", "max({}, {})"),
    ("or=", "({} & {})"),
    ("xor=", "({} & {})"),
    ("and=", "({} | {})"),
]


def _contracted(kernel: Kernel) -> Rewritings:
    return rewritings(kernel, 0, [("contract", contract)])


def _only(kernel: Kernel) -> Rewriting:
    (found,) = _contracted(kernel).proved
    return found


def _texts(rewriting: Rewriting) -> list[str]:
    return [print_statement(s) for s in rewriting.kernel.statements]


def _multiplications(kernel: Kernel) -> int:
    """Return the products of two factors that the statements compute; a plain sum is as much."""
    return sum(
        prod(v.extent.constant or 0 for v in statement.variables)
        * max(1, len(accesses(statement.value)) - 1)
        for statement in kernel.statements
    )


@st.composite
def _products(draw: st.DrawFn) -> tuple[str, str]:
    names = "mnkrs"
    drawn = Drawn({v: draw(st.integers(1, 4)) for v in names})
    dtype = draw(st.sampled_from(["s32", "u8", "s64", "f32", "f64", "bf16"]))
    exact = dtype[0] not in "fb"
    reduction, form = draw(st.sampled_from(SEMIRINGS if exact else SEMIRINGS[:5]))
    leaves = []
    for name in "ABCDE"[: draw(st.integers(2, 5))]:
        own = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        leaves.append(draw(buffers(drawn, name, dtype, own)))
    value = leaves[0]
    for leaf in leaves[1:]:
        value = form.format(value, leaf) if draw(st.booleans()) else form.format(leaf, value)
    drawn.lines.append(f"out Y : {dtype}[{drawn.sizes['m']}, {drawn.sizes['n']}]")
    drawn.used |= {"m", "n"}
    return drawn.text(f"Y[m, n] {reduction} {value}", " permit distribute"), dtype


@given(_products(), st.integers(0, 99))
@examples(2)
def test_steps_compute_the_same(drawn: tuple[str, str], seed: int) -> None:
    text, dtype = drawn
    kernel = kernel_of(text)
    for rewriting in _contracted(kernel).proved:
        assert _multiplications(rewriting.kernel) < _multiplications(kernel)
        if dtype[0] not in "fb":
            assert_equal(rewriting, kernel, seed)
            continue
        assert_valid(rewriting, kernel)
        arrays = random_inputs(kernel, None, seed)
        actual = interpret(rewriting.kernel, arrays)
        comparison = compare(kernel, arrays, interpret(kernel, arrays), actual)
        assert comparison.ok, comparison.text


def _chain(sizes: tuple[int, ...], dtype: str = "s32", permit: str = "") -> Kernel:
    names = "abcdefg"[: len(sizes)]
    pairs = list(pairwise(names))
    lines = [
        f"in {one.upper()} : {dtype}[{sizes[n]}, {sizes[n + 1]}]"
        for n, (one, _) in enumerate(pairs)
    ]
    value = " * ".join(f"{one.upper()}[{one}, {other}]" for one, other in pairs)
    lines.append(f"out Y : {dtype}[{sizes[0]}, {sizes[-1]}]")
    lines.append(f"Y[{names[0]}, {names[-1]}] += {value}")
    return kernel_of(f"kernel chain{permit} {{\n" + "\n".join(lines) + "\n}")


def _matrix_chain(sizes: tuple[int, ...]) -> int:
    """Return the fewest multiplications of a chain of matrices, by brute force."""
    if len(sizes) == 2:
        return 0
    return min(
        _matrix_chain(sizes[: cut + 1])
        + _matrix_chain(sizes[cut:])
        + sizes[0] * sizes[cut] * sizes[-1]
        for cut in range(1, len(sizes) - 1)
    )


@pytest.mark.parametrize("sizes", [*product((2, 9), repeat=4), (2, 3, 9, 4, 8), (5, 2, 7, 3, 6, 4)])
def test_the_order_has_the_fewest_multiplications(sizes: tuple[int, ...]) -> None:
    kernel = _chain(sizes)
    best = min(_matrix_chain(sizes), _multiplications(kernel))
    found = [_multiplications(r.kernel) for r in _contracted(kernel).proved]
    assert (found or [_multiplications(kernel)]) == [best]


def test_three_matrices_are_two_products() -> None:
    found = _only(_chain((4, 5, 6, 7), "f32", " permit distribute"))
    assert _texts(found) == [
        "Y_1[a, c] += A[a, b] * B[b, c]",
        "Y[a, d] += Y_1[a, c] * C[c, d]",
    ]


def test_a_factor_is_summed_alone_where_it_can_be() -> None:
    head = "kernel k {\nin A : s32[4, 5]\nin B : s32[4, 6]\nout Y : s32[4]\n"
    text = head + "Y[i] += A[i, j] * B[i, k]\n}"
    first, second = _texts(_only(kernel_of(text)))[-2:]
    assert (first, second) == ("Y_1[i] += B[i, k]", "Y[i] += A[i, j] * Y_1[i]")


@pytest.mark.parametrize(
    ("permit", "first"),
    [
        ("", "Y_1[b, c, d] = B[b, c] * C[c, d]"),
        (" permit distribute", "Y_1[b, d] += B[b, c] * C[c, d]"),
        (" permit distribute, no reassociate", None),
    ],
)
def test_sums_of_floats_are_taken_out_only_if_permitted(permit: str, first: str | None) -> None:
    found = _contracted(_chain((16, 5, 6, 7), "f32", permit)).proved
    assert [_texts(one)[0] for one in found] == ([first] if first else [])


def test_a_factor_joins_another_before_the_sum() -> None:
    text = (
        "kernel k {\nin A : f32[8]\nin B : f32[9, 7]\nin C : f32[8, 9]\nout Y : f32[8, 7]\n"
        "Y[i, j] += A[i] * B[k, j] * C[i, k]\n}"
    )
    assert _texts(_only(kernel_of(text))) == [
        "Y_1[i, k] = A[i] * C[i, k]",
        "Y[i, j] += Y_1[i, k] * B[k, j]",
    ]


def test_infinities_forbid_what_zero_times_them_would_break() -> None:
    found = _contracted(_chain((4, 5, 6, 7), "f32", " permit distribute, no finite"))
    assert found.proved == ()
    assert [r.verdict.verdict for r in found.refused] == ["refuted"]


def test_integers_that_wrap_do_not_distribute_over_a_maximum() -> None:
    head = "kernel k {\nin A : s8[4, 5]\nin B : s8[5, 6]\nin C : s8[6, 7]\nout Y : s8[4, 7]\n"
    text = head + "Y[i, l] max= A[i, j] + B[j, k] + C[k, l]\n}"
    found = _contracted(kernel_of(text))
    assert found.proved == ()
    assert [r.verdict.verdict for r in found.refused] == ["refuted"]
    floats = _only(kernel_of(text.replace("s8", "f32")))
    assert len(floats.kernel.statements) == 2
    arrays = random_inputs(kernel_of(text.replace("s8", "f32")), None, 3)
    expected = np.full((4, 7), -np.inf, np.float32)
    for i, m, j, k in product(range(4), range(7), range(5), range(6)):
        total = arrays["A"][i, j] + arrays["B"][j, k] + arrays["C"][k, m]
        expected[i, m] = max(expected[i, m], total)
    np.testing.assert_array_equal(interpret(floats.kernel, arrays)["Y"], expected)


def test_symbolic_extents_are_shapes_of_the_steps() -> None:
    text = (
        "kernel k(N, M) {\nin A : s32[N, M]\nin B : s32[M, N]\nin C : s32[N, M]\n"
        "out Y : s32[N, M]\nY[i, l] += A[i, j] * B[j, k] * C[k, l]\n}"
    )
    kernel = kernel_of(text)
    assert_equal(_only(kernel), kernel, 1, {"N": 3, "M": 5})
