"""The operations an expression may use: one table that every stage reads."""

from dataclasses import dataclass
from typing import Literal

Rule = Literal["same", "compare", "select", "cast", "float", "integer", "bits"]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation's facts.

    ``rule`` says how types go: ``same`` (all arguments and the result have one type), ``float`` and
    ``integer`` (the same, floats or integers only), ``bits`` (integers or bool), ``compare``
    (arguments of one type, result bool), ``select`` (bool, then two of the result's type), ``cast``
    (any argument, result named).  ``same`` applies to bool only if ``on_bool``.  ``precedence`` is
    that of the printed operator, None for calls.
    """

    name: str
    arity: int
    rule: Rule
    precedence: int | None = None
    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    on_bool: bool = False


_TABLE = (
    Operation("<", 2, "compare", 1),
    Operation("<=", 2, "compare", 1),
    Operation(">", 2, "compare", 1),
    Operation(">=", 2, "compare", 1),
    Operation("==", 2, "compare", 1, commutative=True),
    Operation("!=", 2, "compare", 1, commutative=True),
    Operation("|", 2, "bits", 2, commutative=True, associative=True, idempotent=True),
    Operation("^", 2, "bits", 3, commutative=True, associative=True),
    Operation("&", 2, "bits", 4, commutative=True, associative=True, idempotent=True),
    Operation("<<", 2, "integer", 5),
    Operation(">>", 2, "integer", 5),
    Operation("+", 2, "same", 6, commutative=True, associative=True),
    Operation("-", 2, "same", 6),
    Operation("*", 2, "same", 7, commutative=True, associative=True),
    Operation("/", 2, "float", 7),
    Operation("//", 2, "integer", 7),  # floor
    Operation("%", 2, "integer", 7),  # of the floor division: never negative for a positive divisor
    Operation("neg", 1, "same", 8),
    Operation("~", 1, "bits", 8),
    Operation("min", 2, "same", commutative=True, associative=True, idempotent=True, on_bool=True),
    Operation("max", 2, "same", commutative=True, associative=True, idempotent=True, on_bool=True),
    Operation("abs", 1, "same"),
    Operation("select", 3, "select"),
    Operation("cast", 1, "cast"),  # float to integer truncates; integers wrap; floats round to even
    Operation("sat", 1, "cast"),  # clamps to the target's range, rounding to nearest even first
    Operation("round", 1, "float"),  # to the nearest whole number, ties to even
    Operation("floor", 1, "float"),
    Operation("ceil", 1, "float"),
    Operation("trunc", 1, "float"),
    Operation("exp", 1, "float"),
    Operation("log", 1, "float"),
    Operation("tanh", 1, "float"),
    Operation("sqrt", 1, "float"),
    Operation("rsqrt", 1, "float"),
    Operation("sigmoid", 1, "float"),
    Operation("erf", 1, "float"),
    Operation("fma", 3, "float"),  # a*b + c, rounded once
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _TABLE}
"""Every operation by name."""

REDUCTION_OPERATIONS: dict[str, str] = {
    "+=": "+",
    "*=": "*",
    "max=": "max",
    "min=": "min",
    "or=": "|",
    "and=": "&",
    "xor=": "^",
}
"""The operation that each reduction repeats; ``=`` has none."""
