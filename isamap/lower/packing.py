"""Copies that bring operands into the layouts of :mod:`isamap.mapping.fragments.layout`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from isamap.ir.box import Extents, is_nonnegative
from isamap.ir.index import Index, const, row_major, total, var
from isamap.ir.nodes import Access, Literal
from isamap.lower.context import Context
from isamap.lower.cut import beyond, count_parts, cut_variables
from isamap.lower.nodes import Copy
from isamap.lower.position import Position
from isamap.mapping.fragments.fragment import Reference
from isamap.mapping.fragments.layout import (
    PackedLayout,
    PaddedLayout,
    PlacedDigit,
    linear,
    padded,
)
from isamap.mapping.tiles.joined import offset_at
from isamap.mapping.tiles.operand import is_simple


def padded_copy(
    context: Context, layout: PaddedLayout, is_inside: Callable[[Index], bool] = is_nonnegative
) -> Copy:
    """Return the copy that fills a padded layout, padding values included.

    ``is_inside`` tells of what is known never to be negative.
    """
    buffer = context.buffers[layout.access.buffer]
    counters = [context.unique(f"{layout.array}_{d}") for d in range(len(layout.shape))]
    names = [var(c) for c in counters]
    source = tuple(name + low for name, low in zip(names, layout.low, strict=True))
    conditions: list[Index] = []
    for index, low, extent, size in zip(
        source, layout.low, layout.shape, buffer.shape, strict=True
    ):
        if not is_inside(low):
            conditions.append(index)
        if not is_inside(size - low - extent):
            conditions.append(size - 1 - index)
    return Copy(
        tuple(zip(counters, layout.shape, strict=True)),
        layout.array,
        total(n * p for n, p in zip(names, row_major(layout.room), strict=True)),
        buffer.name,
        linear(buffer, source),
        tuple(conditions),
        buffer.pad if conditions else None,
    )


def padded_at(array: str, access: Access, here: Position, live: Extents) -> PaddedLayout | None:
    """Return how what an access reaches in ``live`` iterations from here on lies in its own copy.

    None if that has no closed form.
    """
    moved = {v: origin + var(v) for v, origin in here.origin.items()}
    there = replace(access, indices=tuple(i.substitute(moved) for i in access.indices))
    layout = padded(array, there, live)
    return layout and replace(layout, access=access)


def packing_copies(context: Context, layout: PackedLayout, source: Reference) -> tuple[Copy, ...]:
    """Return the copies that fill a packed layout from ``source`` (a reference without guards).

    Where digits are independent and fill the fragment, one copy writes every element, dead ones
    included, and so it does where those along a dimension lie evenly in ``source``; otherwise the
    array is filled first, and a second copy writes the live elements.
    """
    rows = _rows(layout, source)
    if rows:
        return (replace(_live_copy(context, layout, source, rows), fill=layout.filler),)
    parts = cut_variables(layout)
    plain = [
        tuple(digit for n, digit in enumerate(dim) if (d, n) not in parts)
        for d, dim in enumerate(layout.dims)
    ]
    dims = zip(layout.dims, layout.shape, strict=True)
    full = (
        is_simple(tuple(dim for dim in plain if dim))
        and all(part.count == part.size for part in parts.values())
        and all(_reach(dim) == extent and _is_dense(dim) for dim, extent in dims)
    )
    copy = _live_copy(context, layout, source)
    if full:
        return (replace(copy, fill=layout.filler) if copy.conditions else copy,)
    return (fill(context, layout.array, layout.size(), layout.filler), copy)


def gathering_copies(
    context: Context, layouts: Sequence[PackedLayout], sources: Sequence[Reference]
) -> tuple[Copy, ...]:
    """Return the copies that fill one packed array from what several places want of it.

    Elements that several of them want are written by each, with one value.
    """
    first = layouts[0]
    copies = [fill(context, first.array, first.size(), first.filler)]
    for layout, source in zip(layouts, sources, strict=True):
        copies.append(_live_copy(context, layout, source))
    return tuple(copies)


def _rows(layout: PackedLayout, source: Reference) -> dict[int, int]:
    """Return the dimensions that are longer than what is alive along them, and how far apart the
    elements along each lie in ``source``.

    There are none where other elements are dead, too, or they do not lie evenly.
    """
    extents, block = dict(layout.extents), dict(layout.block)
    found: dict[int, int] = {}
    simple = is_simple(tuple(dim for dim in layout.dims if dim))
    if not simple or any((extents[v] % block[v]) != const(0) for v in layout.variables):
        return {}
    for d, dim in enumerate(layout.dims):
        if _reach(dim) == layout.shape[d]:
            continue
        steps = {source.offset.coefficient(n).constant for n in dim[-1].form.names} if dim else {0}
        (step,) = steps
        for digit in dim:
            (name,) = digit.form.names
            linear_ = source.offset.is_linear_in([name])
            if not linear_ or step is None:
                return {}
            if source.offset.coefficient(name).constant != step * digit.weight:
                return {}
        assert step is not None
        found[d] = step
    return found


def _live_copy(
    context: Context, layout: PackedLayout, source: Reference, rows: Mapping[int, int] | None = None
) -> Copy:
    """Return the copy that writes the elements in use; beyond a tail it writes nothing.

    Along ``rows`` it goes over all elements, those in use by its conditions; they lie so far apart
    in ``source``.
    """
    rows = rows or {}
    assert source.dense is None
    assert not source.guards
    tile, extents = dict(layout.tile), dict(layout.extents)
    counters: list[tuple[str, Index]] = []
    quotient: dict[str, Index] = {}
    inner: dict[str, Index] = {}
    for v, blocks, _ in layout.counts():
        name = context.unique(f"{layout.array}_{v.replace('+', '_')}")
        counters.append((name, blocks))
        quotient[v] = var(name)
    for v, _, tiles in layout.counts():
        inner[v] = const(0)
        if tiles > 1:
            name = context.unique(f"{layout.array}_{v}_tile")
            counters.append((name, const(tiles)))
            inner[v] = var(name)
    # The iterations inside a tile: those laid out, whether or not the access depends on them.
    within: dict[str, Index] = {}
    parts = cut_variables(layout)
    counted: dict[tuple[int, int], str] = {}
    along = {d: context.unique(f"{layout.array}_{d}") for d in rows}
    for d, dim in enumerate(layout.dims):
        if d in rows:
            counters.append((along[d], const(layout.shape[d])))
            within |= {v: const(0) for digit in dim for v in digit.form.names}
            continue
        for n, digit in enumerate(dim):
            if (part := parts.get((d, n))) is not None:
                name = context.unique(f"{layout.array}_{part.variable}_in")
                counters.append((name, const(part.count)))
                counted[d, n] = name
                continue
            for v in sorted(digit.form.names - within.keys()):
                name = context.unique(f"{layout.array}_{v}_in")
                reach = tile.get(v, digit.extent)
                counters.append((name, const(reach)))
                within[v] = var(name)
    within |= count_parts(parts, counted)
    block = dict(layout.block)
    position = {
        v: quotient[v] * block[v] + inner[v] * tile[v] + within.get(v, const(0))
        for v in layout.variables
    }
    own = {v: {counted[at]: p for at, p in parts.items() if p.variable == v} for v in extents}
    conditions = tuple(
        beyond(extents[v], position[v], own[v], tile[v])
        for v in layout.variables
        if (extents[v] % block[v]) != const(0)
    )
    conditions += tuple(const(_reach(layout.dims[d]) - 1) - var(along[d]) for d in rows)
    pitches = row_major(layout.shape)
    place = total(
        (var(counted[d, n]) if (d, n) in parts else digit.form.substitute(within) - digit.low)
        * digit.weight
        * pitch
        for d, (dim, pitch) in enumerate(zip(layout.dims, pitches, strict=True))
        for n, digit in enumerate(() if d in rows else dim)
    ) + total(var(name) * pitches[d] for d, name in along.items())
    target = layout.begin(quotient, inner) + place
    offset = source.offset
    for name, form in layout.joined:
        offset = offset_at(offset, form, position[name])
    offset = offset.substitute(position) + total(var(along[d]) * s for d, s in rows.items())
    return Copy(tuple(counters), layout.array, target, source.array, offset, conditions, None)


def fill(context: Context, array: str, size: Index, value: Literal) -> Copy:
    """Return the copy that writes one value to a whole array."""
    counter = context.unique(f"{array}_fill")
    return Copy(((counter, size),), array, var(counter), None, const(0), (), value)


def _is_dense(dim: tuple[PlacedDigit, ...]) -> bool:
    """Return whether digits leave no holes between their values."""
    weight = 1
    for digit in reversed(dim):
        if digit.weight != weight:
            return False
        weight *= digit.extent
    return True


def _reach(dim: tuple[PlacedDigit, ...]) -> int:
    reach = 1
    for digit in dim:
        reach *= digit.extent
    return reach
