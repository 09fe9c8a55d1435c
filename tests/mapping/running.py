"""The oracle: instructions run on random contents, with every element in the place it maps to."""

from collections.abc import Callable, Iterator
from itertools import chain, combinations, product
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isamap.ir.index import Index
from isamap.ir.nodes import Access, Expr, Literal, Op, Reduce, Statement
from isamap.ir.statements import read_indices
from isamap.mapping.checks.legal import violations
from isamap.mapping.laws.filler import fillers
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Matching, Needle, Placement
from isamap.mapping.needles.needles import Bindings, operand_accesses
from tests.mapping.small import S64, with_extents

Array: TypeAlias = NDArray[Any]

COMBINE: dict[str, Any] = {
    "+=": np.add,
    "max=": np.maximum,
    "min=": np.minimum,
    "or=": np.bitwise_or,
    "and=": np.bitwise_and,
    "xor=": np.bitwise_xor,
    "=": np.fmax,
}


def extent(form: Index, tile: dict[str, int]) -> int:
    """Return how many positions a form takes."""
    steps = {n: form.coefficient(n).constant or 0 for n in form.names if tile[n] > 1}
    divisor = gcd(*steps.values()) or 1
    return 1 + sum(abs(c) // divisor * (tile[n] - 1) for n, c in steps.items())


def roomy(matching: Matching, tile: dict[str, int], spare: int = 1) -> Matching:
    """Return the matching on axes that just hold the tile, and ``spare`` places more."""
    sizes = {}
    for axis in matching.needle.axes:
        size = 1
        for form in matching.on_axis(axis.name):
            size *= extent(form, tile)
        sizes[axis.name] = size + spare
    needle = with_extents(matching.needle, sizes)
    return Matching(matching.statement, needle, matching.operands, matching.placements)


def all_placements(kernel: Statement, needle: Needle, operands: Bindings) -> Iterator[Matching]:
    """Yield every subset of (form, axis) as a matching, legal or not."""
    whole = problem(kernel, needle, operands)
    pairs = [
        Placement(whole.indices[f], axis)
        for axis, f in product(whole.axes, range(len(whole.forms)))
    ]
    for chosen in chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)):
        yield Matching(kernel, needle, operands, chosen)


def runs_right(
    matching: Matching, tile: dict[str, int], rng: np.random.Generator, *, split: bool = False
) -> bool:
    """Fill the instruction's operands from random kernel elements, run it, and compare.

    Elements that no iteration uses hold the filler, or garbage where there is none.  A matching for
    which no filler is known is run with zeros.  With ``split`` an element's result is what all its
    places together hold.
    """
    needle = matching.needle
    names = matching.inner
    sizes = [tile[n] for n in names]
    count = prod(sizes)
    points = np.indices(sizes).reshape(len(sizes), count)
    still = {v.name: np.zeros(count, np.int64) for v in matching.statement.variables}
    x = {"": np.zeros(count, np.int64), **still, **dict(zip(names, points, strict=True))}
    where = {axis.name: _positions(matching.on_axis(axis.name), x, tile) for axis in needle.axes}
    rooms = {axis.name: axis.extent for axis in needle.axes}
    seen = {**operand_accesses(needle), needle.target.buffer: needle.target}
    fill = {} if violations(matching) else fillers(matching)
    contents: dict[str, Array] = {}
    live: dict[str, Array] = {}
    for name, expr in matching.operands:
        live[name] = _values(expr, x, rng)
        box = [rooms[n] for n in _axes(needle, seen[name])]
        filler = fill.get(name, Literal("0", S64))
        kind = live[name].dtype
        if filler is None:
            array = rng.integers(1, 1 << 20, box).astype(kind)
        else:
            array = np.full(box, float(filler.text) if kind == np.float64 else int(filler.text))
        array = array.astype(kind)
        place = tuple(where[n] for n in _axes(needle, seen[name]))
        array[place] = live[name] if place else live[name][-1]
        contents[name] = array
    cells = _cells(matching.statement.target.indices, x, count)

    def over_tile(found: Reduce, terms: Array) -> Array:
        totals: dict[int, Any] = {}
        for cell, term in zip(
            cells.tolist(), np.broadcast_to(terms, (count,)).tolist(), strict=True
        ):
            totals[cell] = COMBINE[found.reduction](totals[cell], term) if cell in totals else term
        return np.array([totals[cell] for cell in cells.tolist()])

    terms = np.broadcast_to(_body(needle.value, live, over_tile), (count,))
    wanted: dict[int, Any] = {}
    combine = COMBINE[needle.reduction]
    for cell, term in zip(cells.tolist(), terms.tolist(), strict=True):
        wanted[cell] = combine(wanted[cell], term) if cell in wanted else term
    order = tuple(rooms)
    wide = {
        name: _spread(array, _axes(needle, seen[name]), rooms) for name, array in contents.items()
    }

    def over_axes(found: Reduce, terms: Array) -> Array:
        # A merged axis is reduced as all of its parts are.
        gone = [
            d
            for d, axis in enumerate(needle.axes)
            if any(piece in found.variables for piece, _ in axis.pieces)
        ]
        spread = np.broadcast_to(terms, [rooms[n] for n in order])
        result: Array = COMBINE[found.reduction].reduce(spread, axis=tuple(gone), keepdims=True)
        return result

    whole = np.broadcast_to(_body(needle.value, wide, over_axes), [rooms[n] for n in order])
    outer = _axes(needle, needle.target)
    gone = tuple(d for d, n in enumerate(order) if n not in outer)
    # Along the axes of a reduction within the value all results are one.
    result = combine.reduce(whole, axis=gone) if gone else whole
    got = np.broadcast_to(result[tuple(where[n] for n in order if n in outer)], (count,))
    if split:
        places = np.stack(
            [cells, *(np.broadcast_to(where[n], (count,)) for n in order if n in outer)]
        )
        _, first = np.unique(places, axis=1, return_index=True)
        sums: dict[int, Any] = {}
        for cell, part in zip(cells[first].tolist(), got[first].tolist(), strict=True):
            sums[cell] = combine(sums[cell], part) if cell in sums else part
        return sums == wanted
    return bool([wanted[c] for c in cells.tolist()] == got.tolist())


