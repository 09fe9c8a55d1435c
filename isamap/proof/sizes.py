"""Sizes of symbols under which all code of a lowered kernel is executed, at its limits, too.

A condition that is wrong by one shows where it just holds or just fails, a bound of a loop where
the loop is entered not at all, once, and more often.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random

import numpy as np

from isamap.interp.arguments import bind_symbols
from isamap.ir.index import Div, Index, Mod
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Prefetch,
    Scope,
    Setting,
    Token,
)
from isamap.proof.work import affordable_work

_TRIED = 400
"""Combinations of sizes that are looked at."""

MOST = 12
"""Combinations of sizes that are chosen unless fewer are asked for."""

_REACH = 600
"""The greatest size at which a condition is looked at."""

_CALL = 200
"""What a run costs besides its instructions, in instructions."""

_OFTEN = 3
"""Iterations of a loop from which on more of them tell nothing new."""


def covering_sizes(
    kernel: Kernel, lowered: LoweredKernel, calls: int, iterations: int, most: int = MOST
) -> list[dict[str, int]]:
    """Return few sizes under which together all that is reachable happens, see :func:`_events`.

    Under each of them every buffer has elements and a run stays within some instructions and
    iterations; what only larger sizes would execute is left out.  First come sizes that are all
    long, then those that add most for what a run takes.
    """
    possible: list[tuple[dict[str, int], frozenset[Hashable], int]] = []
    for symbols in _combinations(kernel, lowered):
        values = bind_symbols(kernel, symbols)
        shapes = [int(e.evaluate(values)) for b in kernel.buffers for e in b.shape]
        if min(shapes, default=1) < 1:
            continue
        if any(index.evaluate(values) < 0 for index in lowered.requires):
            continue
        work = affordable_work(kernel, lowered, symbols, calls, iterations)
        if work is not None:
            events = frozenset(_events(lowered.code, dict(values)))
            possible.append((symbols, events, work + _CALL))
    chosen: list[dict[str, int]] = []
    covered: frozenset[Hashable] = frozenset()
    while possible and len(chosen) < most:
        best = possible[0]
        if chosen:  # The first sizes are run even if the code does nothing there.
            best = max(possible, key=lambda p: len(p[1] - covered) / p[2])
            if best[1] <= covered:
                break
        chosen.append(best[0])
        covered |= best[1]
    return chosen


# --- candidates -----------------------------------------------------------------------------------
def _combinations(kernel: Kernel, lowered: LoweredKernel) -> Iterator[dict[str, int]]:
    """Yield combinations of sizes: around the steps that cut symbols, at limits of conditions."""
    if not kernel.symbols:
        yield {}
        return
    steps: dict[str, set[int]] = {name: set() for name in kernel.symbols}
    conditions = dict.fromkeys(index for index, _ in _decisions(lowered.code))
    for index in conditions:
        _collect(index, steps)
    found = {
        name: {1, 7, *(n for d in own for n in (d - 1, d, d + 1, 2 * d + 1) if n > 0)}
        for name, own in steps.items()
    }
    long = {name: max(own) + n for n, (name, own) in enumerate(found.items())}
    for index, limits in dict.fromkeys(_decisions(lowered.code)):
        for name in index.names & found.keys():
            found[name] |= _reaching(index, name, limits, long)
    candidates = {name: sorted(own) for name, own in found.items()}
    # All long first, with something left over: most of the code in one run.
    yield long
    every = 1
    for own in candidates.values():
        every *= len(own)
    if every <= _TRIED:
        for values in product(*(reversed(own) for own in candidates.values())):
            yield dict(zip(candidates, values, strict=True))
        return
    chooser = Random(0)
    for _ in range(_TRIED):
        yield {name: chooser.choice(own) for name, own in candidates.items()}


def _reaching(
    index: Index, name: str, limits: tuple[int, ...], others: Mapping[str, int]
) -> set[int]:
    """Return the least size at which an index has each of some values, counters being 0."""
    values = {**dict.fromkeys(index.names, 0), **others, name: np.arange(1, _REACH + 1)}
    reached = np.asarray(index.evaluate(values, lambda _buffer, _indices: 0))
    hits = (np.flatnonzero(reached == limit) for limit in limits)
    return {int(hit[0]) + 1 for hit in hits if len(hit)}


def _decisions(nodes: Iterable[Node]) -> Iterator[tuple[Index, tuple[int, ...]]]:
    """Yield the counts of loops and the conditions of guards, with the values that are limits."""
    for node in nodes:
        match node:
            case Loop(_, count, body, _):
                yield count, tuple(range(_OFTEN + 1))
                yield from _decisions(body)
            case Guard(conditions, body, otherwise):
                for condition in conditions:
                    yield condition, (-1, 0)
                yield from _decisions((*body, *otherwise))
            case Scope(_, body):
                yield from _decisions(body)
            case Call() | Copy() | Prefetch() | Token() | Setting():
                pass


def _collect(index: Index, steps: Mapping[str, set[int]]) -> None:
    for atom in index.atoms:
        match atom:
            case Div(value, divisor) | Mod(value, divisor):
                for name in value.names & steps.keys():
                    steps[name].add(divisor)
                _collect(value, steps)
            case _:
                pass


# --- what happens ---------------------------------------------------------------------------------
def _events(nodes: Sequence[Node], values: dict[str, int]) -> Iterator[Hashable]:
    """Yield what happens in the first two and the last iteration of each loop.

    Calls and copies that are reached, how often a loop runs up to some number, on which side of a
    condition its value is and whether it is a limit.
    """
    for node in nodes:
        match node:
            case Call() | Copy() | Prefetch() | Token() | Setting():
                yield id(node)
            case Loop(counter, count, body, _):
                times = _number(count, values)
                yield id(node), min(times, _OFTEN)
                for at in sorted({0, 1, times - 1}):
                    if 0 <= at < times:
                        yield from _events(body, {**values, counter: at})
            case Guard(conditions, body, otherwise):
                numbers = [_number(c, values) for c in conditions]
                for n, number in enumerate(numbers):
                    yield id(node), n, max(-2, min(number, 1))
                holds = all(number >= 0 for number in numbers)
                yield from _events(body if holds else otherwise, values)
            case Scope(_, body):
                yield from _events(body, values)


def _number(index: Index, values: Mapping[str, int]) -> int:
    return int(index.evaluate(values, lambda _buffer, _indices: 0))
