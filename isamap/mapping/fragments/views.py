"""Fragments seen as another shape: the same elements in the same row-major order.

The elements of an operand in a register are numbered row by row, so an instruction that takes
``[8, 4]`` can be given what another one made as ``[32]``.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise
from math import prod

from isamap.ir.nodes import Access
from isamap.mapping.fragments.fragment import Digit, Fragment, Part, Reference


def refine(
    first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[range, ...], tuple[range, ...]] | None:
    """Return digits of which two mixed radices of one range are both made, and which of each.

    ``refine((8, 2), (16,))`` is ``((8, 2), (range(0, 1), range(1, 2)), (range(0, 2),))``; None if
    there are none.
    """
    marks = [_weights(first), _weights(second)]
    if marks[0][0] != marks[1][0]:
        return None
    # The weights of all digits, the greatest first; each must divide the one before.
    weights = sorted(set(marks[0]) | set(marks[1]), reverse=True)
    if any(a % b for a, b in pairwise(weights)):
        return None
    digits = tuple(a // b for a, b in pairwise(weights))

    def groups(own: list[int]) -> tuple[range, ...]:
        return tuple(range(weights.index(high), weights.index(low)) for high, low in pairwise(own))

    return digits, groups(marks[0]), groups(marks[1])


def _weights(extents: tuple[int, ...]) -> list[int]:
    products = [1]
    for extent in reversed(extents):
        products.append(products[-1] * extent)
    return products[::-1]


def seen_as(
    fragment: Fragment, shape: tuple[int, ...], references: Mapping[Access, Reference]
) -> tuple[Fragment, dict[Access, Reference]] | None:
    """Return a fragment and the arrays it comes from as another shape of as many elements.

    None if its elements would lie in no order that a fragment can have: a dimension with room to
    spare is inside another, or one variable would be on two.
    """
    if prod(shape) != prod(fragment.shape):
        return None
    moved: dict[Access, Reference] = {}
    for access, reference in references.items():
        same = _as_dense(reference, shape) if reference.dense else reference
        if same is None:
            return None
        moved[access] = same
    if references and all(r.dense == fragment.shape for r in references.values()):
        # Whole fragments lie there, what is dead included: which variables they hold is no matter.
        dims = tuple((Digit(str(d), extent),) for d, extent in enumerate(shape))
        return replace(_bare(fragment), shape=shape, dims=dims), moved
    if any(reference.dense for reference in references.values()):
        return None
    found = _regrouped(fragment, shape)
    return None if found is None else (found, moved)


def _as_dense(reference: Reference, shape: tuple[int, ...]) -> Reference | None:
    """Return where packed fragments lie, seen as another shape; None if only a part of a dimension
    of it would be repeated.
    """
    assert reference.dense is not None
    shared = refine(reference.dense, shape)
    if not reference.repeated:
        return replace(reference, dense=shape)
    if shared is None:
        return None
    extents, own, others = shared
    again = {n for dim in reference.repeated for n in own[dim]}
    repeated: set[int] = set()
    for dim, group in enumerate(others):
        several = {n for n in group if extents[n] > 1}
        if several and several <= again:
            repeated.add(dim)
        elif several & again:
            return None
    return replace(reference, dense=shape, repeated=frozenset(repeated))


def _bare(fragment: Fragment) -> Fragment:
    return Fragment(fragment.storage, fragment.dtype, fragment.shape, fragment.dims)


def _regrouped(fragment: Fragment, shape: tuple[int, ...]) -> Fragment | None:
    shared = refine(fragment.shape, shape)
    if shared is None:
        return None
    extents, own, others = shared
    pieces: dict[int, tuple[Digit, ...]] = {}
    filled: set[int] = set()
    for dim, group in enumerate(own):
        cut = _cut(fragment.dims[dim], [extents[n] for n in group], fragment.partial)
        if cut is None:
            return None
        pieces.update(zip(group, cut, strict=True))
        filled |= set(group) if dim in fragment.filled else set()
    for group in others:
        for n in group[1:]:
            # Inside another digit, each place must be alive.
            reach = prod(digit.tile for digit in pieces[n])
            if reach != extents[n] or any(d.is_partial(fragment.partial) for d in pieces[n]):
                return None
    return replace(
        fragment,
        shape=shape,
        dims=tuple(tuple(digit for n in group for digit in pieces[n]) for group in others),
        filled=frozenset(dim for dim, group in enumerate(others) if filled & set(group)),
    )


def _cut(
    digits: tuple[Digit, ...], extents: list[int], partial: AbstractSet[str]
) -> list[tuple[Digit, ...]] | None:
    """Return the digits of a dimension cut into parts, the last ones full; none for extent 1.

    A digit of which all iterations are alive may be cut in two.
    """
    if not extents:
        return []
    rest = list(digits)
    parts: list[tuple[Digit, ...]] = []
    for extent in reversed(extents[1:]):
        part: list[Digit] = []
        while extent > 1 and rest:
            outer, inner = _split(rest.pop(), extent, partial)
            rest += () if outer is None else (outer,)
            part.insert(0, inner)
            if extent % inner.tile:
                return None
            extent //= inner.tile
        if extent > 1:
            return None
        parts.insert(0, tuple(part))
    return [tuple(rest), *parts]


def _split(digit: Digit, extent: int, partial: AbstractSet[str]) -> tuple[Digit | None, Digit]:
    """Return a digit as one outside of one with so many iterations; as it is if that cannot be."""
    first, *others = digit.pieces
    if others or first.back or digit.is_partial(partial):
        return None, digit
    if digit.tile <= extent or digit.tile % extent:
        return None, digit
    return _every(first, digit.tile // extent, extent), _every(first, extent, 1)


def _every(part: Part, tile: int, step: int) -> Digit:
    """Return so many iterations of those of a part, each so many steps after the last."""
    every = part.every * step
    own = () if every == 1 else (Part(part.variable, tile, every=every),)
    return Digit(part.variable, tile, own)