def _spread(array: Array, axes: tuple[str, ...], rooms: dict[str, int]) -> Array:
    """Return an operand over all axes, in their order, with length 1 on those that it lacks."""
    order = list(rooms)
    dims = sorted(range(array.ndim), key=lambda d: order.index(axes[d]))
    return array.transpose(dims).reshape([rooms[n] if n in axes else 1 for n in order])


def _positions(forms: tuple[Index, ...], x: dict[str, Array], tile: dict[str, int]) -> Array:
    position = np.zeros_like(next(iter(x.values())))
    for form in forms:
        value = form.evaluate(x)
        steps = [form.coefficient(n).constant or 0 for n in form.names if tile[n] > 1]
        position = position * extent(form, tile) + (value - value.min()) // (gcd(*steps) or 1)
    return position


def _values(expr: Expr, x: dict[str, Array], rng: np.random.Generator) -> Array:
    """Return random contents of an expression's elements at every point."""
    count = len(next(iter(x.values())))
    dtype = np.float64 if expr.dtype.is_float else np.int64
    if isinstance(expr, Literal):
        return np.full(count, int(expr.text), dtype)
    distinct, element = np.unique(_cells(read_indices(expr), x, count), return_inverse=True)
    return rng.integers(1, 1 << 20, len(distinct)).astype(dtype)[element]


def _body(expr: Expr, values: dict[str, Array], total: Callable[[Reduce, Array], Array]) -> Array:
    match expr:
        case Reduce():
            return total(expr, _body(expr.body, values, total))
        case Access(name, _, _):
            return values[name]
        case Literal(text, _):
            return np.array(int(text))
        case Op(op, args, _):
            parts = [_body(arg, values, total) for arg in args]
            run: dict[str, Callable[..., Array]] = {
                "*": np.multiply,
                "+": np.add,
                "-": np.subtract,
                "max": np.maximum,
                "min": np.minimum,
                "&": np.bitwise_and,
                "|": np.bitwise_or,
                "^": np.bitwise_xor,
                "abs": np.abs,
            }
            return run[op](*parts)
    raise AssertionError(expr)


def _axes(needle: Needle, seen: Access) -> tuple[str, ...]:
    owners = {name: axis.name for axis in needle.axes for name, _ in axis.pieces}
    return tuple(dict.fromkeys(owners[next(iter(index.names))] for index in seen.indices))


def _cells(indices: tuple[Index, ...], x: dict[str, Array], count: int) -> Array:
    total = np.zeros(count, np.int64)
    for index in indices:
        total = total * 64 + index.evaluate(x) + 16
    return total
