"""Orders of operands: which bindings of one instruction are the same up to its symmetries.

An *automorphism* of an instruction is a permutation of its input operands together with one of its
axes that leaves the statement, the types, the storages and the extents as they are.  Where isamap
itself arranges what an operand holds (registers, scratchpads) the dimensions of the operand may be
permuted with them; in memory the strides say where elements are, so dimensions keep their places.
A matrix product has one: its factors with the axes of rows and columns, the result transposed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, groupby, permutations, product
from typing import Literal, TypeAlias, get_args

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Buffer, Expr, Op, Reduce
from isamap.ir.operations import OPERATIONS
from isamap.ir.statements import accesses, substitute_expr
from isamap.mapping.matching import Axis, Needle
from isamap.mapping.needles.readings import MEMORY_KINDS

OperandOrders: TypeAlias = Literal["given", "distinct", "all"]
"""``given``: operands in the order in which the kernel writes them; ``all``: every order;
``distinct``: every order, of those that an automorphism of the instruction exchanges only one."""

ORDERS: tuple[OperandOrders, ...] = get_args(OperandOrders)

Renaming = tuple[tuple[str, str], ...]
"""Operands with the operands that take their places."""


def automorphisms(needle: Needle, kinds: Mapping[str, str]) -> tuple[Renaming, ...]:
    """Return the permutations of input operands that belong to automorphisms, the identity first.

    ``kinds`` says of what kind each storage is.
    """
    found: dict[Renaming, None] = {}
    for renamed in _axis_permutations(needle):
        target = substitute_expr(needle.target, renamed)
        assert isinstance(target, Access)
        if not _same_places(needle, kinds, target, needle.target):
            continue
        moved = substitute_expr(needle.value, renamed)
        for names in _exchanges(needle, kinds, moved, needle.value, {}):
            if names.get(needle.tied or "", needle.tied) != needle.tied:
                continue
            if _keeps_registers(needle, names):
                found.setdefault(tuple(sorted(names.items())))
    return tuple(sorted(found, key=lambda names: sum(a != b for a, b in names)))


def _keeps_registers(needle: Needle, names: Mapping[str, str]) -> bool:
    """Return whether what is one operand at several places is one after an exchange, too."""
    return all(
        (needle.owner(one) == needle.owner(other))
        == (needle.owner(names[one]) == needle.owner(names[other]))
        for one, other in combinations(names, 2)
    )


def _axis_permutations(needle: Needle) -> Iterator[dict[str, Index]]:
    """Yield renamings of axes that keep extents and in how many places an axis occurs."""
    occurs = Counter(
        name
        for access in (needle.target, *accesses(needle.value))
        for index in access.indices
        for name in index.names
    )
    written = {name for index in needle.target.indices for name in index.names}

    def kind(axis: Axis) -> tuple[int, str, int, bool]:
        return axis.extent, axis.open, occurs[axis.name], axis.name in written

    ordered = sorted(needle.axes, key=kind)
    groups = [[axis.name for axis in group] for _, group in groupby(ordered, key=kind)]
    for choice in product(*(permutations(group) for group in groups)):
        yield {
            old: var(new)
            for group, order in zip(groups, choice, strict=True)
            for old, new in zip(group, order, strict=True)
            if old != new
        }


def _exchanges(
    needle: Needle, kinds: Mapping[str, str], moved: Expr, fixed: Expr, names: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yield how operands of ``moved`` take the places of operands of ``fixed``."""
    match moved, fixed:
        case Access(), Access():
            fits = _alike(needle, moved.buffer, fixed.buffer)
            if fits and _same_places(needle, kinds, moved, fixed):
                if names.get(moved.buffer, fixed.buffer) != fixed.buffer:
                    return
                if moved.buffer not in names and fixed.buffer in names.values():
                    return
                yield {**names, moved.buffer: fixed.buffer}
        case Op(op, args, dtype), Op(other, others, its):
            if (op, dtype, len(args)) != (other, its, len(others)):
                return
            for order in permutations(args) if OPERATIONS[op].commutative else (args,):
                yield from _all_exchanges(needle, kinds, order, others, names)
        case Reduce(), Reduce() if moved.reduction == fixed.reduction:
            yield from _exchanges(needle, kinds, moved.body, fixed.body, names)
        case _:
            if moved == fixed:
                yield names


def _all_exchanges(
    needle: Needle,
    kinds: Mapping[str, str],
    moved: tuple[Expr, ...],
    fixed: tuple[Expr, ...],
    names: dict[str, str],
) -> Iterator[dict[str, str]]:
    if not moved:
        yield names
        return
    for first in _exchanges(needle, kinds, moved[0], fixed[0], names):
        yield from _all_exchanges(needle, kinds, moved[1:], fixed[1:], first)


def _alike(needle: Needle, one: str, other: str) -> bool:
    mine, theirs = (needle.operand(name) for name in (one, other))
    aligned = needle.entry.align
    return (
        _kind_of(mine) == _kind_of(theirs)
        and aligned.get(one) == aligned.get(other)
        and (one in needle.entry.same) == (other in needle.entry.same)
        and (one == needle.target.buffer) == (other == needle.target.buffer)
    )


def _kind_of(operand: Buffer) -> object:
    own = operand.storage, operand.dtype, operand.strides, operand.pad, operand.values
    return own, operand.contents


def _same_places(needle: Needle, kinds: Mapping[str, str], moved: Access, fixed: Access) -> bool:
    """Return whether two accesses reach the same elements, up to the operands' arrangement."""
    mine, theirs = ([str(index) for index in access.indices] for access in (moved, fixed))
    operand = needle.operand(fixed.buffer)
    if operand.storage is None or kinds[operand.storage] in MEMORY_KINDS:
        return mine == theirs
    return sorted(mine) == sorted(theirs)
