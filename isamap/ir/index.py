"""Integer index expressions: polynomials over variables, symbols, floor-divisions and remainders.

One class serves the index expressions of accesses, the extents of buffers, the counts of loops and
the addresses of a lowered kernel.  An :class:`Index` is always in canonical form, so that equality
is equality of polynomials; ``(a + b)*2 == 2*b + 2*a``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, TypeAlias

from isamap.ir.hashed import Hashed


class Name(str):
    """An iteration variable, a symbolic extent or a loop counter.

    It is a text, for that is hashed and compared most quickly; ``name`` is a plain one.
    """

    __slots__ = ("name",)
    __match_args__ = ("name",)

    name: str

    def __new__(cls, name: str) -> "Name":
        """Return what stands for ``name``."""
        made = super().__new__(cls, name)
        made.name = str(name)
        return made

    def __repr__(self) -> str:
        return f"Name(name={self.name!r})"


@dataclass(frozen=True, slots=True)
class Div:
    """``value // divisor``, rounded down; the divisor is a positive constant."""

    value: "Index"
    divisor: int


@dataclass(frozen=True, slots=True)
class Mod:
    """``value % divisor``, never negative; the divisor is a positive constant."""

    value: "Index"
    divisor: int


@dataclass(frozen=True, slots=True)
class Read:
    """An index read from an integer buffer: a data-dependent access."""

    buffer: str
    indices: tuple["Index", ...]


Atom: TypeAlias = Name | Div | Mod | Read
Monomial: TypeAlias = tuple[Atom, ...]


class _Remembered(Hashed):
    """Room for what an index is asked again and again; no part of what it is."""

    __slots__ = ("_names", "_reads")

    _names: frozenset[str]
    _reads: tuple["Read", ...]


