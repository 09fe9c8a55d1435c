"""Which elements a statement writes: all of them, and each one once.

Targets whose dimensions have variables of their own are decided dimension by dimension; others of a
moderate size by marking what is written, and the rest is asked of the solver.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from isamap.ir.box import is_nonnegative
from isamap.ir.index import Index, const, var
from isamap.ir.smt import term
from isamap.text.context import Scope
from isamap.text.domains import Ranges
from isamap.text.proof import Domain, Witness, constraints, solve, trials
from isamap.text.uses import Use

_MAX_POINTS = 1 << 22


@dataclass(frozen=True, slots=True)
class Writer:
    """A target and the ranges of its statement, numbers put in for all extents that have one."""

    indices: tuple[Index, ...]
    shape: tuple[Index, ...]
    ranges: Ranges

    @property
    def used(self) -> Ranges:
        """The ranges of the variables that the target uses."""
        names = frozenset().union(*(index.names for index in self.indices))
        return {name: bounds for name, bounds in self.ranges.items() if name in names}


def writer(scope: Scope, use: Use, ranges: Ranges) -> Writer:
    """Return a statement's target as a writer."""
    known = scope.known
    return Writer(
        tuple(index.substitute(known) for index in use.indices),
        tuple(extent.substitute(known) for extent in use.buffer.shape),
        {n: (low.substitute(known), size.substitute(known)) for n, (low, size) in ranges.items()},
    )


def depends_on_data(one: Writer) -> bool:
    """Return whether the content of a buffer says which elements are written."""
    return any(index.reads for index in one.indices)


def sure(one: Writer) -> Writer:
    """Return a writer by those of its indices that do not depend on data."""
    return replace(one, indices=tuple(index for index in one.indices if not index.reads))


# --- every element --------------------------------------------------------------------------------
def unwritten(scope: Scope, writers: list[Writer]) -> tuple[tuple[int, ...], Witness] | None:
    """Return an element that no writer writes, with the symbols' values; None if there is none.

    Undecided if the solver gives up.
    """
    if any(_covers(one) for one in writers):
        return None
    shape = writers[0].shape
    # Of a place that data says, nothing is sure.
    writers = [one for one in writers if not depends_on_data(one)]
    if not writers:
        return (0,) * len(shape), {}
    domain = scope.domain()
    names = _symbols(writers)
    symbols = {name: ends for name, ends in domain.symbols.items() if name in names}
    exact = True
    for values in trials(symbols) if symbols else iter([{}]):
        marks = _marks(writers, values)
        if marks is None:
            exact = False
            continue
        missing = np.argwhere(~marks)
        if len(missing):
            return tuple(int(at) for at in missing[0]), values
    if exact and not symbols:
        return None
    return _ask_unwritten(writers, shape, Domain({}, symbols))


def _covers(one: Writer) -> bool:
    if not _is_separable(one):
        return False
    return all(
        _spans(index, extent, one.ranges)
        for index, extent in zip(one.indices, one.shape, strict=True)
    )


def _is_separable(one: Writer) -> bool:
    names = [name for index in one.indices for name in index.names & one.ranges.keys()]
    return len(names) == len(set(names))


def _spans(index: Index, extent: Index, ranges: Ranges) -> bool:
    """Return whether an index takes every value from 0 to the extent, as far as is seen easily."""
    ladder = _ladder(index, ranges)
    if ladder is None:
        return extent == const(1) and index == const(0)
    least, steps = ladder
    reach = const(0)
    for factor, size in steps:
        if not is_nonnegative(reach + 1 - factor):
            return False
        reach = reach + factor * (size - 1)
    return least == const(0) and reach == extent - 1


def _ladder(index: Index, ranges: Ranges) -> tuple[Index, list[tuple[Index, Index]]] | None:
    """Return the least value of a linear index and its factors, ascending, with their extents."""
    names = [name for name in ranges if name in index.names]
    if not names or not index.is_linear_in(names):
        return None
    least = index
    steps: list[tuple[Index, Index]] = []
    for name in names:
        factor = index.coefficient(name)
        lower, size = ranges[name]
        rising = is_nonnegative(factor)
        if not rising and not is_nonnegative(-factor):
            return None
        least = least.substitute({name: lower if rising else lower + size - 1})
        factor = factor if rising else -factor
        # Before the first that is no smaller; factors that cannot be compared make no ladder.
        place = next((n for n, (f, _) in enumerate(steps) if is_nonnegative(f - factor)), None)
        steps.insert(len(steps) if place is None else place, (factor, size))
    ascending = all(is_nonnegative(b - a) for (a, _), (b, _) in pairwise(steps))
    return (least, steps) if ascending else None


def _symbols(writers: list[Writer]) -> frozenset[str]:
    found: set[str] = set()
    for one in writers:
        for index in (*one.indices, *one.shape):
            found |= index.names
        for lower, size in one.ranges.values():
            found |= lower.names | size.names
    return frozenset(found)


