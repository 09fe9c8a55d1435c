"""Tiles and loop orders of every memory level, as the analytical model wants them.

The model gives chains: a tile for each memory and the operand that stays put between two of them. A
chain is a list of loops: between two tiles, those that the stationary operand does not depend on
run innermost.  The best chains and such as cut other loops are kept, in the order of what their
loops move, counted exactly.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from collections.abc import Mapping as Dict
from dataclasses import dataclass, replace
from functools import cache, partial

from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.model.bridge import Modelled, model_of
from isamap.model.exact import Loop, judged
from isamap.model.nest import Nest
from isamap.model.path import Optimum, best, likely
from isamap.model.sizes import Sizes, even
from isamap.schedule.schedule import Level
from isamap.schedule.shape import Shape, is_symbolic
from isamap.schedule.threads import share

KEPT = 8
"""Tilings of a mapping and a register block that may be chosen."""

WORTH = 1.3
"""A tiling is expected to take at most this many times the best one's cycles."""

WIDTH = 32
"""Labels a memory that the search for likely chains goes on with."""

_CHAINS = 24

TILES = 1500
"""Combinations of sizes that are looked at for one tile of all dimensions."""

PROVED = 20000
"""Combinations of sizes of which the best chain is proved."""

_OVERLAP = 0.1
"""The part of the shorter one by which computing and the slowest transfer get in each other's
way."""


