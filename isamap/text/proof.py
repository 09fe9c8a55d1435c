"""Proofs that an index expression is never negative, or values for which it is.

Intervals decide nearly everything; then symbols by their corners and small trial values, domains of
a moderate size by enumeration, and the rest is asked of the solver.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np

from isamap.ir.box import is_nonnegative
from isamap.ir.index import Div, Index, Mod, Name, Read, const, var
from isamap.ir.smt import at_least, term
from isamap.solver.ask import Answer, ask

_MAX_POINTS = 1 << 20
_EXACT = 1 << 60  # values that 64-bit arrays hold without overflow on the way
_TRIALS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 32)
_MAX_TRIALS = 250
_SMALL = (4, 16, 64, 1024)

Interval = tuple[int, int | None]
Witness = dict[str, int]


class Undecided(Exception):
    """The solver gave up; the message says why."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What names stand for: variables with their lower ends and extents, and symbols.

    Extents with a number are not in here: they are replaced before.  ``symbols`` gives the least
    and greatest value, both included; None is no upper end.
    """

    variables: Mapping[str, tuple[Index, Index]] = field(default_factory=dict)
    symbols: Mapping[str, Interval] = field(default_factory=dict)

    def numeric(self, symbols: Mapping[str, int]) -> dict[str, tuple[int, int]] | None:
        """Return both ends of every variable for given symbols; None if one has no value."""
        found = {}
        for name, (lower, extent) in self.variables.items():
            low, size = lower.substitute(symbols).constant, extent.substitute(symbols).constant
            if low is None or size is None or size < 1:
                return None
            found[name] = (low, low + size - 1)
        return found


def negative_at(index: Index, domain: Domain) -> Witness | None:
    """Return values of the names for which ``index`` is negative, or None if there are none.

    Undecided if neither can be shown.  ``index`` has no data-dependent parts.
    """
    if index.constant is not None:
        return {} if index.constant < 0 else None
    domain = _relevant(index, domain)
    if not domain.symbols:
        return _numeric(index, domain, {})
    least = _least(index, domain)
    if least is not None and is_nonnegative(least):
        return None
    for symbols in trials(domain.symbols):
        ranges = domain.numeric(symbols)
        if ranges is not None:
            found = _search(index.substitute(symbols), ranges)
            if found is not None:
                return {**symbols, **found}
    return _solve(index, domain)


def _relevant(index: Index, domain: Domain) -> Domain:
    """Return the domain of the names that matter for an expression."""
    names = set(index.names)
    for name in list(names):
        if name in domain.variables:
            names |= domain.variables[name][0].names | domain.variables[name][1].names
    return Domain(
        {n: v for n, v in domain.variables.items() if n in names},
        {n: s for n, s in domain.symbols.items() if n in names},
    )


def _numeric(index: Index, domain: Domain, symbols: Mapping[str, int]) -> Witness | None:
    ranges = domain.numeric(symbols)
    assert ranges is not None, "ranges are checked before what uses them"
    bounds = index.bounds(ranges)
    if bounds is not None and bounds[0] >= 0:
        return None
    found = _search(index, ranges)
    if found is not None or (_points(ranges) <= _MAX_POINTS and bounds is not None):
        return found
    return _solve(index, domain)


def _points(ranges: Mapping[str, tuple[int, int]]) -> int:
    return prod(high - low + 1 for low, high in ranges.values())


def _search(index: Index, ranges: Mapping[str, tuple[int, int]]) -> Witness | None:
    """Return a point with a negative value: the worst corner, or any point of a small domain."""
    corner = {
        name: ends[(index.coefficient(name).constant or 0) < 0] for name, ends in ranges.items()
    }
    if int(index.evaluate(corner)) < 0:
        return _simplest(index, corner, ranges)
    linear = all(isinstance(a, Name) for m, _ in index.terms for a in m)
    bounds = index.bounds(ranges)
    if bounds is None or max(map(abs, bounds)) > _EXACT:
        return None
    if _points(ranges) > _MAX_POINTS or (linear and index.is_linear_in(ranges)):
        return None
    grids = np.ix_(*(np.arange(low, high + 1, dtype=np.int64) for low, high in ranges.values()))
    reached = np.asarray(index.evaluate(dict(zip(ranges, grids, strict=True))))
    shape = tuple(high - low + 1 for low, high in ranges.values())
    bad = np.argwhere(np.broadcast_to(reached, shape) < 0)
    if not len(bad):
        return None
    return {n: ranges[n][0] + int(at) for n, at in zip(ranges, bad[0], strict=True)}


def _simplest(index: Index, corner: Witness, ranges: Mapping[str, tuple[int, int]]) -> Witness:
    """Return a witness nearer to the lower ends than the worst corner."""
    found = dict(corner)
    for name, (low, _) in ranges.items():
        if int(index.evaluate({**found, name: low})) < 0:
            found[name] = low
    return found


def _least(index: Index, domain: Domain) -> Index | None:
    """Return a bound from below without variables, or None where no corner is the least."""
    found: Index | None = index
    for name, (lower, extent) in domain.variables.items():
        found = _lowered(found, name, lower, lower + extent - 1)
    for name, (low, high) in domain.symbols.items():
        if high is not None:
            found = _lowered(found, name, const(low), const(high))
    return found


def _lowered(index: Index | None, name: str, low: Index, high: Index) -> Index | None:
    if index is None or name not in index.names:
        return index
    if not index.is_linear_in((name,)):
        return None
    factor = index.coefficient(name)
    if is_nonnegative(factor):
        return index.substitute({name: low})
    return index.substitute({name: high}) if is_nonnegative(-factor) else None


def trials(symbols: Mapping[str, Interval]) -> Iterator[dict[str, int]]:
    """Yield small values of the symbols, the smallest first."""
    choices = []
    count = max(2, int((8 * _MAX_TRIALS) ** (1 / len(symbols))))
    for low, high in symbols.values():
        trials = [low - 1 + t for t in _TRIALS[:count]]
        values = [value for value in trials if high is None or value <= high]
        choices.append([*values, high] if high is not None and high not in values else values)
    combined = sorted(product(*choices), key=lambda values: (sum(values), values))
    for chosen in combined[:_MAX_TRIALS]:
        yield dict(zip(symbols, chosen, strict=True))


def constraints(domain: Domain) -> list[str]:
    """Return the assertions that the names lie in their domain."""
    found = []
    for name, (low, high) in domain.symbols.items():
        found.append(at_least(var(name), low))
        if high is not None:
            found.append(at_least(const(high), var(name)))
    for name, (lower, extent) in domain.variables.items():
        found.append(at_least(var(name), lower))
        found.append(at_least(lower + extent - 1, var(name)))
    return found


def solve(domain: Domain, demands: list[str]) -> Witness | None:
    """Ask the solver for a point of the domain that meets the demands; prefer small symbols."""
    names = (*domain.symbols, *domain.variables)
    given = constraints(domain) + demands
    answer = ask(names, given)
    if answer.verdict == "unknown":
        raise Undecided(answer.reason)
    if answer.verdict == "unsat":
        return None
    return _smaller(names, given, domain, answer)


def _smaller(names: tuple[str, ...], given: list[str], domain: Domain, answer: Answer) -> Witness:
    for bound in _SMALL:
        limits = [at_least(const(bound), var(name)) for name in domain.symbols]
        if limits and max(answer.values[n] for n in domain.symbols) > bound:
            small = ask(names, given + limits, 500)
            if small.verdict == "sat":
                return small.values
    return answer.values


def _solve(index: Index, domain: Domain) -> Witness | None:
    return solve(domain, [f"(< {term(index)} 0)"])


# --- data-dependent indices -----------------------------------------------------------------------
def without_reads(
    index: Index, limits: Mapping[str, tuple[int, int] | None]
) -> tuple[Index, dict[str, tuple[Index, Index]]] | None:
    """Return an index with its reads replaced by fresh variables, and the ranges of these.

    ``limits`` gives both ends of the values of each buffer; None if a buffer declares none: then
    nothing can be proved.
    """
    found: dict[str, tuple[Index, Index]] = {}
    for read in index.reads:
        ends = limits.get(read.buffer)
        if ends is None:
            return None
        found[str(Index((((read,), 1),)))] = (const(ends[0]), const(ends[1] - ends[0] + 1))
    return _replaced(index), found


def _replaced(index: Index) -> Index:
    total = const(0)
    for monomial, coefficient in index.terms:
        factor = const(coefficient)
        for atom in monomial:
            match atom:
                case Name(name):
                    factor = factor * var(name)
                case Div(value, divisor):
                    factor = factor * (_replaced(value) // divisor)
                case Mod(value, divisor):
                    factor = factor * (_replaced(value) % divisor)
                case Read():
                    factor = factor * var(str(Index((((atom,), 1),))))
        total = total + factor
    return total
