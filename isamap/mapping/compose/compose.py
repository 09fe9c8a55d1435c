"""Searching for instructions that compute a statement in sequence, one feeding the next.

The search goes backwards from instructions that add to what is there: their operand, if they pass
it on unchanged, may be what another instruction makes, and so on.  Only chains are built whose
operations the statement has too, and kept are those that a single instruction with operands
computed before (:mod:`isamap.mapping.fragments.produce`) does not stand for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from isamap.ir.dtype import DType
from isamap.ir.nodes import Expr, Literal, Op, Permissions, Reduction, Statement
from isamap.ir.ranges import Intervals
from isamap.mapping.compose.composed import Composed, alone, composed
from isamap.mapping.compose.conditions import Refused, conditions
from isamap.mapping.compose.connect import Chain, begin, feed, joined
from isamap.mapping.compose.sums import as_sum
from isamap.mapping.compose.turns import sequences
from isamap.mapping.matching import Needle
from isamap.mapping.needles.makers import PASSING, kind_of
from isamap.mapping.needles.needles import Bindings, Needles, covered, programs, signature
from isamap.mapping.needles.orders import OperandOrders
from isamap.mapping.needles.pattern import size
from isamap.mapping.needles.pieces import (
    Apply,
    Leaf,
    Piece,
    Total,
    Value,
    is_fixed,
    leaves,
    read_needle,
)

MOST_PARTS = 3
"""Instructions in a chain at most."""


@dataclass(frozen=True, slots=True)
class Compositions:
    """Compositions that compute a statement, and those whose conditions are not proved."""

    statement: Statement
    roots: tuple[tuple[Needle, Bindings], ...] = ()
    refused: tuple[Refused, ...] = ()


def compositions(
    statement: Statement,
    index: Needles,
    best: int,
    known: Intervals,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
    orders: OperandOrders | None = None,
) -> Compositions:
    """Return the compositions that compute a statement, with each way to bind their operands.

    ``best`` is how many of the statement's operations a single instruction does, ``known`` what is
    known of the values of buffers.  With ``orders`` every such order of operands is returned, as by
    :func:`isamap.mapping.needles.needles.roots`, and only of chains: those of terms in turn have
    one.
    """
    found: list[tuple[Needle, Bindings]] = []
    refused: dict[Refused, None] = {}
    composer = Composer(index)
    for needle, bound in chain(
        composer.chains(statement, best, orders), composer.assignments(statement, orders)
    ):
        entry = needle.entry
        assert isinstance(entry, Composed)
        proved = conditions(needle, bound, statement, known)
        if isinstance(proved, Refused):
            refused.setdefault(proved)
        else:
            found.append((replace(needle, entry=replace(entry, conditions=proved)), bound))
    if orders is None:
        found += sequences(statement, index, best, permissions)
    return Compositions(statement, tuple(found), tuple(refused))


@dataclass(frozen=True, slots=True)
class Composer:
    """The pieces of a machine by what they make; each is read when it is first needed."""

    index: Needles

    def chains(
        self, statement: Statement, best: int, orders: OperandOrders | None = None
    ) -> Iterator[tuple[Needle, Bindings]]:
        """Yield the chains that compute a reduction, with each way to bind their operands.

        ``best`` is how many of the statement's operations a single instruction does.
        """
        reduction = statement.reduction
        if reduction == "=":
            return
        whole = size(statement.value) + 1
        goal = _Goal(best, whole, frozenset(_operations(statement.value)))
        types = statement.value.dtype, statement.target.dtype
        key = (reduction, *types, goal)
        if key not in self.index.chains:
            self.index.chains[key] = tuple(self._worthwhile(reduction, *types, goal))
        for found in (*self._partial(statement, goal), *self.index.chains[key]):
            for bound in programs(found, statement, self.index, orders):
                yield found, bound

    def _worthwhile(
        self, reduction: Reduction, value: DType, target: DType, goal: "_Goal"
    ) -> Iterator[Needle]:
        """Yield the chains to a goal of which none surpasses another, for a statement of types."""
        kept: list[tuple[object, Needle]] = []
        for piece, operand, constants in self._heads(reduction, value, target):
            first = begin(piece, constants)
            for found in self._fed(first, f"0.{operand}", goal, False):
                kept = _with(kept, signature(found), found)
        for _, needle in kept:
            yield needle

    def assignments(
        self, statement: Statement, orders: OperandOrders | None = None
    ) -> Iterator[tuple[Needle, Bindings]]:
        """Yield the single instructions that assign, and are defined for some values only."""
        if statement.reduction != "=":
            return
        for needle in self.index.partial(statement):
            if needle.places or not is_fixed(needle.entry):
                continue
            if found := alone(needle):
                for bound in programs(found, statement, self.index, orders):
                    yield found, bound

    def _partial(self, statement: Statement, goal: "_Goal") -> Iterator[Needle]:
        """Yield the single instructions that are defined for some values of their operands only."""
        for needle in self.index.partial(statement):
            piece = read_needle(needle)
            found = piece and goal.needle(begin(piece, {}), True)
            if found:
                yield found

    def _heads(
        self, reduction: Reduction, value: DType, target: DType
    ) -> Iterator[tuple[Piece, str, dict[str, Literal]]]:
        """Yield the pieces that add an operand to their target, each kind of operand once."""
        heads = []
        for root in ("", *PASSING):
            for needle in self.index.at((reduction, root, value.name)):
                piece = read_needle(needle)
                if piece is not None and needle.target.dtype == target:
                    heads += [(piece, operand, held) for operand, held in passed(piece.value)]
        seen: set[object] = set()
        for piece, operand, held in sorted(
            heads, key=lambda head: (len(head[2]), head[0].entry.throughput)
        ):
            form = (
                kind_of(piece.entry.instruction.operand(operand)),
                kind_of(piece.entry.instruction.operand(piece.target.operand)),
                tuple(piece.extents[axis] for axis in piece.target.axes),
                tuple(
                    (axis in piece.target.axes, piece.extents[axis])
                    for axis in leaves(piece.value)[operand].axes
                ),
            )
            if form not in seen:
                seen.add(form)
                yield piece, operand, held

    def _fed(self, chain: Chain, operand: str, goal: "_Goal", sums: bool) -> Iterator[Needle]:
        """Yield the needles of a chain with something before it that makes an operand.

        ``sums`` says that an instruction of the chain reduces what it is given; where none does,
        only an instruction that does more than any single one is looked for.
        """
        wanted = chain.sources[operand]
        count = prod(chain.extents[axis] for axis in leaves(chain.value)[operand].axes)
        number = len(chain.parts)
        key = kind_of(wanted)
        plain = sums or (number == 1 and goal.best < goal.whole)
        for entry in self.index.makers.at(key, reducing=not plain):
            piece = self.index.makers.piece(entry)
            if piece is None or piece.count(piece.target) != count:
                continue
            summing = sums or _has_axes(piece.value)
            if goal.may_be(piece.value) and (longer := feed(chain, operand, piece, {})):
                found = goal.needle(longer, summing)
                if found is not None:
                    yield found
        left = MOST_PARTS - number - 1
        if not left or not (sums or self.index.makers.leads(key, left)):
            return
        for entry in self.index.makers.at(key, passing=True):
            piece = self.index.makers.piece(entry)
            if piece is None or piece.count(piece.target) != count:
                continue
            reduces = _has_axes(piece.value)
            summing = sums or reduces
            for own, constants in passed(piece.value):
                source = kind_of(entry.instruction.operand(own))
                if source == key and not reduces:
                    continue  # It changes nothing.
                if not summing and not self.index.makers.leads(source, left - 1):
                    continue
                if longer := feed(chain, operand, piece, constants):
                    yield from self._fed(longer, f"{number}.{own}", goal, summing)


@dataclass(frozen=True, slots=True)
class _Goal:
    """What a chain should compute."""

    best: int
    whole: int
    operations: frozenset[object]

    def may_be(self, value: Value) -> bool:
        """Return whether the statement has all operations of a value that have no other form."""
        if isinstance(value, Leaf):
            return False
        return all(op in self.operations for op in _parts(value))

    def needle(self, chain: Chain, summing: bool) -> Needle | None:
        """Return a chain as a needle, if that is worth having."""
        found = as_sum(chain.value, chain.reduction, chain.extents)
        if found is None or (whole := joined(chain, found)) is None:
            return None
        needle = composed(chain, found, whole)
        return needle if summing or covered(needle) > self.best else None


def passed(value: Value) -> tuple[tuple[str, dict[str, Literal]], ...]:
    """Return the operands that a value passes on unchanged, with the constants of the others.

    A factor of 1 passes the other one on; conversions and sums count as passing on.
    """
    match value:
        case Leaf(operand, _, _):
            return ((operand, {}),)
        case Total(_, _, inner, _) | Apply("cast" | "sat" | "neg", (inner,), _):
            return passed(inner)
        case Apply("*", (first, second), _):
            found = []
            for one, other in ((first, second), (second, first)):
                factor = _converted(other)
                if factor is not None and _may_be_one(factor):
                    one_ = Literal("1.0" if factor.dtype.is_float else "1", factor.dtype)
                    found += [
                        (name, {**held, factor.operand: one_})
                        for name, held in passed(one)
                        if factor.operand not in leaves(one)
                    ]
            return tuple(found)
        case _:
            return ()


def _may_be_one(factor: Leaf) -> bool:
    return factor.ends is None or factor.ends[0] <= 1 <= factor.ends[1]


def _converted(value: Value) -> Leaf | None:
    """Return the operand of which a value is a conversion."""
    match value:
        case Leaf():
            return value
        case Apply("cast", (inner,), _):
            return _converted(inner)
        case _:
            return None


def _parts(value: Value) -> Iterator[object]:
    match value:
        case Apply(op, args, _):
            if op not in ("cast", "sat"):
                yield op
            for arg in args:
                yield from _parts(arg)
        case Total():
            yield from _parts(value.value)
        case Leaf():
            yield value.dtype
        case Literal():
            pass


def _operations(expr: Expr) -> Iterator[object]:
    """Yield the operations of an expression and the types of its parts."""
    yield expr.dtype
    if isinstance(expr, Op):
        yield expr.op
        for arg in expr.args:
            yield from _operations(arg)


def _has_axes(value: Value) -> bool:
    match value:
        case Total(_, axes, inner, _):
            return bool(axes) or _has_axes(inner)
        case Apply(_, args, _):
            return any(map(_has_axes, args))
        case _:
            return False


def _with(
    kept: list[tuple[object, Needle]], form: object, needle: Needle
) -> list[tuple[object, Needle]]:
    """Return the needles with one more, without those that another one of their form surpasses."""
    if any(own == form and _surpasses(other, needle) for own, other in kept):
        return kept
    rest = [(own, n) for own, n in kept if own != form or not _surpasses(needle, n)]
    return [*rest, (form, needle)]


def _surpasses(one: Needle, other: Needle) -> bool:
    """Return whether a composition costs no more than another one and needs no more to be true."""
    mine, theirs = one.entry, other.entry
    assert isinstance(mine, Composed)
    assert isinstance(theirs, Composed)
    return (
        len(mine.parts) <= len(theirs.parts)
        and mine.throughput <= theirs.throughput
        and mine.latency <= theirs.latency
        and set(mine.claims) <= set(theirs.claims)
    )