_NOTHING = 1.01
"""A loop is left out if transfers take no more than this much longer without it."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """Loops around a register block, and the cycles that the model expects."""

    loops: tuple[tuple[str, int], ...]
    cycles: float


def tilings(
    shape: Shape,
    kernel: Kernel,
    accelerator: Accelerator,
    block: Dict[str, int],
    packed: Container[str] = (),
    complete: bool = False,
) -> tuple[Tiling, ...]:
    """Return the best and other good tilings around a block of tiles of each variable.

    If they must be ``complete``, results leave the registers once, when they are.

    ``kernel`` is of the statement alone, with its extents bound; ``packed`` are the buffers of
    which packed copies are read.
    """
    if not shape.extents:
        return ()
    modelled = modelled_block(shape, kernel, accelerator, block, packed)
    nest, machine = modelled.nest, modelled.machine
    if not machine.memories:
        return ()
    names = tuple(shape.extents)
    reductions = [n for n, v in enumerate(names) if v in shape.reductions]
    sizes = even(nest, TILES)
    # The results complete, or in parts: what is in parts cannot be finished in registers.
    whole = _held_whole(sizes, nest, reductions)
    hidden = replace(machine, exposed=_OVERLAP)
    chains = likely(nest, machine, _CHAINS, whole, WIDTH)
    if whole != sizes and kernel.permissions.reassociate and not complete:
        chains += likely(nest, machine, _CHAINS, sizes, WIDTH)
        chains += likely(nest, hidden, _CHAINS, sizes, WIDTH)
    judge = cache(partial(judged, nest, machine))
    simple = {_simple(loops_of(chain, nest, reductions), judge) for chain in chains}

    def rank(loops: tuple[Loop, ...]) -> tuple[float, float, tuple[Loop, ...]]:
        moving = judge(loops)
        return round(expected(modelled, moving)), round(sum(moving)), loops

    ranked = sorted(simple, key=rank)
    worth = [loops for loops in ranked if rank(loops)[0] <= WORTH * rank(ranked[0])[0]]
    if complete:
        worth = [loops for loops in worth if _is_complete(loops, reductions)]
    chosen = _best_and_diverse(worth, KEPT)
    return tuple(
        Tiling(tuple((names[dim], step) for dim, step in loops), expected(modelled, judge(loops)))
        for loops in chosen
    )


def modelled_block(
    shape: Shape,
    kernel: Kernel,
    accelerator: Accelerator,
    block: Dict[str, int],
    packed: Container[str] = (),
) -> Modelled:
    """Return what the model knows of a statement with a register block of some tiles."""
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    steps = {v: block[v] * shape.tile[v] for v in shape.extents}
    return model_of(shape.mapping, accelerator, buffers, shape.extents, steps, packed)


def _is_complete(loops: Sequence[Loop], reductions: Sequence[int]) -> bool:
    """Return whether no loop over results is inside one over a reduction."""
    over = [dim in reductions for dim, _ in loops]
    return over == sorted(over)


def expected(modelled: Modelled, moving: Sequence[float]) -> float:
    """Return the cycles of a statement whose transfers are :func:`judged`: computing beside the
    slowest of them, and results that come and go."""
    settling, *others = moving
    computing, slowest = max(modelled.limits.values()), max(others, default=0.0)
    return max(computing, slowest) + _OVERLAP * min(computing, slowest) + settling


def proved(modelled: Modelled) -> Optimum | None:
    """Return the best chain of divisors and balanced sizes; None where no memory has tiles."""
    nest, machine = modelled.nest, modelled.machine
    return next(iter(best(nest, machine, 1, even(nest, PROVED))), None)


def loops_of(chain: Optimum, nest: Nest, reductions: Sequence[int]) -> tuple[Loop, ...]:
    """Return the loops of a chain, outermost first; none with a single trip."""
    found: list[Loop] = []
    outer = nest.whole
    for tile, number in zip(reversed(chain.tiles), reversed(chain.stationary), strict=True):
        used = nest.operands[number].dims
        dims = [d for d in range(len(outer)) if tile[d] < outer[d]]
        # Results that stay put see their reductions one after the other, as they are written.
        dims.sort(key=lambda d: (d not in used, d in reductions, d))
        found += [(d, tile[d]) for d in dims]
        outer = tile
    return _merged(found)


def levels_of(
    shape: Shape, tiling: Tiling, block: Dict[str, int], threads: int, reverse: bool = False
) -> list[Level]:
    """Return the levels of a tiling around any block of tiles of each variable.

    Its steps become multiples of the block's.  If ``reverse``, loops over results that are
    neighbours change places.
    """
    loops = _around(shape, tiling.loops, block)
    if reverse:
        loops = _reversed(loops, shape.outputs)
    shared = iter(share(shape, [Level(v, s) for v, s in loops if v in shape.outputs], threads))
    return [next(shared) if v in shape.outputs else Level(v, step) for v, step in loops]


def _around(
    shape: Shape, loops: Sequence[tuple[str, int]], block: Dict[str, int]
) -> list[tuple[str, int]]:
    """Return loops with steps that are multiples of a block's, each of the one inside it."""
    steps = {v: block[v] * shape.tile[v] for v in shape.extents}
    found: list[tuple[str, int]] = []
    inside: set[str] = set()
    for v, step in reversed(loops):
        extent, unit = shape.extents[v], steps[v]
        if v in inside:
            # As many rounds as were wanted, all alike.
            rounds = -(-extent // step)
            unit *= max(1, -(-extent // (rounds * unit)))
        if v not in inside or steps[v] < unit < extent:
            found.insert(0, (v, unit))
            steps[v] = unit
        inside.add(v)
    # A block may be smaller than the one that the tiling was made for.
    missing = [v for v in shape.extents if v not in inside and steps[v] < shape.extents[v]]
    found += [(v, steps[v]) for v in missing]
    found = [(v, s) for v, s in found if s < shape.extents[v] or is_symbolic(shape, v)]
    after = (v for v, _ in (*found[1:], ("", 0)))
    return [loop for loop, v in zip(found, after, strict=False) if loop[0] != v]


def _reversed(loops: Iterable[tuple[str, int]], outputs: Sequence[str]) -> list[tuple[str, int]]:
    """Return loops in which those over results that are neighbours run in the opposite order.

    Two of one variable keep theirs.
    """
    found: list[list[tuple[str, int]]] = []
    for loop in loops:
        names = {v for v, _ in found[-1]} if found else set()
        alike = found and loop[0] in outputs and names <= set(outputs) and loop[0] not in names
        if alike:
            found[-1].append(loop)
        else:
            found.append([loop])
    return [loop for group in found for loop in reversed(group)]


def _held_whole(sizes: Sizes, nest: Nest, dims: Sequence[int]) -> Sizes:
    """Return sizes with which some dimensions are cut into register blocks only."""
    return [sorted({nest.steps[n], own[-1]}) if n in dims else own for n, own in enumerate(sizes)]


def _simple(
    loops: tuple[Loop, ...], judge: Callable[[tuple[Loop, ...]], tuple[float, ...]]
) -> tuple[Loop, ...]:
    """Return loops without those that gain next to nothing; the innermost of a dimension stay."""
    at = 0
    while at < len(loops):
        fewer = _merged((*loops[:at], *loops[at + 1 :]))
        is_last = all(dim != loops[at][0] for dim, _ in loops[at + 1 :])
        if is_last or sum(judge(fewer)) > _NOTHING * sum(judge(loops)):
            at += 1
        else:
            loops, at = fewer, 0
    return loops


def _merged(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """Return loops without those straight around another one over the same dimension."""
    inside = (dim for dim, _ in (*loops[1:], (-1, 0)))
    return tuple(loop for loop, dim in zip(loops, inside, strict=False) if loop[0] != dim)


def _best_and_diverse(ranked: Sequence[tuple[Loop, ...]], count: int) -> list[tuple[Loop, ...]]:
    """Return half of them from the front, then the first ones of each kind that is not there yet,
    then the next.

    Two are of a kind if they have as many loops over each dimension.
    """

    def kind(loops: tuple[Loop, ...]) -> tuple[int, ...]:
        return tuple(sorted(dim for dim, _ in loops))

    taken = list(ranked[: (count + 1) // 2])
    kinds = {kind(loops) for loops in taken}
    for loops in ranked[len(taken) :]:
        if len(taken) < count and kind(loops) not in kinds:
            kinds.add(kind(loops))
            taken.append(loops)
    rest = [loops for loops in ranked if loops not in taken]
    return taken + rest[: count - len(taken)]
