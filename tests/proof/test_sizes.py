"""The sizes of a check: all code is executed, conditions just hold and just fail."""

import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Copy, Guard, Loop, LoweredKernel, Node
from isamap.pipeline.result import Result
from isamap.proof.field import field_check
from isamap.proof.sizes import covering_sizes
from tests.mutation.faults import FAULTS, Site
from tests.proof.samples import SYMBOLIC, kernel, mapped

N = var("N")
FILL = kernel("kernel fill(N) { out Y : f32[N]  Y[i] = f32(0) }")


def code(*nodes: Node) -> LoweredKernel:
    result = mapped("kernel fill(N) { out Y : f32[N]  Y[i] = f32(0) }", "portable_c")
    lowered = result.lowered
    return LoweredKernel(lowered.name, lowered.symbols, lowered.arrays, nodes)


def zero(at: Index) -> Copy:
    return Copy((), "Y", at, None, const(0), (), Literal("0.0", DTYPES["f32"]))


def chosen(*nodes: Node, most: int = 12) -> set[int]:
    return {s["N"] for s in covering_sizes(FILL, code(*nodes), 10**4, 10**6, most)}


@pytest.mark.parametrize("condition", [N % 16 - 5, N - 40, 40 - N, N // 16 % 4 - 2])
def test_a_condition_just_holds_and_just_fails(condition: Index) -> None:
    sizes = chosen(Guard((condition,), (zero(const(0)),)))
    found = {int(condition.evaluate({"N": n})) for n in sizes}
    assert {0, -1} <= found


def test_a_loop_runs_not_at_all_once_twice_and_more_often() -> None:
    sizes = chosen(Loop("i", N // 16, (zero(16 * var("i")),)))
    assert {0, 1, 2} < {n // 16 for n in sizes}


def test_few_sizes_are_chosen_and_code_that_does_nothing_is_run() -> None:
    assert len(chosen(Loop("i", N // 16, (zero(16 * var("i")),)), most=2)) == 2
    assert len(chosen()) == 1


@pytest.mark.parametrize("hardware", ["x86_avx512", "x86_avx2"])
def test_conditions_that_are_wrong_by_one_are_seen(hardware: str) -> None:
    """At {'M': 16, 'N': 33, 'K': 8} the tail of one column is left out, and in no longer one."""
    result = mapped(SYMBOLIC, hardware)
    site = Site(result.lowered, result.accelerator)
    wrong = [lowered for _, lowered in FAULTS["wrong condition"](site)]
    differing = [w for w in wrong if not _agrees(result, w, [{"M": 16, "N": 33, "K": 8}])]
    assert differing
    for lowered in differing:
        assert not _agrees(result, lowered, None)


def _agrees(result: Result, lowered: LoweredKernel, sizes: list[dict[str, int]] | None) -> bool:
    check = field_check(result.kernel, result.accelerator, lowered, sizes, seeds=(0,))
    return check.verdict == "agrees"
