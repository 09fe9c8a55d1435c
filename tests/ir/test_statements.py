"""Questions about statements."""

from hypothesis import given

from isamap.ir.index import const
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.statements import (
    accesses,
    bind_extents,
    names_in_order,
    reduction_variables,
    substitute,
    used_names,
    zero_based,
)
from isamap.text.load import parse_module
from tests.strategies import kernels


def statement(text: str) -> Statement:
    return parse_module(f"kernel k(N = 4) {{ {text} }}").kernels[0].statements[-1]


def test_accesses_are_in_order_with_duplicates() -> None:
    made = statement("in A : f32[4]  in B : f32[4]  out Y : f32[4]\n Y[i] = B[i] + A[i] * B[i]")
    assert [access.buffer for access in accesses(made.value)] == ["B", "A", "B"]


def test_reduction_variables_are_those_the_target_lacks() -> None:
    made = statement("in A : f32[4, 5, 6]  out Y : f32[5]\n Y[j] += A[i, j, k]")
    assert reduction_variables(made) == ("i", "k")


def test_names_are_in_the_order_in_which_they_are_printed() -> None:
    made = statement(
        "in T : s32[4] values 0..3  in A : f32[99] pad 0  out Y : f32[4]\n"
        " for b in 0..2\n for c in 0..4\n for d in 0..4\n Y[i] += A[T[d] + c//2 + i + 2*b]"
    )
    (access,) = accesses(made.value)
    assert names_in_order(access.indices[0]) == ("b", "i", "c", "d")
    assert used_names(made.target, made.value) == ("i", "b", "c", "d")
    assert tuple(v.name for v in made.variables) == ("i", "b", "c", "d")


@given(kernels())
def test_shifted_statements_start_at_zero_and_reach_the_same_elements(kernel: Kernel) -> None:
    for made in kernel.statements:
        shifted = zero_based(made)
        assert all(v.lower == const(0) for v in shifted.variables)
        back = {v.name: const(0) for v in made.variables}
        lowest = {v.name: v.lower for v in made.variables}
        first = substitute(shifted, back)
        assert first.target == substitute(made, lowest).target
        assert first.value == substitute(made, lowest).value


def test_bound_extents_are_numbers() -> None:
    text = "kernel k(N = 4, M) { in X : f32[N, M]  out Y : f32[M]\n Y[j] += X[N - 1 - i, j] }"
    bound = bind_extents(parse_module(text).kernels[0])
    assert [str(e) for e in bound.buffers[0].shape] == ["4", "M"]
    assert [str(v.extent) for v in bound.statements[0].variables] == ["M", "4"]


def test_bound_extents_keep_the_places_of_their_own_file() -> None:
    text = "kernel k(N = 4) { in X : f32[N]  out Y : f32[N]\n Y[j] = X[j] }"
    kernels = [parse_module(text, name).kernels[0] for name in ("one.ir", "two.ir")]
    assert kernels[0] == kernels[1]
    places = [bind_extents(kernel).statements[0].span for kernel in kernels]
    assert [place and place.source.name for place in places] == ["one.ir", "two.ir"]
