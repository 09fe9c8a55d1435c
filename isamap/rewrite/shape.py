"""Bodies of instructions as shapes, and expressions brought into a shape.

An expression is brought into a shape by associativity, commutativity and identity elements: the
result has the shape's operations in the shape's order and is equal to the expression.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

from isamap.ir.dtype import DType
from isamap.ir.literal import narrowed
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduction, Statement
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.statements import identity

REDUCTIONS: dict[str, Reduction] = {
    operation: reduction  # type: ignore[misc]  # the table's keys are the reductions
    for reduction, operation in REDUCTION_OPERATIONS.items()
}
"""The reduction that repeats an operation."""

MOST_TERMS = 6
"""Terms of a chain that are put into other orders; a longer one keeps the order it has."""

MOST_FITS = 64
"""Ways to bring an expression into one shape that are looked at."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an instruction computes, without its axes: accesses of ``value`` name its operands."""

    reduction: Reduction
    value: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Fit:
    """An expression in a shape.

    ``inserted`` counts the identity elements that were put in, ``done`` the operations of the
    expression that the shape does, conversions not among them; ``moved`` says that the order of a
    sum or product of floats may have changed.
    """

    value: Expr
    inserted: int
    done: int
    moved: bool


def shapes_of(statements: Iterable[Statement]) -> tuple[Shape, ...]:
    """Return the shapes of instructions' statements, each once; those that only move have none.

    ``c += a*b`` is also ``c = c0 + a*b``, and ``r = max(a, b)`` is also ``r max= b``.
    """
    found: dict[Shape, None] = {}
    for statement in statements:
        value, dtype = statement.value, statement.target.dtype
        reduction = statement.reduction
        readings: list[tuple[Reduction, Expr]] = [(reduction, value)]
        if reduction != "=":
            whole = Op(REDUCTION_OPERATIONS[reduction], (statement.target, value), dtype)
            readings.append(("=", whole))
        elif isinstance(value, Op) and value.op in REDUCTIONS:
            one, other = value.args
            own = REDUCTIONS[value.op]
            readings += [(own, b) for a, b in ((one, other), (other, one)) if _is_operand(a)]
        for how, body in readings:
            computes = how != "=" or not _is_operand(body)
            if computes and not isinstance(body, Literal) and not _has_coordinate(body):
                found.setdefault(Shape(how, _nameless(body, {}), dtype))
    return tuple(found)


@dataclass(slots=True)
class Shapes:
    """The shapes of a machine's statements by the type of their results, read when asked for."""

    statements: tuple[Statement, ...]
    _known: dict[DType, tuple[Shape, ...]] = field(default_factory=dict)

    def of(self, dtype: DType) -> tuple[Shape, ...]:
        """Return the shapes whose result has a type."""
        if dtype not in self._known:
            own = (s for s in self.statements if s.target.dtype == dtype)
            self._known[dtype] = shapes_of(own)
        return self._known[dtype]


def fits(shape: Expr, expr: Expr, reassociate: bool) -> tuple[Fit, ...]:
    """Return the ways to bring ``expr`` into ``shape`` with the fewest identity elements, each once
    up to the order of commutative arguments.

    ``expr`` as it is, is not among them.  ``reassociate`` permits to change the order of the sums
    and products of floats.
    """
    found: dict[Expr, Fit] = {}
    for partial in islice(_Fitting(reassociate).fit(shape, expr, {}), MOST_FITS):
        done = work(expr) - sum(map(work, partial.bound.values()))
        fit = Fit(partial.value, partial.inserted, done, partial.moved)
        found.setdefault(commuted(partial.value), fit)
    fewest = min((fit.inserted for fit in found.values()), default=0)
    found.pop(commuted(expr), None)
    return tuple(fit for fit in found.values() if fit.inserted == fewest)


