"""Index expressions as terms of SMT-LIB."""

from isamap.ir.index import Atom, Div, Index, Mod, Name, Read


def term(index: Index) -> str:
    """Return the term of an expression without data-dependent parts."""
    parts = []
    for monomial, coefficient in index.terms:
        factors = [_atom(atom) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, _number(coefficient))
        parts.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
    if not parts:
        return "0"
    return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def at_least(left: Index, right: Index | int) -> str:
    """Return the term of ``left >= right``."""
    return f"(>= {term(left)} {_number(right) if isinstance(right, int) else term(right)})"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _atom(atom: Atom) -> str:
    match atom:
        case Name(name):
            return f"|{name}|"
        # SMT-LIB rounds down for the positive divisors that these have.
        case Div(value, divisor):
            return f"(div {term(value)} {divisor})"
        case Mod(value, divisor):
            return f"(mod {term(value)} {divisor})"
        case Read():
            raise AssertionError("data-dependent indices have no term")
