"""Sizes of symbols under which all code of a lowered kernel is executed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from random import Random

from isamap.interp.arguments import bind_symbols
from isamap.ir.index import Div, Index, Mod
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import Call, Copy, Guard, Loop, LoweredKernel, Node, Scope
from isamap.proof.work import is_affordable

_TRIED = 400
"""Combinations of sizes that are looked at."""

_MOST = 6
"""Combinations of sizes that are chosen."""


def covering_sizes(
    kernel: Kernel, lowered: LoweredKernel, calls: int, iterations: int
) -> list[dict[str, int]]:
    """Return few sizes under which together every reachable call and copy is executed.

    Under each of them every buffer has elements and a run stays within some instructions and
    iterations; what only larger sizes would execute is left out.
    """
    chosen: list[dict[str, int]] = []
    covered: set[int] = set()
    for symbols in _combinations(kernel, lowered):
        if len(chosen) == _MOST:
            break
        values = bind_symbols(kernel, symbols)
        shapes = [int(e.evaluate(values)) for b in kernel.buffers for e in b.shape]
        if min(shapes, default=1) < 1:
            continue
        if any(index.evaluate(values) < 0 for index in lowered.requires):
            continue
        if not is_affordable(kernel, lowered, symbols, calls, iterations):
            continue
        executed = set(_executed(lowered.code, dict(values)))
        if executed - covered or not chosen:  # Code that does nothing is run, too.
            covered |= executed
            chosen.append(symbols)
    return chosen


def _combinations(kernel: Kernel, lowered: LoweredKernel) -> Iterator[dict[str, int]]:
    """Yield combinations of sizes, first of those around the steps that cut each symbol."""
    if not kernel.symbols:
        yield {}
        return
    steps: dict[str, set[int]] = {name: set() for name in kernel.symbols}
    for index in _indices(lowered.code):
        _collect(index, steps)
    candidates = {
        name: sorted({1, 7, *(n for d in found for n in (d - 1, d, d + 1, 2 * d + 1) if n > 0)})
        for name, found in steps.items()
    }
    # All long first, with something left over: most of the code in one run.
    yield {name: max(found) + n for n, (name, found) in enumerate(candidates.items())}
    every = 1
    for found in candidates.values():
        every *= len(found)
    if every <= _TRIED:
        for values in product(*(reversed(found) for found in candidates.values())):
            yield dict(zip(candidates, values, strict=True))
        return
    chooser = Random(0)
    for _ in range(_TRIED):
        yield {name: chooser.choice(found) for name, found in candidates.items()}


def _indices(nodes: Iterable[Node]) -> Iterator[Index]:
    for node in nodes:
        match node:
            case Loop(_, count, body, _):
                yield count
                yield from _indices(body)
            case Guard(conditions, body, otherwise):
                yield from conditions
                yield from _indices((*body, *otherwise))
            case Scope(_, body):
                yield from _indices(body)
            case Call() | Copy():
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


def _executed(nodes: Sequence[Node], values: dict[str, int]) -> Iterator[int]:
    """Yield the calls and copies reached by the first two and the last iteration of each loop."""
    for node in nodes:
        match node:
            case Call() | Copy():
                yield id(node)
            case Loop(counter, count, body, _):
                last = _number(count, values) - 1
                for at in sorted({0, 1, last}):
                    if 0 <= at <= last:
                        yield from _executed(body, {**values, counter: at})
            case Guard(conditions, body, otherwise):
                holds = all(_number(c, values) >= 0 for c in conditions)
                yield from _executed(body if holds else otherwise, values)
            case Scope(_, body):
                yield from _executed(body, values)


def _number(index: Index, values: Mapping[str, int]) -> int:
    return int(index.evaluate(values, lambda _buffer, _indices: 0))