def operands(shape: Expr, expr: Expr) -> tuple[Mapping[str, Expr], ...]:
    """Return what the operands of a shape stand for, each way in which ``expr`` has it as it is."""
    found = islice(_Fitting(False).fit(shape, expr, {}), MOST_FITS)
    same = commuted(expr)
    own = [p.bound for p in found if not p.inserted and commuted(p.value) == same]
    return tuple(bound for n, bound in enumerate(own) if bound not in own[:n])


def commuted(expr: Expr) -> Expr:
    """Return an expression with the arguments of commutative operations in a canonical order."""
    if not isinstance(expr, Op):
        return expr
    args = [commuted(arg) for arg in expr.args]
    if OPERATIONS[expr.op].commutative:
        args.sort(key=repr)
    return replace(expr, args=tuple(args), span=None)


def chain(expr: Expr, op: str) -> tuple[Expr, ...]:
    """Return the terms that ``op`` joins in an expression, left to right."""
    if isinstance(expr, Op) and expr.op == op:
        return tuple(term for arg in expr.args for term in chain(arg, op))
    return (expr,)


def joined(op: str, terms: Sequence[Expr]) -> Expr:
    """Return terms joined by an operation, from the left."""
    whole = terms[0]
    for term in terms[1:]:
        whole = Op(op, (whole, term), term.dtype)
    return whole


def work(expr: Expr) -> int:
    """Return how many operations that are no conversions an expression holds."""
    if not isinstance(expr, Op):
        return 0
    return sum(map(work, expr.args)) + (expr.op not in ("cast", "sat"))


def neutral(op: str, dtype: DType) -> Literal | None:
    """Return the identity element of an operation on a type, None if it has none."""
    reduction = REDUCTIONS.get(op)
    return identity(reduction, dtype) if reduction else None


@dataclass(frozen=True, slots=True)
class _Partial:
    """An expression in a part of a shape, and what the operands so far stand for."""

    value: Expr
    bound: Mapping[str, Expr]
    inserted: int = 0
    moved: bool = False


@dataclass(frozen=True, slots=True)
class _Slots:
    """What each slot of a chain holds, so far: a term, several joined, or an identity element."""

    held: Mapping[int, Expr]
    bound: Mapping[str, Expr]
    inserted: int = 0
    moved: bool = False

    def after(self, slot: int, own: _Partial, inserted: int = 0) -> "_Slots":
        """Return these slots and one before them, with what it holds."""
        return _Slots(
            {slot: own.value, **self.held},
            self.bound,
            self.inserted + own.inserted + inserted,
            self.moved or own.moved,
        )


