"""How an expression becomes an instance of a pattern, and what that does to its value."""

from dataclasses import dataclass, replace

from isamap.explain.explanation import Effect, Reason
from isamap.ir.dtype import DType
from isamap.ir.nodes import Access, Expr, Literal
from isamap.ir.printer import print_expr

_WORSE: tuple[Effect, ...] = ("same", "trust", "values", "overflow", "rounding", "different")


@dataclass(frozen=True, slots=True)
class Alignment:
    """How an expression becomes an instance of a pattern.

    ``changed`` is the expression after the changes, None where they are not known; ``bound`` what
    the operands then stand for; ``effect`` what the changes do to the value, ``steps``
    the changes in words.
    """

    cost: int
    differences: tuple[Reason, ...]
    changed: Expr | None
    bound: tuple[tuple[str, Expr], ...] = ()
    effect: Effect = "same"
    steps: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, bool, int, int]:
        """Cheapest first; among equals those that can be carried out, change least, and leave least
        to other instructions.
        """
        others = sum(not isinstance(expr, Access | Literal) for _, expr in self.bound)
        return self.cost, self.changed is None, _WORSE.index(self.effect), others


def worse(one: Effect, other: Effect) -> Effect:
    """Return the graver of two effects on a value."""
    return max(one, other, key=_WORSE.index)


def more(
    one: Alignment, reason: Reason, step: str, changed: Expr | None, effect: Effect = "same"
) -> Alignment:
    """Return an alignment with one more difference around it."""
    return Alignment(
        one.cost + 1,
        (*one.differences, reason),
        changed,
        one.bound,
        worse(one.effect, effect),
        (*one.steps, step),
    )


def rewritten(
    one: Alignment, reason: Reason, expr: Expr, changed: Expr | None, effect: Effect
) -> Alignment:
    """Return an alignment with an expression in whose place another one stands, told as a whole."""
    step = f"write {print_expr(changed)} for {print_expr(expr)}" if changed else ""
    return replace(more(one, reason, step, changed, effect), steps=(step,))


def computed_in(source: DType, target: DType) -> Effect:
    """Return what computing in another type may do to a result."""
    if source == target:
        return "same"
    if source.is_integer and target.is_integer:
        wider = target.lowest <= source.lowest and source.highest <= target.highest
        return "overflow" if wider else "different"
    return "rounding" if source.is_float and target.is_float else "different"


def conversion_effect(source: DType, target: DType) -> Effect:
    """Return what a conversion may do to a value: widening does nothing."""
    if source == target:
        return "same"
    if source.is_integer and target.is_integer:
        wide = target.lowest <= source.lowest and source.highest <= target.highest
        return "same" if wide else "different"
    if source.is_float and target.is_float:
        wide = target.precision >= source.precision and target.max_exponent >= source.max_exponent
        return "same" if wide else "rounding"
    if source.is_integer and target.is_float:
        return "same" if source.bits <= target.precision else "rounding"
    return "different"
