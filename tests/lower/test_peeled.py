"""Where conditions of copies hold in all of a part."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.index import Index, const, total, var
from isamap.lower.nodes import Copy
from isamap.lower.peeled import outermost, unlooked, worst
from tests.emit.building import emitted
from tests.emit.machines import kernel
from tests.emit.samples import sample

NAMES = ("a", "b", "c")


def number(index: Index) -> float:
    return float(index.evaluate({}))


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Index, tuple[tuple[str, Index], ...]]:
    loops = tuple((name, const(draw(st.integers(1, 5)))) for name in NAMES)
    form = total(draw(st.integers(-3, 3)) * var(name) for name in NAMES)
    return form + draw(st.integers(-9, 9)), loops


@given(conditions())
def test_the_worst_is_the_least_of_all_iterations(
    case: tuple[Index, tuple[tuple[str, Index], ...]],
) -> None:
    condition, loops = case
    inner = loops[1:]
    least = worst(condition, inner)
    assert least is not None
    counts = [range(int(number(count))) for _, count in inner]
    for first in range(int(number(loops[0][1]))):
        found = [
            condition.evaluate({"a": first, "b": b, "c": c}) for b, c in product(*counts)
        ]  # fmt: skip
        assert least.evaluate({"a": first}) == min(found)


@given(conditions())
def test_what_is_not_looked_at_is_a_part(
    case: tuple[Index, tuple[tuple[str, Index], ...]],
) -> None:
    condition, loops = case
    part = unlooked(condition, loops, number)
    if (name := outermost(condition, loops)) is None:
        assert part == 1
        return
    counts = [range(int(number(count))) for _, count in loops]
    points = [dict(zip(NAMES, point, strict=True)) for point in product(*counts)]
    failing = {point[name] for point in points if condition.evaluate(point) < 0}
    times = len(counts[NAMES.index(name)])
    if len(failing) == 1:  # the loops inside are taken apart again
        assert 1 - 1 / times <= part <= 1
    else:
        assert part == 1 - len(failing) / times


def odd(depth: int) -> tuple[Copy, tuple[tuple[str, Index], ...]]:
    """Return pairs of rows woven, of which the last one has no second row."""
    k, n, u = var("k"), var("n"), var("u")
    loops = (("k", const(-(-depth // 2))), ("n", const(8)), ("u", const(2)))
    source = 16 * k + 8 * u + n
    copy = Copy(loops, "Z", 16 * k + 2 * n + u, "X", source, (const(depth - 1) - 2 * k - u,))
    return copy, loops


@pytest.mark.parametrize(("depth", "part"), [(8, 1.0), (9, 1.0), (2, 1.0)])
def test_only_the_last_pair_of_rows_is_looked_at(depth: int, part: float) -> None:
    copy, loops = odd(depth)
    assert unlooked(copy.conditions[0], loops, number) == part
    pairs = -(-depth // 2)
    size = [16 * pairs]
    arrays = kernel("woven", [("X", "in", "s16", size), ("Z", "inout", "s16", size)])
    text = emitted(sample(arrays, (copy,))).functions
    assert "past_" not in text
    whole = [f"i_k = 0; i_k < {depth // 2}; ", *([f"i_k = {depth // 2}; "] * (depth % 2))]
    assert all(loop in text for loop in whole)
