"""Alignments: what is changed is an instance, and no more is changed than was damaged."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from isamap.explain.align import align
from isamap.ir.dtype import DTYPES
from isamap.ir.index import var
from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.mapping.needles.pattern import bindings

F32, BF16, S32 = DTYPES["f32"], DTYPES["bf16"], DTYPES["s32"]
OPS = ("+", "-", "*", "max")


@st.composite
def patterns(draw: st.DrawFn) -> Expr:
    """Return a body over operands o0, o1, ..., each of which occurs once."""
    count = 0

    def grow(depth: int) -> Expr:
        nonlocal count
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            if draw(st.integers(0, 5)) == 0:
                return Literal(draw(st.sampled_from(("2.0", "3.0"))), F32)
            count += 1
            return Access(f"o{count}", (var("i"),), F32)
        if draw(st.integers(0, 6)) == 0:
            count += 1
            return Op("cast", (Access(f"o{count}", (var("i"),), BF16),), F32)
        return Op(draw(st.sampled_from(OPS)), (grow(depth - 1), grow(depth - 1)), F32)

    return grow(3)


def places(expr: Expr) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for n, arg in enumerate(getattr(expr, "args", ())):
        found += [(n, *rest) for rest in places(arg)]
    return found


def damaged(expr: Expr, place: tuple[int, ...]) -> Expr:
    """Return an expression with one thing changed at a place."""
    if place:
        assert isinstance(expr, Op)
        inside = list(expr.args)
        inside[place[0]] = damaged(inside[place[0]], place[1:])
        return replace(expr, args=tuple(inside))
    match expr:
        case Literal(text, dtype):
            return Literal("7.0" if text != "7.0" else "8.0", dtype)
        case Access(_, _, dtype):
            return replace(expr, dtype=S32 if dtype != S32 else F32)
        case Op("cast", (inner,), _):
            return inner
        case Op(op, args, _) if len(args) == 2:
            return replace(expr, op="min" if op != "min" else "+")
        case _:
            return expr


def test_equal_bodies_differ_in_nothing() -> None:
    pattern = Op("*", (Access("a", (), F32), Access("b", (), F32)), F32)
    expr = Op("*", (Access("X", (), F32), Access("Y", (), F32)), F32)
    (best, *_) = align(pattern, expr)
    assert (best.cost, best.differences, best.changed) == (0, (), expr)


@given(patterns(), st.data())
def test_as_many_differences_as_damages(pattern: Expr, data: st.DataObject) -> None:
    expr = pattern
    count = data.draw(st.integers(0, 2))
    for _ in range(count):
        expr = damaged(expr, data.draw(st.sampled_from(places(expr))))
    found = align(pattern, expr)
    assert found[0].cost <= count
    assert bool(found[0].differences) == bool(found[0].cost)
    assert (found[0].cost == 0) == bool(bindings(pattern, expr))
    for one in found:
        if one.changed is not None:
            assert bindings(pattern, one.changed)
