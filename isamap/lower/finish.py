"""Statements that take another one's results from its registers, where they are complete.

A bias, a clamp, a residual or a requantisation need not wait until a whole product is in memory:
each of its results is finished while it is in a register, and only what is finished is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TypeAlias

from isamap.ir.index import Index, const
from isamap.ir.inline import ApartError, inline_each, is_whole
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Statement
from isamap.ir.statements import accesses, read_by, reduces, substitute, zero_based
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.layout import whole_alignment
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.producer import MEMORY_KINDS
from isamap.mapping.fragments.steps import FromRegister, Step, Store


@dataclass(frozen=True, slots=True)
class Finish:
    """One buffer that is written from complete results.

    ``target = value``, both in the variables of the statement that makes the results; in ``value``
    the access ``result`` stands for what is in the register.
    """

    target: Access
    value: Expr
    result: Access


@dataclass(frozen=True, slots=True)
class Follower:
    """What one statement does with complete results.

    ``value`` is what it writes into a buffer, in the variables of the statement that makes the
    results; ``taken`` are the parts of that which statements before it make in registers, too.
    """

    number: int
    buffer: str
    value: Expr
    taken: frozenset[Expr]


@dataclass(frozen=True, slots=True)
class Finishing:
    """What becomes of a statement's results: ``kept`` if they go to their own buffer as well.

    ``followers`` are the statements that do it; ``finishes`` what several of them come to.  ``by``
    are the instructions that are asked for to compute some of them, by the statement's number.
    """

    finishes: tuple[Finish, ...]
    kept: bool
    followers: tuple[Follower, ...] = ()
    by: tuple[tuple[int, str], ...] = ()


KEPT = Finishing((), True)
"""Results that just go to their buffer."""


Besides: TypeAlias = tuple[tuple[str, Step], ...]
"""What makes the operands that a store takes besides the fragment that it is for."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How one finish is computed for a fragment of results, and how it is stored.

    ``staged`` results are stored as a whole fragment elsewhere, and copied from there to where
    ``reference`` says, element by element.  ``besides`` are the operands that a store which
    computes takes besides.
    """

    finish: Finish
    made: Step | FromRegister
    store: Store
    besides: Besides
    reference: Reference
    staged: bool = False

    @property
    def cost(self) -> Fraction:
        """Cycles a fragment."""
        return _cost(self.made, self.store, self.besides)


def finishing(kernel: Kernel, root: int, followers: Sequence[int]) -> Finishing:
    """Return what ``followers`` make of the results of statement ``root`` of a bound kernel.

    ``followers`` are numbers of later statements, in order.  ApartError with the reason if some of
    them cannot be computed where a result of ``root`` is complete.
    """
    own = zero_based(kernel.statements[root])
    buffers = {b.name: b for b in kernel.buffers}
    source = own.target.buffer
    if not is_whole(own.target, own.variables, buffers[source]):
        raise ApartError(f"{source} is not computed whole")
    _check_order(kernel, root, followers)
    inside = {root, *followers}
    targets = [kernel.statements[n].target.buffer for n in followers]
    finishes: list[Finish] = []
    doing: list[Follower] = []
    written: dict[str, Expr] = {}
    lasts = inline_each([kernel.statements[n] for n in followers], buffers)
    for count, (target, last) in enumerate(zip(targets, lasts, strict=True), 1):
        made = _finish(own, last, buffers)
        number = followers[count - 1]
        taken = {written[name] for name in _taken(kernel.statements[number]) & written.keys()}
        doing.append(Follower(number, target, made.value, frozenset(taken)))
        written[target] = made.value
        if target not in targets[count:] and _is_needed(kernel, target, inside):
            finishes.append(made)
    for at, one in enumerate(finishes):
        for n, other in enumerate(finishes):
            if n != at:
                _check_apart(one, other, before=n > at)
    kept = source not in targets and _is_needed(kernel, source, inside)
    if not finishes and not kept:
        # Statements must not vanish: each is computed alone, whoever needs it.
        raise ApartError(f"nothing takes {targets[-1]}")
    return Finishing(tuple(finishes), kept, tuple(doing))


def _taken(statement: Statement) -> frozenset[str]:
    """Return the buffers whose elements a statement takes, its own if it goes on from them."""
    found = read_by(statement)
    return found if statement.reduction == "=" else found | {statement.target.buffer}


def _check_apart(one: Finish, other: Finish, before: bool) -> None:
    """Refuse a finish that reads what another one writes, unless it does so just ``before``."""
    written = other.target
    for access in accesses(one.value):
        if access.buffer == written.buffer and access != one.result:
            if before and access.indices == written.indices:
                continue
            raise ApartError(f"{one.target.buffer} reads other elements of {written.buffer}")


def _check_order(kernel: Kernel, root: int, followers: Sequence[int]) -> None:
    """Refuse followers that would see, or be seen by, what is computed between."""
    written = {kernel.statements[n].target.buffer for n in followers}
    if shared := written & read_by(kernel.statements[root]):
        raise ApartError(f"{min(shared)} is read while the results are made")
    source = kernel.statements[root].target.buffer
    read = frozenset().union(*(read_by(kernel.statements[n]) for n in followers))
    for number in range(root + 1, followers[-1]):
        if number in followers:
            continue
        other = kernel.statements[number]
        if other.target.buffer in read | written | {source} or read_by(other) & written:
            raise ApartError(f"{other.target.buffer} is computed between")


def _is_needed(kernel: Kernel, name: str, inside: AbstractSet[int]) -> bool:
    """Return whether anything but the statements ``inside`` has to do with a buffer."""
    if next(b for b in kernel.buffers if b.name == name).role != "local":
        return True
    others = [s for n, s in enumerate(kernel.statements) if n not in inside]
    return any(name == s.target.buffer or name in read_by(s) for s in others)


def _finish(root: Statement, last: Statement, buffers: Mapping[str, Buffer]) -> Finish:
    """Return what the ``last`` statement of a run leaves as a function of the root's result."""
    source, name = root.target.buffer, last.target.buffer
    if reduces(last.value):
        raise ApartError(f"{name} is a reduction itself")
    if not is_whole(last.target, last.variables, buffers[name]):
        raise ApartError(f"{name} is not computed whole")
    places = {a.indices for a in accesses(last.value) if a.buffer == source}
    if len(places) != 1:
        raise ApartError(f"{name} reads {len(places) or 'no'} elements of {source} at a point")
    extents = {v.name: v.extent for v in root.variables}
    renamed: dict[str, Index | int] = {}
    for theirs, ours in zip(places.pop(), root.target.indices, strict=True):
        if theirs == ours == const(0):
            continue
        if theirs.name is None or ours.name is None or theirs.name in renamed:
            raise ApartError(f"{name} takes the elements of {source} in another order")
        renamed[theirs.name] = ours
        if {v.name: v.extent for v in last.variables}.get(theirs.name) != extents[ours.name]:
            raise ApartError(f"{name} takes a part of {source}")
    if renamed.keys() != {v.name for v in last.variables}:
        raise ApartError(f"{name} uses an element of {source} more than once")
    moved = substitute(replace(last, variables=()), renamed)
    return Finish(moved.target, moved.value, root.target)


