"""Parts of SMT-LIB scripts over a few integer variables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isamap.mapping.axes.linear import Vector


@dataclass(frozen=True, slots=True)
class Names:
    """What the user calls the variables and the operands; operand 0 is the target."""

    variables: tuple[str, ...]
    operands: tuple[str, ...]


def linear(vector: Vector, names: Sequence[str], constant: int = 0) -> str:
    """Return the sum of some terms with these factors, and a constant."""
    terms = [
        name if c == 1 else f"(* {number(c)} {name})"
        for c, name in zip(vector, names, strict=True)
        if c
    ]
    terms += [number(constant)] if constant else []
    if not terms:
        return "0"
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def number(value: int) -> str:
    """Return a number."""
    return str(value) if value >= 0 else f"(- {-value})"


def conjunction(terms: Iterable[str]) -> str:
    """Return that all of these hold."""
    return f"(and {' '.join(terms)})"


def disjunction(terms: Iterable[str]) -> str:
    """Return that one of these holds."""
    return f"(or {' '.join(terms)})"


def not_all(terms: Iterable[str]) -> str:
    """Return that one of these does not hold."""
    return f"(not {conjunction(terms)})"


def mark(operand: str) -> str:
    """Return what marks the variables of the iteration with which a stray agrees at an operand."""
    return f"@{operand}"


def digit(number_: int) -> str:
    """Return the name of a digit of a stray."""
    return f"digit {number_}"


def unit(position: int, size: int) -> Vector:
    """Return a vector that is 1 in one place."""
    return tuple(int(position == n) for n in range(size))