@dataclass(frozen=True, slots=True)
class _Fitting:
    reassociate: bool

    def fit(self, shape: Expr, expr: Expr, bound: Mapping[str, Expr]) -> Iterator[_Partial]:
        """Yield the ways to bring an expression into a shape, given what operands stand for."""
        if shape.dtype != expr.dtype:
            return
        match shape:
            case Access(operand, _, _):
                if bound.get(operand, expr) == expr:
                    yield _Partial(expr, {**bound, operand: expr})
            case Literal():
                if shape == expr:
                    yield _Partial(expr, bound)
            case Coordinate():
                return
            case Op(op, args, _) if op in REDUCTIONS:
                yield from self._chains(shape, op, expr, bound)
            case Op("cast" | "sat", (arg,), _) if isinstance(expr, Literal):
                if (inner := narrowed(expr, arg.dtype)) is not None:
                    for own in self.fit(arg, inner, bound):
                        yield replace(own, value=expr)
            case Op(op, args, dtype):
                if isinstance(expr, Op) and expr.op == op:
                    order = tuple(range(len(args)))
                    for all_ in self._assign(op, args, order, expr.args, bound, 0, ordered=True):
                        value = Op(op, tuple(all_.held[n] for n in order), dtype)
                        yield _Partial(value, all_.bound, all_.inserted, all_.moved)

    def _chains(
        self, shape: Op, op: str, expr: Expr, bound: Mapping[str, Expr]
    ) -> Iterator[_Partial]:
        """Yield a chain of terms in the shape of another chain."""
        floats = shape.dtype.is_float and op in ("+", "*")
        terms = chain(expr, op)
        free = (self.reassociate or not floats) and len(terms) <= MOST_TERMS
        if free:
            slots = chain(shape, op)
        else:
            slots = shape.args
            terms = expr.args if isinstance(expr, Op) and expr.op == op else (expr,)
        # Slots with a structure of their own choose first; then operands share what is left.
        order = tuple(sorted(range(len(slots)), key=lambda n: _is_operand(slots[n])))
        spare = max(0, len(slots) - len(terms))
        for own in self._assign(op, slots, order, terms, bound, spare):
            values = [own.held[n] for n in range(len(slots))]
            value = _rebuilt(shape, op, iter(values), 99 if free else 1)
            moved = own.moved or (free and floats and len(terms) > 2)
            yield _Partial(value, own.bound, own.inserted, moved)

    def _assign(
        self,
        op: str,
        slots: Sequence[Expr],
        order: tuple[int, ...],
        terms: Sequence[Expr],
        bound: Mapping[str, Expr],
        spare: int,
        ordered: bool = False,
    ) -> Iterator[_Slots]:
        """Yield what each slot can hold, all terms used; ``spare`` slots hold identities."""
        if not order:
            if not terms:
                yield _Slots({}, bound)
            return
        own, *others = order
        slot = slots[own]
        rest = tuple(others)
        for picked in _choices(slot, len(terms), len(rest), spare, ordered):
            value = joined(op, [terms[n] for n in picked])
            left = [t for n, t in enumerate(terms) if n not in picked]
            for held in self.fit(slot, value, bound):
                for more in self._assign(op, slots, rest, left, held.bound, spare, ordered):
                    yield more.after(own, held)
        if spare and _is_operand(slot) and (one := neutral(op, slot.dtype)) is not None:
            for held in self.fit(slot, one, bound):
                for more in self._assign(op, slots, rest, terms, held.bound, spare - 1):
                    yield more.after(own, held, 1)


def _choices(
    slot: Expr, terms: int, later: int, spare: int, ordered: bool
) -> Iterator[tuple[int, ...]]:
    """Yield the groups of terms that a slot may take; every later slot that is not spare needs one.

    A slot that is an operand takes any number, another slot one; an ordered one takes the first.
    """
    if ordered:
        yield (0,)
        return
    wide = isinstance(slot, Access)
    least = terms if wide and not later else 1
    most = terms - (later - spare) if wide else 1
    for size in range(max(1, least), min(most, terms) + 1):
        yield from combinations(range(terms), size)


def _rebuilt(shape: Expr, op: str, values: Iterator[Expr], depth: int) -> Expr:
    """Return a chain's tree, down to a depth, with its terms replaced, left to right."""
    if depth and isinstance(shape, Op) and shape.op == op:
        args = tuple(_rebuilt(arg, op, values, depth - 1) for arg in shape.args)
        return Op(op, args, shape.dtype)
    return next(values)


def _is_operand(expr: Expr) -> bool:
    """Return whether a part of a body is an operand, or an operand converted."""
    while isinstance(expr, Op) and expr.op in ("cast", "sat"):
        (expr,) = expr.args
    return isinstance(expr, Access)


def _has_coordinate(expr: Expr) -> bool:
    if isinstance(expr, Op):
        return any(map(_has_coordinate, expr.args))
    return isinstance(expr, Coordinate)


def _nameless(expr: Expr, names: dict[str, str]) -> Expr:
    """Return a body with its operands named by their order alone."""
    match expr:
        case Access(buffer, _, dtype):
            return Access(names.setdefault(buffer, f"o{len(names)}"), (), dtype)
        case Op(_, args, _):
            return replace(expr, args=tuple(_nameless(arg, names) for arg in args), span=None)
        case _:
            return expr
