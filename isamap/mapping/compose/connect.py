"""Chains of pieces: the result of one is an operand of the next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from isamap.hw.accelerator import Entry
from isamap.ir.nodes import Buffer, Literal, Reduction
from isamap.mapping.compose.sums import Sum
from isamap.mapping.fragments.views import refine
from isamap.mapping.needles.pieces import (
    Leaf,
    Piece,
    Value,
    divide,
    divided,
    leaves,
    put,
    rename,
)


@dataclass(frozen=True, slots=True)
class Given:
    """An operand of the whole composition."""

    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """The result of an earlier part."""

    part: int


Place = Given | Made | Literal
"""Where a part finds an operand; a literal is in all of its elements."""


@dataclass(frozen=True, slots=True)
class Part:
    """One instruction of a composition and the places of its operands, the result's included."""

    entry: Entry
    places: tuple[tuple[str, Place], ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Pieces in sequence, read as one: ``target reduction value``.

    The parts are in the order in which they are executed.  ``sources`` gives the operand of a part
    that each operand of the composition is.  ``dims`` are the axes of the target, by its dimensions
    in the last part.
    """

    parts: tuple[Part, ...]
    target: Leaf
    dims: tuple[tuple[str, ...], ...]
    reduction: Reduction
    value: Value
    extents: Mapping[str, int]
    sources: Mapping[str, Buffer]


def begin(piece: Piece, constants: Mapping[str, Literal]) -> Chain:
    """Return the chain of one piece, some of its operands being constants."""
    return _chain(piece, constants, 0)


def feed(
    chain: Chain, operand: str, piece: Piece, constants: Mapping[str, Literal]
) -> Chain | None:
    """Return the chain in which a piece makes an operand of the first part.

    None if the operand's elements and those that the piece writes are not digits of each other, or
    if it must have certain values: what is known of values is known of the chain's operands.
    """
    number = len(chain.parts)
    other = _chain(piece, constants, number)
    wanted = leaves(chain.value)[operand]
    if wanted.ends is not None:
        return None
    mine = tuple(chain.extents[axis] for axis in wanted.axes)
    theirs = tuple(other.extents[axis] for axis in other.target.axes)
    shared = refine(mine, theirs)
    if shared is None:
        return None
    digits, first, second = shared
    names = [f"d{number}.{n}" for n in range(len(digits))]
    parts: dict[str, tuple[str, ...]] = {}
    for axes, groups in ((wanted.axes, first), (other.target.axes, second)):
        for axis, group in zip(axes, groups, strict=True):
            parts[axis] = tuple(names[n] for n in group)
    value = put(divide(chain.value, parts), operand, divide(other.value, parts))
    extents = {**chain.extents, **other.extents, **dict(zip(names, digits, strict=True))}
    # Parts are executed the other way round: what feeds comes first.
    shifted = tuple(_later(part, operand) for part in chain.parts)
    sources = {**chain.sources, **other.sources}
    del sources[operand]
    return Chain(
        (*other.parts, *shifted),
        replace(chain.target, axes=divided(chain.target.axes, parts)),
        tuple(divided(dim, parts) for dim in chain.dims),
        chain.reduction,
        value,
        {axis: e for axis, e in extents.items() if axis not in parts},
        sources,
    )


def _later(part: Part, operand: str) -> Part:
    """Return a part behind a new first one, which makes ``operand``."""
    places: list[tuple[str, Place]] = []
    for name, place in part.places:
        match place:
            case Made(number):
                place = Made(number + 1)
            case Given(own) if own == operand:
                place = Made(0)
            case _:
                pass
        places.append((name, place))
    return Part(part.entry, tuple(places))


def _chain(piece: Piece, constants: Mapping[str, Literal], number: int) -> Chain:
    instruction = piece.entry.instruction
    own = {axis: f"p{number}.{axis}" for axis in piece.extents}
    result = piece.target.operand
    named: dict[str, str] = {}
    places: list[tuple[str, Place]] = []
    for operand in instruction.operands:
        name = operand.name
        if operand.role == "local":
            continue
        if name in constants:
            places.append((name, constants[name]))
        elif name in (result, piece.tied):
            places.append((name, Given("") if number == 0 else Made(0)))
        else:
            named[name] = f"{number}.{name}"
            places.append((name, Given(named[name])))
    value = rename(piece.value, own, named)
    for name, literal in constants.items():
        value = put(value, name, literal)
    target = replace(piece.target, axes=tuple(own[axis] for axis in piece.target.axes))
    return Chain(
        (Part(piece.entry, tuple(places)),),
        target,
        tuple((axis,) for axis in target.axes),
        piece.reduction,
        value,
        {own[axis]: extent for axis, extent in piece.extents.items()},
        {new: instruction.operand(old) for old, new in named.items()},
    )


@dataclass(frozen=True, slots=True)
class Joined:
    """A chain as a statement: ``target reduction body`` over axes with short names."""

    target: Leaf
    body: Value
    extents: Mapping[str, int]


def joined(chain: Chain, found: Sum) -> Joined | None:
    """Return a chain whose value is ``found``, with axes joined that are one right inside the other
    wherever they are seen.

    Axes of the target are joined only within a dimension of it.  None if nothing sees an axis that
    is reduced over: what it repeats has no form in a statement.
    """
    sizes = dict(chain.extents)
    body = found.body
    seen = [chain.target, *leaves(body).values()]
    if not set(found.axes) <= {axis for leaf in seen for axis in leaf.axes}:
        return None
    dims = {axis: n for n, dim in enumerate(chain.dims) for axis in dim}
    for axis in dict.fromkeys(a for leaf in seen for a in leaf.axes):
        while axis in sizes and (inner := _inside(axis, seen)) is not None:
            if dims.get(axis) != dims.get(inner):
                break
            sizes[axis] *= sizes.pop(inner)
            drop: dict[str, tuple[str, ...]] = {inner: ()}
            body = divide(body, drop)
            seen = [replace(leaf, axes=divided(leaf.axes, drop)) for leaf in seen]
    used = dict.fromkeys(axis for leaf in seen for axis in leaf.axes)
    names = named([axis in seen[0].axes for axis in used], used)
    place = replace(seen[0], axes=tuple(names[axis] for axis in seen[0].axes))
    return Joined(place, rename(body, names, {}), {names[axis]: sizes[axis] for axis in used})


def named(kept: Iterable[bool], axes: Iterable[str] = ()) -> dict[str, str]:
    """Return short names for axes: i, j, l for those that a result keeps, k, p, q for the others.

    Without ``axes`` they are numbered.
    """
    own = (f"{letter}{n or ''}" for n in count() for letter in "ijlmn")
    summed = (f"{letter}{n or ''}" for n in count() for letter in "kpqrs")
    olds = iter(axes) if axes else map(str, count())
    return {next(olds): next(own if keeps else summed) for keeps in kept}


def _inside(axis: str, seen: list[Leaf]) -> str | None:
    """Return the axis that directly follows ``axis`` wherever one of both is seen."""
    following = {
        leaf.axes[leaf.axes.index(axis) + 1] if leaf.axes[-1] != axis else None
        for leaf in seen
        if axis in leaf.axes
    }
    if len(following) != 1:
        return None
    (inner,) = following
    if inner is None or any(inner in leaf.axes and axis not in leaf.axes for leaf in seen):
        return None
    return inner
