"""Which digits lie along a dimension of an operand on which sums of variables lie."""

from itertools import product
from math import prod

import pytest

from isamap.ir.index import Index, var
from isamap.mapping.fragments.fragment import Digit, Fragment, Part
from isamap.mapping.fragments.layout import PlacedDigit
from isamap.mapping.tiles.sliding import sliding
from tests.mapping.test_produce import F32

W, S, H = var("w"), var("s"), var("h")


def digit(form: Index, tile: dict[str, int], weight: int = 1) -> PlacedDigit:
    factors = {v: form.coefficient(v).constant or 0 for v in form.names}
    low = sum(min(0, c * (tile[v] - 1)) for v, c in factors.items())
    reach = sum(abs(c) * (tile[v] - 1) for v, c in factors.items())
    return PlacedDigit(form, low, reach + 1, weight)


def places(dim: tuple[PlacedDigit, ...], tile: dict[str, int]) -> set[int]:
    """Return the places along a dimension at which some iteration is."""
    found = set()
    for point in product(*(range(extent) for extent in tile.values())):
        here = dict(zip(tile, point, strict=True))
        found.add(sum((d.form.evaluate(here) - d.low) * d.weight for d in dim))
    return found


WINDOWS = {
    "tap": ((W, 1), (S, 1)),
    "one form": ((W + S, 1),),
    "steps": ((W, 2), (S, 1)),
    "steps in a form": ((2 * W + S, 1),),
    "rows of a window": ((H, 18), (W, 1), (S, 1)),
    "channels inside": ((W, 4), (S, 4), (H, 1)),
    "back": ((W, 1), (-S, 1)),
    "back in a form": ((W - S, 1),),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_digit_has_each_place_that_it_reaches(name: str) -> None:
    for w, s in ((16, 3), (2, 3), (5, 4)):
        tile = {"w": w, "s": s, "h": 4}
        used = frozenset[str]().union(*(form.names for form, _ in WINDOWS[name]))
        tile = {v: extent for v, extent in tile.items() if v in used}
        dim = tuple(digit(form, tile, weight) for form, weight in WINDOWS[name])
        own = sliding((dim,), tile)
        reached = places(dim, tile)
        if own is None:
            assert reached != set(range(len(reached)))
            continue
        (found,) = own
        assert reached == set(range(prod(d.tile for d in found)))
        assert {part.variable for d in found for part in d.pieces} == used


@pytest.mark.parametrize(
    "dims",
    [
        (((W, 2),),),  # every second place is left out
        (((W + 1, 1),),),
        (((W, 1), (S, 1)), ((S, 1),)),  # it is told by the other dimension, too
        (((W // 2 + S, 1),),),
    ],
)
def test_what_is_no_window_has_no_digits(dims: tuple[tuple[tuple[Index, int], ...], ...]) -> None:
    tile = {"w": 4, "s": 3}
    assert sliding(tuple(tuple(digit(f, tile, w) for f, w in dim) for dim in dims), tile) is None


def test_places_are_left_out_where_fewer_iterations_are_alive() -> None:
    steps = Digit("w+s", 9, (Part("s", 3), Part("w", 4, 2)))
    back = Digit("w+s", 6, (Part("w", 4), Part("s", 3, back=True)))
    assert steps.has_holes({"s"})
    assert not steps.has_holes({"w"})
    assert back.has_holes({"s"})
    assert not back.has_holes({"w"})


def test_elements_are_dead_where_fewer_iterations_of_either_are_alive() -> None:
    window = ((Digit("w+s", 6, (Part("w", 4), Part("s", 3))),),)
    for cut in ("w", "s"):
        assert Fragment("v", F32, (6,), window, frozenset({cut})).has_dead(0)
    assert not Fragment("v", F32, (6,), window).has_dead(0)