def ways_to_finish(
    finish: Finish,
    held: Fragment,
    references: Mapping[Access, Reference],
    target: Reference,
    producers: Producers,
    spent: bool,
) -> tuple[Finished, ...]:
    """Return the ways to finish a fragment of results and to store it, the cheapest first.

    ``references`` say where everything else is that it takes, ``target`` where it is stored.
    Nothing else needs results that are ``spent``: their register may be overwritten.  It is staged
    where no instruction stores it straight to its buffer.
    """
    size = finish.target.dtype.bytes * prod(held.shape)
    stage = Reference("", const(0), dense=held.shape, alignment=whole_alignment(size))
    for place in (target, stage):
        ways = sorted(
            _ways(finish, held, references, producers, place, spent), key=lambda way: _cost(*way)
        )
        if ways:
            return tuple(Finished(finish, *way, target, staged=place is stage) for way in ways)
    return ()


def _ways(
    finish: Finish,
    held: Fragment,
    references: Mapping[Access, Reference],
    producers: Producers,
    place: Reference,
    spent: bool,
) -> Iterator[tuple[Step | FromRegister, Store, Besides]]:
    """Yield what makes a finished fragment, or the most of it, and what stores that at a place,
    with what it takes besides.
    """
    for storage in producers.accelerator.storages:
        if storage.kind in (*MEMORY_KINDS, "immediate"):
            continue
        wanted = replace(
            held, storage=storage.name, dtype=finish.target.dtype, filled=frozenset(), filler=None
        )
        store = producers.store(wanted, place)
        made = store and producers.finish(
            finish.value, wanted, references, finish.result, held, spent
        )
        if store and made:
            yield made, store, ()
    for store, rest, wanted_too in producers.computing_stores(finish.value, held, place):
        steps = [(b.operand, producers.make(b.value, b.fragment, references)) for b in wanted_too]
        besides = tuple((operand, step) for operand, step in steps if step is not None)
        if len(besides) < len(wanted_too):
            continue
        made = producers.finish(rest, store.fragment, references, finish.result, held, spent)
        if made is not None:
            yield made, store, besides


def _cost(made: Step | FromRegister, store: Store, besides: Besides) -> Fraction:
    return sum((step.cost for _, step in besides), made.cost + store.cost)
