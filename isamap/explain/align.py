"""The smallest set of differences between an instruction's body and a kernel's expression."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

from isamap.explain.alignment import (
    Alignment,
    computed_in,
    conversion_effect,
    more,
    rewritten,
    worse,
)
from isamap.explain.compound import COMPOUNDS, folded, others, pattern_of
from isamap.explain.explanation import Effect, Reason
from isamap.explain.leaves import constant, leaf, neutral_operand
from isamap.ir.literal import narrowed
from isamap.ir.nodes import Access, Coordinate, Expr, Literal, Op, Reduce
from isamap.ir.operations import OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import identity
from isamap.mapping.laws.places import as_written
from isamap.mapping.needles.pattern import size
from isamap.mapping.needles.readings import POSITION, REDUCTIONS

KEPT = 6
"""Alignments of a pair of subexpressions that are kept, the cheapest first."""

CONVERSIONS = ("cast", "sat")


def align(pattern: Expr, expr: Expr) -> tuple[Alignment, ...]:
    """Return the cheapest ways to make ``expr`` an instance of ``pattern``, the cheapest first.

    Arguments of commutative operations may be exchanged freely; an operand of the pattern stands
    for any subexpression of its type.  A difference is a type, a conversion that one side lacks,
    another operation, an exchange of arguments, a literal, or an operation that the expression has
    not at all.  There is always at least one way.
    """
    found = _Aligner().pair(pattern, expr)
    return tuple(sorted((_consistent(a) for a in found), key=lambda a: a.order))


def _consistent(found: Alignment) -> Alignment:
    """Add a difference for each operand that would have to be two things at once."""
    first: dict[str, Expr] = {}
    extra = []
    for name, expr in found.bound:
        if first.setdefault(name, expr) != expr:
            text = f"its operand {name} occurs twice, and would be {_t(first[name])} and {_t(expr)}"
            extra.append(Reason("operand", text, expr.span))
    if not extra:
        return found
    return replace(
        found,
        cost=found.cost + len(extra),
        differences=(*found.differences, *extra),
        changed=None,
    )


@dataclass(slots=True)
class _Aligner:
    """Aligns pairs of subexpressions, each pair once.

    ``written`` are the instruction's compound operations as they are written with others,
    ``respelled`` the kernel's; pairs are known by the identity of their parts, which must stay.
    """

    known: dict[tuple[int, int], tuple[Alignment, ...]] = field(default_factory=dict)
    written: dict[int, tuple[Op, Expr]] = field(default_factory=dict)
    respelled: dict[tuple[int, str], tuple[Op, tuple[tuple[Op, Effect, str], ...]]] = field(
        default_factory=dict
    )

    def pair(self, pattern: Expr, expr: Expr) -> tuple[Alignment, ...]:
        key = id(pattern), id(expr)
        if key not in self.known:
            found: dict[object, Alignment] = {}
            for one in sorted(self._ways(pattern, expr), key=lambda a: a.order):
                found.setdefault((one.bound, one.changed), one)
            self.known[key] = tuple(found.values())[:KEPT]
        return self.known[key]

    def _ways(self, pattern: Expr, expr: Expr) -> Iterator[Alignment]:
        # What the kernel converts and the instruction does not.
        if isinstance(expr, Op) and expr.op in CONVERSIONS and not _is_same(pattern, expr):
            text = f"{_t(expr)} converts to {expr.dtype}, the instruction does not"
            reason = Reason("conversion", text, expr.span, pattern.span)
            step = f"leave out the conversion of {_t(expr.args[0])} to {expr.dtype}"
            effect = conversion_effect(expr.args[0].dtype, expr.dtype)
            for one in self.pair(pattern, expr.args[0]):
                yield more(one, reason, step, one.changed, effect)
        yield from self._compound(pattern, expr)
        yield from self._superfluous(pattern, expr)
        match pattern:
            case Access(name, _, dtype):
                yield leaf(name, dtype, pattern, expr)
            case Literal():
                yield constant(pattern, expr)
            case Coordinate():
                reason = Reason("operand", POSITION, expr.span, pattern.span)
                yield Alignment(3, (reason,), None)
            case Reduce():
                yield from self._reduction(pattern, expr)
            case Op():
                yield from self._operation(pattern, expr)

    def _operation(self, pattern: Op, expr: Expr) -> Iterator[Alignment]:
        facts = OPERATIONS[pattern.op]
        if pattern.op in CONVERSIONS and isinstance(expr, Literal):
            # What is converted without loss is a literal of the narrower type, converted.
            (arg,) = pattern.args
            if (literal := narrowed(expr, arg.dtype)) is not None:
                for one in self.pair(arg, literal):
                    yield replace(one, changed=None if one.cost else expr)
        if pattern.op in CONVERSIONS and not _is_same(pattern, expr):
            yield from self._converted(pattern, expr)
            if isinstance(expr, Op) and expr.op in CONVERSIONS:
                text = f"it computes {_t(pattern)}, here is {_t(expr)}"
                other = Reason("conversion", text, expr.span, pattern.span)
                for one in self.pair(pattern.args[0], expr.args[0]):
                    changed = None
                    if one.changed is not None:
                        changed = Op(pattern.op, (one.changed,), pattern.dtype)
                    step = f"write {_t(changed)} for {_t(expr)}" if changed else ""
                    alike = pattern.op == expr.op
                    effect = computed_in(expr.dtype, pattern.dtype) if alike else "different"
                    yield more(one, other, step, changed, effect)
        if isinstance(expr, Op) and len(expr.args) == len(pattern.args):
            if _is_same(pattern, expr):
                for order in permutations(range(len(expr.args))):
                    swapped = list(order) != sorted(order) and not facts.commutative
                    reason = None
                    if swapped:
                        text = f"it computes {_t(pattern)}: the operands of {_t(expr)} are the "
                        text += "other way round"
                        reason = Reason("order", text, expr.span, pattern.span)
                    args = tuple(expr.args[n] for n in order)
                    effect = computed_in(args[-1].dtype, pattern.args[-1].dtype)
                    for one in self._arguments(pattern, args, reason, _exchange(expr)):
                        yield replace(one, effect=worse(one.effect, effect))
            elif not {pattern.op, expr.op} & set(CONVERSIONS):
                text = f"it computes {_name(pattern)}, {_t(expr)} is {_name(expr)}"
                reason = Reason("operation", text, expr.span, pattern.span)
                step = f"write {_name(pattern)} for {_name(expr)}"
                yield from self._arguments(pattern, expr.args, reason, step)
        if len(pattern.args) == 1 and pattern.op not in CONVERSIONS and not _is_same(pattern, expr):
            text = f"it computes {_t(pattern)}, {_t(expr)} is {_what(expr)}"
            reason = Reason("operation", text, expr.span, pattern.span)
            for one in self.pair(pattern.args[0], expr):
                done = one.changed and replace(pattern, args=(one.changed,), span=None)
                step = f"take {_name(pattern)} of {_t(expr)}"
                yield more(one, reason, step, done, "different")
        yield from self._neutral(pattern, expr)
        text = f"it computes {_t(pattern)}, {_t(expr)} is {_what(expr)}"
        reason = Reason("operation", text, expr.span, pattern.span)
        yield Alignment(1 + 2 * size(pattern), (reason,), None)

    def _reduction(self, pattern: Reduce, expr: Expr) -> Iterator[Alignment]:
        """A reduction within the instruction, which may also do a single step."""
        if not isinstance(expr, Reduce):
            yield from self.pair(pattern.body, expr)
            return
        for one in self.pair(pattern.body, expr.body):
            if expr.reduction == pattern.reduction:
                yield replace(one, changed=None if one.cost else expr)
            else:
                text = f"it does '{pattern.reduction}' over {_t(pattern.body)}, {_t(expr.body)} "
                text += f"is reduced by '{expr.reduction}'"
                reason = Reason("reduction", text, expr.span, pattern.span)
                step = f"write '{pattern.reduction}' for '{expr.reduction}'"
                yield more(one, reason, step, None, "different")

    def _converted(self, pattern: Op, expr: Expr) -> Iterator[Alignment]:
        """What the instruction converts and the kernel does not."""
        (inner,) = pattern.args
        kind = "saturates" if pattern.op == "sat" else "converts"
        for one in self.pair(inner, expr):
            wraps = one.changed is not None
            changed = Op(pattern.op, (one.changed,), pattern.dtype) if one.changed else None
            types = [d for d in one.differences if d.kind == "type"]
            if isinstance(inner, Access) and len(one.differences) == len(types) == 1:
                # An operand of another type that the instruction converts is one difference.
                text = f"its operand {inner.buffer} is {inner.dtype}, converted to "
                text += f"{pattern.dtype} inside; {_t(expr)} is {expr.dtype}"
                told = Reason("type", text, expr.span, pattern.span)
                step = f"convert {_t(expr)} to {inner.dtype} and back"
                yield replace(one, differences=(told,), changed=changed, steps=(step,))
                continue
            if pattern.dtype == inner.dtype == expr.dtype or not wraps:
                effect: Effect = "different"
            else:
                effect = conversion_effect(inner.dtype, pattern.dtype)
            text = f"it {kind} {_t(inner)} to {pattern.dtype}, {_t(expr)} is not converted"
            reason = Reason("conversion", text, expr.span, pattern.span)
            word = "saturate" if pattern.op == "sat" else "convert"
            yield more(one, reason, f"{word} {_t(expr)} to {pattern.dtype}", changed, effect)

    def _compound(self, pattern: Expr, expr: Expr) -> Iterator[Alignment]:
        """What one side does in one step, and the other in several."""
        if not isinstance(pattern, Op) or not isinstance(expr, Op) or pattern.op == expr.op:
            return
        if pattern.op in COMPOUNDS:
            text = f"it computes {_t(pattern)}, {COMPOUNDS[pattern.op].why}; here is {_t(expr)}"
            reason = Reason("operation", text, expr.span, pattern.span)
            for one in self.pair(self._written(pattern), expr):
                changed = folded(pattern, one.changed) if one.changed else None
                yield rewritten(one, reason, expr, changed, COMPOUNDS[pattern.op].effect)
        for other, effect, why in self._others(expr, pattern.op):
            text = f"it computes {_t(pattern)}, not {_t(expr)}, {why}"
            reason = Reason("operation", text, expr.span, pattern.span)
            for one in self.pair(pattern, other):
                yield rewritten(one, reason, expr, one.changed, effect)

    def _superfluous(self, pattern: Expr, expr: Expr) -> Iterator[Alignment]:
        """What the kernel does besides, to one argument alone or with a constant."""
        if not isinstance(expr, Op) or expr.op in CONVERSIONS or isinstance(pattern, Access):
            return
        args = [arg for arg in expr.args if not isinstance(arg, Literal)]
        if len(args) != 1 or args[0].dtype != expr.dtype:
            return
        (inner,) = args
        text = f"{_t(expr)} does {_name(expr)} to {_t(inner)}, the instruction does not"
        reason = Reason("operation", text, expr.span, pattern.span)
        step = f"write {_t(inner)} for {_t(expr)}"
        for one in self.pair(pattern, inner):
            yield more(one, reason, step, one.changed, "different")

    def _others(self, expr: Op, op: str) -> tuple[tuple[Op, Effect, str], ...]:
        key = id(expr), op
        if key not in self.respelled:
            self.respelled[key] = expr, tuple(others(expr, op))
        return self.respelled[key][1]

    def _written(self, expr: Op) -> Expr:
        if id(expr) not in self.written:
            self.written[id(expr)] = expr, pattern_of(expr)
        return self.written[id(expr)][1]

    def _arguments(
        self, pattern: Op, args: tuple[Expr, ...], reason: Reason | None, step: str
    ) -> Iterator[Alignment]:
        start = Alignment(0, (), None)
        if reason is not None:
            start = Alignment(1, (reason,), None, steps=(step,))
        partial: list[tuple[Alignment, tuple[Expr, ...] | None]] = [(start, ())]
        for wanted, given in zip(pattern.args, args, strict=True):
            longer: list[tuple[Alignment, tuple[Expr, ...] | None]] = []
            for so_far, changed in partial:
                for one in self.pair(wanted, given):
                    joined = Alignment(
                        so_far.cost + one.cost,
                        (*so_far.differences, *one.differences),
                        None,
                        (*so_far.bound, *one.bound),
                        worse(so_far.effect, one.effect),
                        (*so_far.steps, *one.steps),
                    )
                    known = changed is not None and one.changed is not None
                    done = (*changed, one.changed) if known else None  # type: ignore[misc]
                    longer.append((joined, done))
            longer.sort(key=lambda pair: (pair[0].cost, pair[1] is None))
            partial = longer[:KEPT]
        for so_far, changed in partial:
            whole = Op(pattern.op, changed, pattern.dtype) if changed is not None else None
            effect = "different" if reason is not None else so_far.effect
            yield replace(so_far, changed=whole, effect=effect)

    def _neutral(self, pattern: Op, expr: Expr) -> Iterator[Alignment]:
        """What the instruction does besides, and does nothing with a neutral operand."""
        reduction = REDUCTIONS.get(pattern.op)
        if reduction is None or len(pattern.args) != 2:
            return
        for keep, other in (pattern.args, pattern.args[::-1]):
            neutral = neutral_operand(other, identity(reduction, pattern.dtype))
            if neutral is None:
                continue
            name, value, whole = neutral
            text = f"it computes {_t(pattern)}, {_t(expr)} is {_what(expr)}"
            reason = Reason("operation", text, expr.span, pattern.span)
            for one in self.pair(keep, expr):
                pair = (one.changed, whole)
                args = pair if keep is pattern.args[0] else pair[::-1]
                changed = Op(pattern.op, args, pattern.dtype) if one.changed else None  # type: ignore[arg-type]
                step = f"write {_t(expr)} as {_t(changed)}" if changed else ""
                # A neutral operand is farther away than one that is there.
                found = more(replace(one, bound=(*one.bound, (name, value))), reason, step, changed)
                yield replace(found, cost=found.cost + 1)


def _exchange(expr: Op) -> str:
    return f"exchange the operands of {_t(expr)}"


def _is_same(pattern: Expr, expr: Expr) -> bool:
    """Return whether two expressions have the same operation at their root."""
    if not isinstance(pattern, Op) or not isinstance(expr, Op) or pattern.op != expr.op:
        return False
    return pattern.op not in CONVERSIONS or pattern.dtype == expr.dtype


def _t(expr: Expr) -> str:
    return print_expr(as_written(expr))


def _what(expr: Expr) -> str:
    if isinstance(expr, Reduce):
        return "a reduction"
    return _name(expr) if isinstance(expr, Op) else "no operation"


def _name(op: Op) -> str:
    return f"{op.op}[{op.dtype}]" if op.op in CONVERSIONS else f"'{op.op}'"
