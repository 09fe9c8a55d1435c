"""Index expressions as C: division that rounds down, remainders never negative.

Integers have 64 bits.  Counters of which few values are enough have those of a pointer: machines
with pointers of 32 bits compute with 64 in several steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from isamap.emit import names
from isamap.ir.index import Atom, Div, Index, Mod, Name, Read

_LARGEST = 1 << 40
"""No extent of a real array exceeds this; only used to tell that an expression is not negative."""

_FEW = 1 << 31
"""What integers of 32 bits do not hold."""

HELPERS = """\
/* Division that rounds down and the remainder that goes with it, for divisors above 0;
   the value of four bits; the larger and the smaller of two. */
static inline int64_t isamap_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t isamap_mod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }
static inline int64_t isamap_s4(int64_t a) { return ((a & 15) ^ 8) - 8; }
static inline int64_t isamap_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t isamap_min(int64_t a, int64_t b) { return a < b ? a : b; }
"""


@dataclass(frozen=True, slots=True)
class Env:
    """What names mean at a place in the C text.

    ``integers`` gives the C variable of each counter and symbol, ``ranges`` the interval of its
    values.  ``nibbles`` are the buffers of s4, of whose bytes only the low four bits count.
    ``narrow`` are the counters that are no wider than a pointer.
    """

    integers: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    nibbles: frozenset[str] = frozenset()
    narrow: frozenset[str] = frozenset()

    def kind(self, name: str) -> str:
        """Return the C type of a counter or symbol."""
        return "ptrdiff_t" if name in self.narrow else "int64_t"

    def with_symbols(self, symbols: tuple[str, ...]) -> "Env":
        """Return the environment inside a function that takes ``symbols``."""
        return replace(
            self,
            integers={**self.integers, **{s: names.symbol(s) for s in symbols}},
            ranges={**self.ranges, **{s: (1, _LARGEST) for s in symbols}},
        )

    def with_counter(self, name: str, count: Index) -> "Env":
        """Return the environment inside ``for name in 0..count``."""
        bounds = count.bounds(self.ranges)
        last = max(0, bounds[1] - 1) if bounds else _LARGEST
        return replace(
            self,
            integers={**self.integers, name: names.counter(name)},
            ranges={**self.ranges, name: (0, last)},
            narrow=self.narrow | {name} if last + 1 < _FEW else self.narrow - {name},
        )


def loop_head(counter: str, first: str, past: str, env: Env) -> str:
    """Return the head of a loop over ``first .. past`` in C; ``env`` is that of its body."""
    variable = env.integers[counter]
    return f"for ({env.kind(counter)} {variable} = {first}; {variable} < {past}; ++{variable})"


def text(index: Index, env: Env) -> str:
    """Return the expression in C, without parentheses around it."""
    if not index.terms:
        return "0"
    result = ""
    widened = "" if _holds(index, env) else "(int64_t)"
    for monomial, coefficient in index.terms:
        factors = [_atom(atom, env) for atom in monomial]
        if widened and monomial:
            factors[0] = f"{widened}{factors[0]}"
        if abs(coefficient) != 1 or not factors:
            factors.append(_number(abs(coefficient)))
        term = " * ".join(factors)
        if not result:
            result = f"-{term}" if coefficient < 0 else term
        else:
            result += f" - {term}" if coefficient < 0 else f" + {term}"
    return result


def operand(index: Index, env: Env) -> str:
    """Return the expression in C, fit to stand anywhere in a larger one."""
    written = text(index, env)
    return written if written.isidentifier() or written.isdigit() else f"({written})"


def condition(index: Index, env: Env) -> str:
    """Return ``index >= 0`` in C, negative terms on the right where that reads better."""
    left = Index(tuple((m, c) for m, c in index.terms if c > 0))
    right = Index(tuple((m, -c) for m, c in index.terms if c < 0))
    return f"{text(left, env)} >= {text(right, env)}"


def conjunction(indices: tuple[Index, ...], env: Env) -> str:
    """Return in C that no index is negative."""
    return " && ".join(condition(index, env) for index in indices) or "1"


def _number(value: int) -> str:
    return str(value) if value < 1 << 31 else f"INT64_C({value})"


def _atom(atom: Atom, env: Env) -> str:
    match atom:
        case Name(name):
            return env.integers[name]
        case Div(value, divisor):
            if _never_negative(value, env):
                return f"({operand(value, env)} / {_number(divisor)})"
            return f"isamap_div({text(value, env)}, {_number(divisor)})"
        case Mod(value, divisor):
            if _never_negative(value, env):
                return f"({operand(value, env)} % {_number(divisor)})"
            return f"isamap_mod({text(value, env)}, {_number(divisor)})"
        case Read(buffer, (offset,)):
            element = f"{names.buffer(buffer)}[{text(offset, env)}]"
            return f"isamap_s4({element})" if buffer in env.nibbles else f"(int64_t){element}"
        case Read():
            raise AssertionError("arrays of a lowered kernel are flat")


def _holds(index: Index, env: Env) -> bool:
    """Return whether no part that is computed in the bits of a pointer exceeds 32."""
    total = 0
    for monomial, coefficient in index.terms:
        size = abs(coefficient)
        for atom in monomial:
            if not _is_narrow(atom, env):
                size //= abs(coefficient)  # which follows, in 64 bits
                break
            bounds = Index((((atom,), 1),)).bounds(env.ranges)
            assert bounds is not None, "narrow counters have bounds"
            size *= max(abs(bounds[0]), abs(bounds[1]))
        total += size
    return total < _FEW


def _is_narrow(atom: Atom, env: Env) -> bool:
    """Return whether the C text of an atom may be of a type with only 32 bits."""
    match atom:
        case Name(name):
            return name in env.narrow
        case Div(value, _) | Mod(value, _):
            # One part of 64 bits makes the whole have them, and so do the functions.
            inside = (part for monomial, _ in value.terms for part in monomial)
            return _never_negative(value, env) and all(_is_narrow(part, env) for part in inside)
        case Read():
            return False


def _never_negative(value: Index, env: Env) -> bool:
    bounds = value.bounds(env.ranges)
    return bounds is not None and bounds[0] >= 0
