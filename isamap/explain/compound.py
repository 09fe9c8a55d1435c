"""Operations that are several others in one step, and so round otherwise."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from isamap.explain.explanation import Effect
from isamap.ir.nodes import Expr, Literal, Op


@dataclass(frozen=True, slots=True)
class Compound:
    """How an operation is written with others: ``spelled`` makes that of its arguments.

    ``effect`` is what writing the one for the other does to a value, ``why`` says what differs.
    """

    spelled: Callable[..., Expr]
    effect: Effect
    why: str


def _op(op: str, *args: Expr) -> Op:
    return Op(op, args, args[0].dtype)


def _one(like: Expr) -> Literal:
    return Literal("1.0", like.dtype)


_SAME = "though that has the same value"
_FUSED = "which rounds once where the other rounds each operation"

COMPOUNDS: Mapping[str, Compound] = {
    "fma": Compound(lambda a, b, c: _op("+", _op("*", a, b), c), "rounding", _FUSED),
    "rsqrt": Compound(lambda a: _op("/", _one(a), _op("sqrt", a)), "rounding", _FUSED),
    "sigmoid": Compound(
        lambda a: _op("/", _one(a), _op("+", _one(a), _op("exp", _op("neg", a)))),
        "rounding",
        _FUSED,
    ),
    "-": Compound(lambda a, b: _op("+", a, _op("neg", b)), "same", _SAME),
}
"""Operations that are written with others; none of these is a compound itself."""


def pattern_of(expr: Op) -> Expr:
    """Return an instruction's compound operation as it is written with others, in its place."""
    return replace(_spelled(expr, expr.args), span=expr.span)


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_CHOSEN = {">": "max", ">=": "max", "<": "min", "<=": "min"}


def others(expr: Op, op: str) -> Iterator[tuple[Op, Effect, str]]:
    """Yield what a kernel's operation can be written as with ``op`` at its root.

    With each what that does to the value, and what differs.
    """
    if expr.op in COMPOUNDS:
        compound = COMPOUNDS[expr.op]
        whole = spelled(expr)
        if whole.op == op or op in COMPOUNDS:
            yield whole, compound.effect, compound.why
    if _MIRRORED.get(expr.op) == op:
        turned = replace(expr, op=op, args=expr.args[::-1])
        yield turned, "same", "though that is the same the other way round"
    match expr:
        case Op("neg", (Op("*"),), _) if op == "*":
            yield replace(_negated_product(expr), span=expr.span), "same", _SAME
        case Op("select", (Op(test, (a, b), _), x, y), _) if {a, b} == {x, y} and test in _CHOSEN:
            chosen = _CHOSEN[test if x == a else _MIRRORED[test]]
            if chosen == op:
                effect: Effect = "trust" if expr.dtype.is_float else "same"
                yield Op(op, (a, b), expr.dtype, expr.span), effect, "which NaN tells from it"


def spelled(expr: Op) -> Op:
    """Return a kernel's compound operation as it is written with others, in its place.

    What is subtracted is added with the other sign, which a factor of it takes.
    """
    whole = _spelled(expr, expr.args)
    if expr.op == "-":
        whole = replace(whole, args=(expr.args[0], _negated(expr.args[1])))
    return replace(whole, span=expr.span)


def folded(pattern: Op, instance: Expr) -> Op:
    """Return the compound operation of which ``instance`` is the :func:`pattern_of`.

    ``instance`` has the operations of that in their order, with other arguments.
    """
    holes = tuple(Literal(f"hole {n}", arg.dtype) for n, arg in enumerate(pattern.args))
    found: dict[int, Expr] = {}
    _read(_spelled(pattern, holes), instance, holes, found)
    return replace(pattern, args=tuple(found[n] for n in range(len(holes))), span=None)


def _spelled(expr: Op, args: tuple[Expr, ...]) -> Op:
    whole = COMPOUNDS[expr.op].spelled(*args)
    assert isinstance(whole, Op)
    return whole


def _negated_product(expr: Op) -> Op:
    """Return ``-(a * b)`` as a product."""
    found = _negated(expr.args[0])
    assert isinstance(found, Op)
    return found


def _negated(expr: Expr) -> Expr:
    """Return an expression with the other sign, which a factor of a product takes."""
    match expr:
        case Literal(text, dtype) if dtype.kind != "unsigned" and text not in ("0", "nan"):
            return Literal(text.removeprefix("-") if text[0] == "-" else f"-{text}", dtype)
        case Op("neg", (inner,), _):
            return inner
        case Op("*", (one, other), _):
            args = (one, _negated(other)) if isinstance(other, Literal) else (_negated(one), other)
            return replace(expr, args=args)
        case _:
            return _op("neg", expr)


def _read(
    template: Expr, instance: Expr, holes: tuple[Literal, ...], found: dict[int, Expr]
) -> None:
    if isinstance(template, Literal):
        if template in holes:
            found[holes.index(template)] = instance
        return
    assert isinstance(template, Op)
    assert isinstance(instance, Op)
    assert template.op == instance.op
    for part, own in zip(template.args, instance.args, strict=True):
        _read(part, own, holes, found)