def _marks(writers: list[Writer], values: Witness) -> npt.NDArray[np.bool_] | None:
    """Return what is written for given symbols; None if that is too much."""
    shape = tuple(extent.substitute(values).constant or 0 for extent in writers[0].shape)
    if not all(shape) or prod(shape) > _MAX_POINTS:
        return None
    marks = np.zeros(shape, np.bool_)
    for one in writers:
        if (places := _places(one, values)) is None:
            return None
        inside = np.ones(places[0].shape if places else (), np.bool_)
        for at, size in zip(places, shape, strict=True):
            inside &= (at >= 0) & (at < size)
        marks[tuple(at[inside] for at in places)] = True
    return marks


def _places(one: Writer, values: Witness) -> list[npt.NDArray[np.int64]] | None:
    """Return the indices of every point of a writer's box, one array a dimension."""
    ranges = Domain(one.used).numeric(values)
    if ranges is None or prod(high - low + 1 for low, high in ranges.values()) > _MAX_POINTS:
        return None
    grids = np.ix_(*(np.arange(low, high + 1, dtype=np.int64) for low, high in ranges.values()))
    points = {**values, **dict(zip(ranges, grids, strict=True))}
    shape = tuple(high - low + 1 for low, high in ranges.values())
    return [
        np.broadcast_to(np.asarray(index.evaluate(points), np.int64), shape).reshape(-1)
        for index in one.indices
    ]


def _ask_unwritten(
    writers: list[Writer], shape: tuple[Index, ...], domain: Domain
) -> tuple[tuple[int, ...], Witness] | None:
    # The element is named by variables that no text can name.
    place = [f" {n}" for n in range(len(shape))]
    element = {name: (const(0), extent) for name, extent in zip(place, shape, strict=True)}
    demands = []
    for one in writers:
        within = constraints(Domain(one.used))
        same = [f"(= {term(i)} |{name}|)" for i, name in zip(one.indices, place, strict=True)]
        body = f"(not (and true {' '.join([*within, *same])}))"
        bound = " ".join(f"(|{name}| Int)" for name in one.used)
        demands.append(f"(forall ({bound}) {body})" if bound else body)
    found = solve(Domain(element, domain.symbols), demands)
    if found is None:
        return None
    return tuple(found[name] for name in place), {n: found[n] for n in domain.symbols}


# --- only once ------------------------------------------------------------------------------------
def twice(scope: Scope, one: Writer) -> tuple[Witness, Witness] | None:
    """Return two points that write the same element; None if there are none.

    Undecided if the solver gives up.
    """
    for name, (lower, size) in one.ranges.items():
        if name not in one.used and size != const(1):
            first = lower.constant or 0
            return {name: first}, {name: first + 1}
    if _is_separable(one) and all(_is_injective(index, one.ranges) for index in one.indices):
        return None
    names = _symbols([one])
    symbols = {n: ends for n, ends in scope.domain().symbols.items() if n in names}
    exact = not symbols
    for values in trials(symbols) if symbols else iter([{}]):
        if (places := _places(one, values)) is None:
            exact = False
        elif (pair := _repeated(one, places, values)) is not None:
            return pair
    return None if exact else _ask_twice(one, Domain({}, symbols))


def _is_injective(index: Index, ranges: Ranges) -> bool:
    ladder = _ladder(index, ranges)
    if ladder is None:
        return not index.names & ranges.keys()
    reach = const(0)
    for factor, size in ladder[1]:
        if not is_nonnegative(factor - 1 - reach):
            return False
        reach = reach + factor * (size - 1)
    return True


def _repeated(
    one: Writer, places: list[npt.NDArray[np.int64]], values: Witness
) -> tuple[Witness, Witness] | None:
    rows = np.stack(places) if places else np.zeros((1, 1), np.int64)
    _, first, inverse = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    earlier = first[inverse.reshape(-1)]
    again = np.flatnonzero(earlier != np.arange(rows.shape[1]))
    if not len(again):
        return None
    ranges = Domain(one.used).numeric(values)
    assert ranges is not None
    shape = tuple(high - low + 1 for low, high in ranges.values())

    def point(flat: int) -> Witness:
        at = np.unravel_index(flat, shape)
        moved = {n: ranges[n][0] + int(a) for n, a in zip(ranges, at, strict=True)}
        return {**values, **moved}

    return point(int(earlier[again[0]])), point(int(again[0]))


def _ask_twice(one: Writer, domain: Domain) -> tuple[Witness, Witness] | None:
    copies = {name: f" {name}" for name in one.used}
    renamed = {name: var(copy) for name, copy in copies.items()}
    both = dict(one.used) | {copies[name]: bounds for name, bounds in one.used.items()}
    demands = [f"(= {term(i)} {term(i.substitute(renamed))})" for i in one.indices]
    demands.append(f"(or {' '.join(f'(not (= |{n}| |{c}|))' for n, c in copies.items())})")
    found = solve(Domain(both, domain.symbols), demands)
    if found is None:
        return None
    symbols = {name: found[name] for name in domain.symbols}
    return (
        {**symbols, **{n: found[n] for n in copies}},
        {**symbols, **{n: found[c] for n, c in copies.items()}},
    )
