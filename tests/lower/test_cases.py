"""Conditions that an innermost loop does not change are decided before it."""

from collections.abc import Iterator, Sequence

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Kernel
from isamap.lower import nest
from isamap.lower.nest import cases, decided
from isamap.lower.nodes import Call, Guard, Loop, Node, Scope
from isamap.lower.position import Position
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.text.load import parse_module


def convolution(extent: int) -> Kernel:
    (kernel,) = parse_module(
        f"""kernel convolution {{
          in    X : f32[{extent}, {extent}, 24] pad 0
          const F : f32[3, 3, 24, 32]
          out   Y : f32[{extent}, {extent}, 32]
          Y[h, w, k] += X[h + r - 1, w + s - 1, c] * F[r, s, c, k]
        }}"""
    ).kernels
    return kernel


def mapped(kernel: Kernel) -> Result:
    return map_kernel(kernel, load_hardware("x86_avx2"), Options(prove=False))


def inside(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes and all that is in them."""
    for node in nodes:
        yield node
        match node:
            case Loop(body=body) | Scope(body=body):
                yield from inside(body)
            case Guard(_, body, otherwise):
                yield from inside((*body, *otherwise))


def innermost(result: Result) -> list[Loop]:
    loops = [node for node in inside(result.lowered.body) if isinstance(node, Loop)]
    return [one for one in loops if not any(isinstance(n, Loop) for n in inside(one.body))]


def guarded(loops: Sequence[Loop]) -> list[bool]:
    return [any(isinstance(node, Guard) for node in inside(one.body)) for one in loops]


def calls(loop: Loop) -> int:
    return sum(isinstance(node, Call) for node in inside(loop.body))


def test_each_case_has_an_innermost_loop_without_conditions() -> None:
    result = mapped(convolution(11))
    loops = innermost(result)
    assert not any(guarded(loops))
    assert len({calls(one) for one in loops}) > 1


def test_where_that_is_too_much_code_one_loop_takes_all_conditions_for_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nest, "CALLS_IN_BODIES", 1)
    assert len(set(guarded(innermost(mapped(convolution(11)))))) == 2


def test_a_case_asks_memory_for_nothing_that_another_has_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_cases = mapped(convolution(11))
    monkeypatch.setattr(nest.Nest, "_by_cases", lambda _, here, *rest: rest[-1](here))
    together = mapped(convolution(11))
    assert by_cases.schedule.statements == together.schedule.statements
    for name in ("fma", "l1", "l2"):
        mine, other = by_cases.estimate.parts[name], together.estimate.parts[name]
        assert mine == pytest.approx(other, rel=0.01), name


def where(**ranges: tuple[int, int]) -> Position:
    return Position({}, {}, ranges)


A, B = var("a"), var("b")


def test_what_holds_with_others_is_no_case_of_its_own() -> None:
    # Where a >= 2, a >= 1 holds as well; where a < 1, a >= 2 fails.
    conditions = (A - 1, A - 2)
    found = [p.given for p in cases(where(a=(0, 9)), conditions)]
    assert found == [{A - 1, A - 2}, {A - 1, const(1) - A}, {-A}]


def test_both_ends_fail_together_nowhere() -> None:
    conditions = (A + B - 1, 8 - A - B)
    found = [p.given for p in cases(where(a=(0, 9), b=(0, 9)), conditions)]
    assert found == [set(conditions), {A + B - 1, A + B - 9}, {-A - B}]


def test_what_does_nothing_has_no_branch() -> None:
    def make(position: Position) -> list[Node]:
        return [Call("f", ())] if A - 1 in position.given else []

    def makes_else(position: Position) -> list[Node]:
        return [] if A - 1 in position.given else [Call("f", ())]

    conditions: tuple[Index, ...] = (A - 1,)
    call = Call("f", ())
    assert decided(where(a=(0, 9)), conditions, make) == [Guard((A - 1,), (call,))]
    assert decided(where(a=(0, 9)), conditions, makes_else) == [Guard((-A,), (call,))]
    assert decided(where(a=(0, 9)), conditions, lambda _: []) == []
    assert decided(where(a=(1, 9)), conditions, lambda _: [call]) == [call]
