"""The best chain of tiles on the model, proved: a shortest path over the memories.

Each memory's cost depends on its tile, on the one outside it and on which operand is stationary, so
that a chain is a path from the registers outwards.  What an operand costs may stay open on the way:
while its tile does not change, its refetches are those of the memory outside.  A *label* is a tile
with the cycles that are settled so far and, for each operand, what one refetch will cost.

A label is dropped if no way to go on can undercut the best chain known, or if another label of the
same tile is better in everything.  What is left at the end is the optimum over all chains of the
sizes that were asked for (each divides the next), and over all orders of loops.  Where the k best
are wanted, a label is dropped if k others are better.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isamap.model.footprint import Floats
from isamap.model.nest import Machine, Nest, Operand
from isamap.model.sizes import Sizes, divided
from isamap.model.traffic import all_tiles, held, pace, refetches

# Ties are not decided by rounding: what is pruned is worse by more than this.
_SLACK = 1e-9
# Labels a memory of the search that finds a chain to begin with.
_BEAM = 64


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best chain: ``tiles`` and stationary operands of the memories, innermost first.

    ``lowest`` is the sum of what each memory costs at least by itself; ``labels`` counts the labels
    that were looked at.
    """

    cycles: float
    tiles: tuple[tuple[int, ...], ...]
    stationary: tuple[int, ...]
    lowest: float
    labels: int


@dataclass(slots=True)
class _Level:
    """The tiles that fit a memory: a row each, with what an operand's movements cost."""

    tiles: NDArray[np.int64]
    each: Floats  # cycles of one refetch, a column an operand
    refunds: Floats  # cycles that a result does not take, as it is not read the first time
    times: Floats  # refetches where the operand is not stationary
    saved: Floats  # refetches less, for each set of operands that stay and each operand
    beyond: Floats  # what the memories outside cost at least, for each set of operands that stay

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "_Level":
        return _Level(
            self.tiles[kept],
            self.each[kept],
            self.refunds[kept],
            self.times[kept],
            self.saved[kept],
            self.beyond[kept],
        )


@dataclass(slots=True)
class _Labels:
    """Labels of one memory, an array entry or row each; ``parent`` numbers the memory before's."""

    tile: NDArray[np.int64]
    settled: Floats
    open_: Floats
    parent: NDArray[np.int64]
    stationary: NDArray[np.int64]

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "_Labels":
        return _Labels(
            self.tile[kept],
            self.settled[kept],
            self.open_[kept],
            self.parent[kept],
            self.stationary[kept],
        )