@dataclass(frozen=True, slots=True, init=False)
class Index(_Remembered):
    """A polynomial: sorted ``(monomial, coefficient)`` pairs without zeros; ``()`` is the
    constant's.

    Build with :func:`const`, :func:`var`, the operators ``+ - *`` and ``//``, ``%`` by a positive
    ``int``.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        _set_terms(self, terms)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._keep(hash(self.terms))

    # --- construction ---------------------------------------------------------------------------
    def __add__(self, other: "Index | int") -> "Index":
        added = as_index(other)
        if not self.terms:
            return added
        return _from_pairs([*self.terms, *added.terms]) if added.terms else self

    __radd__ = __add__

    def __neg__(self) -> "Index":
        return Index(tuple([(m, -c) for m, c in self.terms]))

    def __sub__(self, other: "Index | int") -> "Index":
        return self + -as_index(other)

    def __rsub__(self, other: "Index | int") -> "Index":
        return as_index(other) - self

    def __mul__(self, other: "Index | int") -> "Index":
        if isinstance(other, int):
            if other == 1:
                return self
            return Index(tuple([(m, c * other) for m, c in self.terms])) if other else const(0)
        if (factor := other.constant) is not None:
            return self * factor
        pairs = [
            (tuple(sorted((*m, *n), key=_atom_key)), c * d)
            for m, c in self.terms
            for n, d in other.terms
        ]
        return _from_pairs(pairs)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> "Index":
        _check_divisor(divisor)
        # Multiples of the divisor leave the floor: (q*d + r) // d == q + r // d.
        whole = _from_pairs([(m, c // divisor) for m, c in self.terms])
        rest = _from_pairs([(m, c % divisor) for m, c in self.terms])
        if (value := rest.constant) is not None:
            return whole + value // divisor
        if divisor == 1:
            return self
        return whole + Index((((Div(rest, divisor),), 1),))

    def __mod__(self, divisor: int) -> "Index":
        _check_divisor(divisor)
        rest = _from_pairs([(m, c % divisor) for m, c in self.terms])
        if (value := rest.constant) is not None:
            return const(value % divisor)
        return Index((((Mod(rest, divisor),), 1),))

    # --- questions ------------------------------------------------------------------------------
    @property
    def constant(self) -> int | None:
        """The value, if this is a number."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def name(self) -> str | None:
        """The name, if this is just a name."""
        if len(self.terms) == 1:
            monomial, c = self.terms[0]
            if c == 1 and len(monomial) == 1 and type(atom := monomial[0]) is Name:
                return atom.name
        return None

    @property
    def offset(self) -> int:
        """The coefficient of the constant term."""
        return next((c for m, c in self.terms if m == ()), 0)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The distinct atoms, in order of appearance; not those inside ``//`` and ``%``."""
        return tuple(dict.fromkeys([atom for m, _ in self.terms for atom in m]))

    @property
    def names(self) -> frozenset[str]:
        """All variables and symbols that occur, those inside ``//``, ``%`` and reads included."""
        try:
            return self._names
        except AttributeError:
            object.__setattr__(self, "_names", _names(self.terms))
            return self._names

    @property
    def reads(self) -> tuple[Read, ...]:
        """The data-dependent atoms, nested ones included, inner before outer."""
        try:
            return self._reads
        except AttributeError:
            object.__setattr__(self, "_reads", _reads(self.atoms))
            return self._reads

    def coefficient(self, name: str) -> "Index":
        """Return the factor of ``name`` in the terms in which it occurs to the first power."""
        atom = Name(name)
        pairs: list[tuple[Monomial, int]] = []
        for monomial, c in self.terms:
            if len(monomial) == 1:
                if monomial[0] == atom:
                    pairs.append(((), c))
            elif monomial.count(atom) == 1:
                rest = list(monomial)
                rest.remove(atom)
                pairs.append((tuple(rest), c))
        return _from_pairs(pairs)

    def is_linear_in(self, names: Iterable[str]) -> bool:
        """Return whether each of ``names`` occurs only alone in its term, outside ``//``, ``%``."""
        wanted = frozenset(names)
        for monomial, _ in self.terms:
            hits = 0
            for atom in monomial:
                if isinstance(atom, Name):
                    hits += atom.name in wanted
                elif _from_pairs([((atom,), 1)]).names & wanted:
                    return False
            if hits > 1:
                return False
        return True

    # --- use ------------------------------------------------------------------------------------
    def substitute(self, values: Mapping[str, "Index | int"]) -> "Index":
        """Return the expression with names replaced; names not in ``values`` stay."""
        if self.names.isdisjoint(values):
            return self
        if (name := self.name) is not None:
            return as_index(values[name])
        pairs: list[tuple[Monomial, int]] = []
        for monomial, c in self.terms:
            if len(monomial) == 1 and type(atom := monomial[0]) is Name:
                # Nearly all terms are a name times a number: no products of polynomials for them.
                value = values.get(atom.name)
                if value is None:
                    pairs.append((monomial, c))
                elif isinstance(value, Index):
                    pairs += [(m, c * d) for m, d in value.terms]
                else:
                    pairs.append(((), c * value))
            elif monomial:
                factors = [_substitute_atom(atom, values) for atom in monomial]
                pairs += reduce(lambda a, b: a * b, factors, const(c)).terms
            else:
                pairs.append((monomial, c))
        return _from_pairs(pairs)

    def evaluate(
        self, values: Mapping[str, Any], read: Callable[[str, tuple[Any, ...]], Any] | None = None
    ) -> Any:
        """Return the value, with ``values`` of ``int`` or integer arrays that broadcast.

        ``read(buffer, indices)`` answers data-dependent indices.  KeyError for a name without
        value.
        """
        total: Any = 0
        for monomial, c in self.terms:
            product: Any = c
            for atom in monomial:
                match atom:
                    case Name(name):
                        product = product * values[name]
                    case Div(value, divisor):
                        product = product * (value.evaluate(values, read) // divisor)
                    case Mod(value, divisor):
                        product = product * (value.evaluate(values, read) % divisor)
                    case Read(buffer, indices):
                        if read is None:
                            raise KeyError(buffer)
                        product = product * read(
                            buffer, tuple(i.evaluate(values, read) for i in indices)
                        )
            total = total + product
        return total

    def bounds(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
        """Return an interval (both ends included) that holds every value, or None if unbounded.

        ``ranges`` gives both ends of each name.  Exact when each name occurs once.
        """
        low = high = 0
        for monomial, c in self.terms:
            lo = hi = c
            for atom in monomial:
                interval = _atom_bounds(atom, ranges)
                if interval is None:
                    return None
                ends = [lo * interval[0], lo * interval[1], hi * interval[0], hi * interval[1]]
                lo, hi = min(ends), max(ends)
            low, high = low + lo, high + hi
        return low, high

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, c in self.terms:
            factors = [_atom_text(atom) for atom in monomial]
            if len(monomial) == 1 and (c == 1 or (c == -1 and text)):
                factors = [_bare_text(monomial[0])]  # a sign in front would bind tighter
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            product = "*".join(factors)
            if not text:
                text = f"-{product}" if c < 0 else product
            else:
                text += f" - {product}" if c < 0 else f" + {product}"
        return text


# What the frozen class's own way of setting its field is, without the look for its name.
_set_terms: Callable[[Index, tuple[tuple[Monomial, int], ...]], None] = vars(Index)["terms"].__set__


def _names(terms: Iterable[tuple[Monomial, int]]) -> frozenset[str]:
    found: set[str] = set()
    for monomial, _ in terms:
        for atom in monomial:
            match atom:
                case Name(name):
                    found.add(name)
                case Div(value, _) | Mod(value, _):
                    found |= value.names
                case Read(_, indices):
                    found.update(*(index.names for index in indices))
    return frozenset(found)


def _reads(atoms: Iterable[Atom]) -> tuple[Read, ...]:
    found: list[Read] = []
    for atom in atoms:
        match atom:
            case Div(value, _) | Mod(value, _):
                found += value.reads
            case Read(_, indices):
                for index in indices:
                    found += index.reads
                found.append(atom)
            case Name():
                pass
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1 << 14, typed=True)
def const(value: int) -> Index:
    """Return a number."""
    return Index((((), value),)) if value else Index(())


@lru_cache(maxsize=1 << 14, typed=True)
def var(name: str) -> Index:
    """Return a variable, symbol or counter."""
    return Index((((Name(name),), 1),))


def read(buffer: str, indices: tuple[Index, ...]) -> Index:
    """Return an index that is read from a buffer."""
    return Index((((Read(buffer, indices),), 1),))


def as_index(value: Index | int) -> Index:
    """Return ``value`` as an Index."""
    return value if isinstance(value, Index) else const(value)


def total(values: Iterable[Index | int]) -> Index:
    """Return the sum."""
    return _from_pairs(pair for v in values for pair in as_index(v).terms)


def product(values: Iterable[Index | int]) -> Index:
    """Return the product."""
    return reduce(lambda a, b: a * b, (as_index(v) for v in values), const(1))


def ceil_div(value: Index | int, divisor: int) -> Index:
    """Return ``value / divisor`` rounded up."""
    return (as_index(value) + (divisor - 1)) // divisor


def row_major(shape: Iterable[Index | int]) -> tuple[Index, ...]:
    """Return the pitch of each dimension, in elements, of a dense row-major array."""
    extents = list(shape)
    pitches: list[Index] = [const(1)] if extents else []
    for extent in reversed(extents[1:]):
        pitches.append(pitches[-1] * extent)
    return tuple(reversed(pitches))


def _check_divisor(divisor: int) -> None:
    assert divisor > 0, "divisors are positive constants"


def _from_pairs(pairs: Iterable[tuple[Monomial, int]]) -> Index:
    sums: dict[Monomial, int] = {}
    for monomial, c in pairs:
        sums[monomial] = sums.get(monomial, 0) + c
    kept = [pair for pair in sums.items() if pair[1]]
    if len(kept) > 1:
        kept.sort(key=_monomial_key)
    return Index(tuple(kept))


def _monomial_key(pair: tuple[Monomial, int]) -> tuple[int, list[tuple[int, str]]]:
    """Constants last, longer products first, then by name: the order in which people write."""
    return -len(pair[0]), [_atom_key(atom) for atom in pair[0]]


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (0, atom.name) if isinstance(atom, Name) else (1, _atom_text(atom))


def _atom_text(atom: Atom) -> str:
    """Return the text of an atom as a factor."""
    text = _bare_text(atom)
    return f"({text})" if isinstance(atom, Div | Mod) else text


def _bare_text(atom: Atom) -> str:
    match atom:
        case Name(name):
            return name
        case Div(value, divisor):
            return f"{_operand_text(value)} // {divisor}"
        case Mod(value, divisor):
            return f"{_operand_text(value)} % {divisor}"
        case Read(buffer, indices):
            return f"{buffer}[{', '.join(map(str, indices))}]"


def _operand_text(value: Index) -> str:
    return str(value) if len(value.terms) == 1 else f"({value})"


def _substitute_atom(atom: Atom, values: Mapping[str, Index | int]) -> Index:
    match atom:
        case Name(name):
            return as_index(values[name]) if name in values else var(name)
        case Div(value, divisor):
            return value.substitute(values) // divisor
        case Mod(value, divisor):
            return value.substitute(values) % divisor
        case Read(buffer, indices):
            return read(buffer, tuple(i.substitute(values) for i in indices))


def _atom_bounds(atom: Atom, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    match atom:
        case Name(name):
            return ranges.get(name)
        case Div(value, divisor):
            inner = value.bounds(ranges)
            return (inner[0] // divisor, inner[1] // divisor) if inner else None
        case Mod(value, divisor):
            inner = value.bounds(ranges)
            if inner and inner[0] // divisor == inner[1] // divisor:
                return inner[0] % divisor, inner[1] % divisor
            return 0, divisor - 1
        case Read():
            return None