class _Search:
    def __init__(self, nest: Nest, machine: Machine, sizes: Sizes, wanted: int = 1) -> None:
        self.nest = nest
        self.wanted = wanted
        self.count = len(machine.memories)
        self.compute = float(np.prod([float(e) for e in nest.extents])) / machine.rate
        dims = range(len(nest.extents))
        self.uses = np.array([[d in own.dims for d in dims] for own in nest.operands])
        self.stays = list(_stays(nest))
        self.sizes = [np.array(own) for own in sizes]
        grids = np.meshgrid(*self.sizes, indexing="ij")
        tiles = np.stack([grid.reshape(-1) for grid in grids], 1)
        columns = [column.astype(float) for column in tiles.T]
        room = held(nest, columns)
        times = np.stack([refetches(own, nest.extents, columns) for own in nest.operands], 1)
        sums = np.stack([all_tiles(own, nest.extents, columns) for own in nest.operands], 1)
        back = np.array([float(own.written) for own in nest.operands])
        saved = self._saved(columns, times)
        self.levels: list[_Level] = []
        self.least: list[Floats] = []  # of each tile: all memories from this one outwards
        beyond = self._beyond(tiles, np.array([nest.whole]), np.zeros(1))
        for number, memory in reversed(list(enumerate(machine.memories))):
            fits = room <= memory.capacity
            if machine.block and not number:
                fits = (tiles == np.array(nest.steps)).all(1)
            paces = [pace(own, machine, number, columns) for own in nest.operands]
            once = sums * np.stack(np.broadcast_arrays(columns[0], *paces)[1:], 1)
            each, refunds = once * (1 + back), (once * back).sum(1)
            level = _Level(tiles, each, refunds, times, saved, beyond).only(fits)
            least = self._least(level.each, level) - level.refunds
            self.levels.insert(0, level)
            self.least.insert(0, least)
            beyond = self._beyond(tiles, level.tiles, least)
        self.looked_at = 0

    def _saved(self, columns: Sequence[Floats], times: Floats) -> Floats:
        """Return how many refetches fewer than ``times`` an operand may have, for each set.

        Those whose tile is the same outside may be fetched once.  The stationary one is fetched as
        often as there are tiles outside, which are no larger where the others keep them.
        """
        found = np.zeros((len(times), len(self.stays), len(self.nest.operands)))
        for number, (same, stationary) in enumerate(self.stays):
            fixed = _dims(self.nest.operands, same) - self.nest.operands[stationary].dims
            least = np.ones(len(times))
            for dim in sorted(fixed):
                least = least * np.ceil(self.nest.extents[dim] / columns[dim])
            found[:, number, stationary] = times[:, stationary] - least
            for own in same:
                found[:, number, own] = times[:, own] - 1
        return found

    def _beyond(self, tiles: NDArray[np.int64], outer: NDArray[np.int64], least: Floats) -> Floats:
        """Return what the memories outside cost at least, for each tile and set that stays.

        Operands that stay because their tile is the same outside leave only such tiles to it.
        """
        found = np.empty((len(tiles), len(self.stays)))
        for number, (same, _) in enumerate(self.stays):
            dims = sorted(_dims(self.nest.operands, same))
            lowest = np.full(int(np.prod([len(self.sizes[dim]) for dim in dims])), np.inf)
            np.minimum.at(lowest, self._keys(outer, dims), least)
            found[:, number] = lowest[self._keys(tiles, dims)]
        return found

    def _keys(self, tiles: NDArray[np.int64], dims: Sequence[int]) -> NDArray[np.int64]:
        """Return numbers that are the same for tiles that are the same in some dimensions."""
        keys = np.zeros(len(tiles), np.int64)
        for dim in dims:
            keys = keys * len(self.sizes[dim]) + np.searchsorted(self.sizes[dim], tiles[:, dim])
        return keys

    def _least(self, each: Floats, level: _Level, rows: NDArray[np.int64] | None = None) -> Floats:
        """Return cycles that operands at tiles, and all memories outside, do not undercut.

        ``each`` are the cycles of a refetch at the ``rows`` of a level, all if None.
        """
        own = level if rows is None else level.only(rows)
        whole = (each * own.times).sum(1)
        return np.asarray(whole + (own.beyond - np.einsum("no,nso->ns", each, own.saved)).min(1))

    def run(self, limit: float, width: int | None = None) -> list[Optimum]:
        """Return the best chains of at most ``limit`` cycles; the best of a beam of ``width``."""
        if any(not len(own) for own in self.least):
            return []
        worst = limit * (1 + _SLACK)
        # What the memories inside cost at least, each by itself, is spent in any case.
        inside = np.cumsum([self.compute, *(self._alone(own) for own in self.levels)])
        levels = [
            level.only(inside[number] + self.least[number] <= worst)
            for number, level in enumerate(self.levels)
        ]
        total = self.compute + float(self.least[0].min())
        steps = [self._begin(levels[0])]
        if width is not None:
            first = inside[0] + self.least[0]
            steps = [steps[0].only(np.argsort(first, kind="stable")[:width])]
        for number in range(self.count):
            found = self._outwards(steps[-1], levels, number, worst)
            if not len(found.tile):
                return []
            if number + 1 < self.count:
                found = self._thinned(found, levels[number + 1], width)
            steps.append(found)
        # What is still open moves once: the whole nest is not fetched again.
        steps[-1].settled += steps[-1].open_.sum(1)
        best = np.argsort(steps[-1].settled, kind="stable")[: self.wanted]
        return [self._told(steps, levels, int(at), total) for at in best]

    def _alone(self, level: _Level) -> float:
        """Return what a memory costs at least whatever the other tiles are."""
        most = np.einsum("no,nso->ns", level.each, level.saved).max(1)
        return float(((level.each * level.times).sum(1) - most - level.refunds).min())

    def _begin(self, level: _Level) -> _Labels:
        numbers = np.arange(len(level.tiles))
        nothing = np.zeros(len(numbers), np.int64)
        return _Labels(numbers, self.compute - level.refunds, level.each, nothing, nothing)

    def _outwards(
        self, labels: _Labels, levels: Sequence[_Level], number: int, worst: float
    ) -> _Labels:
        """Return the labels of the next memory; of the whole nest, behind the last memory."""
        inner = levels[number]
        if number + 1 < self.count:
            outer = levels[number + 1]
        else:
            whole = np.array([self.nest.whole])
            zero = np.zeros((1, len(self.nest.operands)))
            sets = np.zeros((1, len(self.stays)))
            outer = _Level(whole, zero, np.zeros(1), zero + 1, sets[:, :, None] * zero, sets)
        found = []
        for at in range(len(labels.tile)):
            tile = inner.tiles[labels.tile[at]]
            # The last memory's tile need not divide the extents.
            divides = (outer.tiles % tile == 0).all(1) | (number + 1 == self.count)
            fits = np.flatnonzero(divides)
            if not len(fits):
                continue
            # Where nothing differs that an operand depends on, its cost stays open.
            differs = ((outer.tiles[fits] != tile)[:, None, :] & self.uses).any(2)
            open_ = labels.open_[at]
            moving = open_ * inner.times[labels.tile[at]]
            still = open_ * outer.times[fits]
            later = np.where(differs, 0.0, open_) + outer.each[fits]
            ahead = self._least(later, outer, fits)
            seen: list[Floats] = []
            for stationary in range(len(self.nest.operands)):
                paid = np.broadcast_to(moving, still.shape).copy()
                paid[:, stationary] = still[:, stationary]
                settled = labels.settled[at] + (paid * differs).sum(1) - outer.refunds[fits]
                good = settled + ahead <= worst
                # An operand that gains nothing by staying is no other way.
                for other in seen:
                    good &= settled != other
                seen.append(settled)
                self.looked_at += len(fits)
                count = int(good.sum())
                if count:
                    found.append(
                        _Labels(
                            fits[good],
                            settled[good],
                            later[good],
                            np.full(count, at),
                            np.full(count, stationary),
                        )
                    )
        return _joined(found, len(self.nest.operands))

    def _thinned(self, labels: _Labels, level: _Level, width: int | None) -> _Labels:
        """Return labels that no other one of the same tile beats in everything."""
        least = labels.settled + self._least(labels.open_, level, labels.tile)
        if width is not None:
            best = np.argsort(least, kind="stable")[: 16 * width]
            labels, least = labels.only(best), least[best]
        # Of labels that differ in nothing but what is settled, the first of each run are the best.
        columns = [labels.settled, *labels.open_.T, labels.tile]
        order = np.lexsort(columns)
        table = np.column_stack(columns[1:])[order]
        begins = np.concatenate([[True], (table[1:] != table[:-1]).any(1)])
        place = np.arange(len(order)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
        order = order[place < self.wanted]
        labels, least = labels.only(order), least[order]
        chosen = self._unbeaten(labels, least)
        if width is not None:
            chosen = chosen[np.argsort(least[chosen], kind="stable")[:width]]
        return labels.only(chosen)

    def _unbeaten(self, labels: _Labels, least: Floats) -> NDArray[np.int64]:
        order = np.lexsort((least, labels.tile))
        starts = np.flatnonzero(np.diff(labels.tile[order], prepend=-1))
        kept: list[int] = []
        for rows in np.split(order, starts[1:]):
            rivals: list[int] = []
            for at in rows:
                better = labels.settled[rivals] <= labels.settled[at]
                better &= (labels.open_[rivals] <= labels.open_[at]).all(1)
                if better.sum() < self.wanted:
                    rivals.append(int(at))
            kept += rivals
        return np.array(kept)

    def _told(
        self, steps: Sequence[_Labels], levels: Sequence[_Level], best: int, total: float
    ) -> Optimum:
        cycles = float(steps[-1].settled[best])
        tiles, stationary, at = [], [], best
        for number in reversed(range(self.count)):
            stationary.append(int(steps[number + 1].stationary[at]))
            at = int(steps[number + 1].parent[at])
            tiles.append(tuple(map(int, levels[number].tiles[steps[number].tile[at]])))
        return Optimum(cycles, tuple(tiles[::-1]), tuple(stationary[::-1]), total, self.looked_at)


def optimum(nest: Nest, machine: Machine) -> Optimum | None:
    """Return the best chain of tiles that divide the extents; None if no tile fits a memory.

    They divide the extents rounded up to units, where there are any.
    """
    return next(iter(best(nest, machine, 1, divided(nest))), None)


def best(nest: Nest, machine: Machine, wanted: int, sizes: Sizes) -> list[Optimum]:
    """Return the ``wanted`` best chains of some sizes of each dimension, proved, the best first.

    Each has other cycles, tiles or stationary operands.
    """
    search = _Search(nest, machine, sizes, wanted)
    first = search.run(float("inf"), max(_BEAM, 2 * wanted))
    return search.run(first[-1].cycles if len(first) == wanted else float("inf")) if first else []


def likely(
    nest: Nest, machine: Machine, wanted: int, sizes: Sizes, width: int
) -> tuple[Optimum, ...]:
    """Return good chains as :func:`best` does, by a beam of ``width``: soon, without a proof.

    Nests that differ in names only have the same, which are looked for once.
    """
    operands = tuple(replace(own, name="") for own in nest.operands)
    return _likely(
        replace(nest, operands=operands), machine, wanted, tuple(map(tuple, sizes)), width
    )


@lru_cache(maxsize=4096)
def _likely(
    nest: Nest, machine: Machine, wanted: int, sizes: Sizes, width: int
) -> tuple[Optimum, ...]:
    return tuple(_Search(nest, machine, sizes, wanted).run(float("inf"), width))


def _joined(found: Sequence[_Labels], operands: int) -> _Labels:
    if not found:
        none = np.zeros(0, np.int64)
        return _Labels(none, np.zeros(0), np.zeros((0, operands)), none, none)
    return _Labels(
        np.concatenate([own.tile for own in found]),
        np.concatenate([own.settled for own in found]),
        np.concatenate([own.open_ for own in found]),
        np.concatenate([own.parent for own in found]),
        np.concatenate([own.stationary for own in found]),
    )


def _stays(nest: Nest) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield operands that may stay put between two memories: those whose tile is the same outside,
    and the stationary one.

    Where the tile is the same in some dimensions, all operands that depend on no others stay: as
    many sets as there are unions of what operands depend on, not as there are sets of operands.
    """
    unions: set[frozenset[int]] = {frozenset()}
    for own in nest.operands:
        unions |= {dims | own.dims for dims in unions}
    numbers = range(len(nest.operands))
    for dims in sorted(unions, key=sorted):
        same = tuple(number for number in numbers if nest.operands[number].dims <= dims)
        for stationary in numbers:
            if stationary not in same or len(same) == len(nest.operands):
                yield same, stationary


def _dims(operands: Sequence[Operand], numbers: Sequence[int]) -> set[int]:
    return {dim for number in numbers for dim in operands[number].dims}
