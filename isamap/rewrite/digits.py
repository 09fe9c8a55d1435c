"""The rule that gives the digits of a variable variables of their own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from itertools import product as combinations
from math import gcd

from isamap.ir.index import Atom, Div, Index, Mod, Name, Read, const, product, total, var
from isamap.ir.nodes import Access, Coordinate, Expr, Kernel, Literal, Op, Reduce
from isamap.ir.smt import term
from isamap.ir.statements import read_indices, substitute_expr
from isamap.rewrite.build import Draft, extents, fresh, replaced
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "split-variables"


def split_variables(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement without the quotients and remainders of variables by constants.

    ``C[i] = A[i // 16] * B[i % 16]`` over 40 values of i becomes

        C[16*i_1 + i_2] = A[i_1] * B[i_2]
        C[i_rest + 32] = A[2] * B[i_rest]

    because instructions have axes for variables alone.  What is left over has one statement, in
    which the variable keeps its digits.
    """
    statement = kernel.statements[number]
    sizes = {v: e.constant for v, e in extents(statement).items()}
    indices = [i for part in (statement.target, statement.value) for i in read_indices(part)]
    if None in sizes.values() or any(index.reads for index in indices):
        return
    known = {v: size for v, size in sizes.items() if size is not None}
    cuts = {v: at for v, size in known.items() if (at := _cuts(indices, v, size))}
    if not cuts:
        return
    taken: list[str] = []
    pieces: list[tuple[_Piece, ...]] = []
    for name, at in cuts.items():
        pieces.append(_pieces(kernel, name, known[name], at, taken))
        taken += [digit for piece in pieces[-1] for digit in piece.sizes]
    drafts: list[Draft] = []
    lemmas = [_once(name, known[name], own) for name, own in zip(cuts, pieces, strict=True)]
    for chosen in combinations(*pieces):
        ranges = {v: size for v, size in known.items() if v not in cuts}
        for piece in chosen:
            ranges |= piece.sizes
        places = {name: piece.place for name, piece in zip(cuts, chosen, strict=True)}
        simple = _Simple({v: (0, size - 1) for v, size in ranges.items()})
        target = simple.expr(substitute_expr(statement.target, places))
        value = simple.expr(substitute_expr(statement.value, places))
        now = [i for part in (target, value) for i in read_indices(part)]
        if frozenset(ranges) - frozenset().union(*(index.names for index in now)):
            return  # an iteration that leaves no trace cannot be written
        assert isinstance(target, Access)
        sides = tuple(pair for pair in zip(indices, now, strict=True) if pair[0] != pair[1])
        lemmas.append(_same(sides, places, ranges))
        drafts.append(
            Draft(target, statement.reduction, value, {v: const(n) for v, n in ranges.items()})
        )
    said = " and ".join(f"{name} = {own[0].place}" for name, own in zip(cuts, pieces, strict=True))
    note = f"{said}: quotients and remainders are variables"
    yield Rewriting(NAME, number, replaced(kernel, number, drafts), tuple(lemmas), note)


def _cuts(indices: Iterable[Index], name: str, size: int) -> tuple[int, ...]:
    """Return by what a variable of ``size`` values is divided, each dividing the next."""
    found = sorted({cut for index in indices for cut in _divisors(index, name) if 1 < cut < size})
    kept: list[int] = []
    for cut in found:
        if not kept or cut % kept[-1] == 0:
            kept.append(cut)
    return tuple(kept)


def _divisors(index: Index, name: str) -> Iterator[int]:
    """Yield by what a variable is divided in an index, quotients of quotients included."""
    for atom in index.atoms:
        if isinstance(atom, Div | Mod):
            for weight, factor in _parts(atom.value, name):
                yield weight * (atom.divisor // gcd(atom.divisor, factor))
            yield from _divisors(atom.value, name)


def _parts(index: Index, name: str) -> Iterator[tuple[int, int]]:
    """Yield the weight of each quotient ``name // weight`` in an index, and its factor there."""
    for monomial, factor in index.terms:
        match monomial:
            case (Name(found),) if found == name:
                yield 1, factor
            case (Div(value, divisor),):
                for weight, inner in _parts(value, name):
                    yield weight * (divisor // gcd(divisor, inner)), factor
            case (Mod(value, _),):
                for weight, inner in _parts(value, name):
                    yield weight, factor * inner


@dataclass(frozen=True, slots=True)
class _Piece:
    """Values of a variable: those at ``place``, for all values of the variables of ``sizes``."""

    place: Index
    sizes: Mapping[str, int]

    def marked(self, mark: str) -> "_Piece":
        """Return the same with other names."""
        named = {v: var(v + mark) for v in self.sizes}
        sizes = {v + mark: size for v, size in self.sizes.items()}
        return _Piece(self.place.substitute(named), sizes)

    def holds(self, name: str) -> str:
        """Return the term of ``name`` being at the place of the variables."""
        inside = [f"(<= 0 |{v}|) (< |{v}| {size})" for v, size in self.sizes.items()]
        return f"(and {' '.join(inside)} (= |{name}| {term(self.place)}))"

    def reached(self, name: str) -> str:
        """Return the term of ``name`` being at the place of its digits."""
        value, digits = var(name) - self.place.offset, {}
        for v in self.sizes:
            weight = self.place.coefficient(v).evaluate({})
            digits[v] = value // weight
            value = value % weight
        inside = [f"(<= 0 {term(d)}) (< {term(d)} {self.sizes[v]})" for v, d in digits.items()]
        back = total(d * self.place.coefficient(v) for v, d in digits.items()) + self.place.offset
        return f"(and {' '.join(inside)} (= |{name}| {term(back)}))"


def _pieces(
    kernel: Kernel, name: str, size: int, cuts: tuple[int, ...], taken: Iterable[str]
) -> tuple[_Piece, ...]:
    """Return the whole multiples of the greatest divisor by digits, and what is left over."""
    weights = (*reversed(cuts), 1)
    names = [fresh(kernel, f"{name}_{n}", taken) for n in range(1, len(weights) + 1)]
    whole = size - size % cuts[-1]
    counts = (whole // cuts[-1], *(high // low for high, low in pairwise(weights)))
    place = total(var(n) * weight for n, weight in zip(names, weights, strict=True))
    digits = _Piece(place, dict(zip(names, counts, strict=True)))
    if whole == size:
        return (digits,)
    rest = fresh(kernel, f"{name}_rest", taken)
    return digits, _Piece(var(rest) + whole, {rest: size - whole})


@dataclass(frozen=True, slots=True)
class _Simple:
    """Simplifies quotients and remainders by the ends that ``ranges`` gives each variable."""

    ranges: Mapping[str, tuple[int, int]]

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with simplified indices."""
        match expr:
            case Access(_, indices):
                return replace(expr, indices=tuple(map(self.index, indices)))
            case Coordinate(index):
                return replace(expr, index=self.index(index))
            case Op(_, args):
                return replace(expr, args=tuple(map(self.expr, args)))
            case Reduce(_, _, body):
                return replace(expr, body=self.expr(body))
            case Literal():
                return expr

    def index(self, index: Index) -> Index:
        """Return an index of the same values."""
        terms = ((monomial, const(factor)) for monomial, factor in index.terms)
        return total(product([factor, *map(self._atom, atoms)]) for atoms, factor in terms)

    def _atom(self, atom: Atom) -> Index:
        match atom:
            case Div(value, divisor):
                return self._divided(self.index(value), divisor)[0]
            case Mod(value, divisor):
                return self._divided(self.index(value), divisor)[1]
            case Name(name):
                return var(name)
            case Read():
                raise AssertionError("statements with data-dependent indices are left alone")

    def _divided(self, value: Index, divisor: int) -> tuple[Index, Index]:
        """Return quotient and remainder."""
        quotient, remainder = value // divisor, value % divisor
        match remainder.atoms:
            case (Mod(rest, _),) if ends := rest.bounds(self.ranges):
                low, high = (end // divisor for end in ends)
                if low == high:
                    return (value - rest) // divisor + low, rest - low * divisor
        return quotient, remainder


def _same(
    sides: Iterable[tuple[Index, Index]], places: Mapping[str, Index], ranges: Mapping[str, int]
) -> Lemma:
    """Return the lemma that indices before and after are one place, for all values."""
    lines = [f"(declare-const |{name}| Int)" for name in (*ranges, *places)]
    lines += [f"(assert (and (<= 0 |{v}|) (< |{v}| {size})))" for v, size in ranges.items()]
    lines += [f"(assert (= |{name}| {term(place)}))" for name, place in places.items()]
    equal = " ".join(f"(= {term(old)} {term(new)})" for old, new in sides)
    lines.append(f"(assert (not (and true {equal})))")
    said = " and ".join(f"{name} = {place}" for name, place in places.items())
    return Lemma(NAME, f"where {said}, all indices are what they were", "\n".join(lines) + "\n")


def _once(name: str, size: int, pieces: tuple[_Piece, ...]) -> Lemma:
    """Return the lemma that each value of a variable is one place of one piece, and no others are.

    A value in two places, one in none (the digits that it has are told), or a place without one
    would be a counterexample.
    """
    names = [v for piece in pieces for v in piece.sizes]
    lines = [f"(declare-const |{v}| Int)" for n in names for v in (n, f"{n}'")]
    lines.append(f"(declare-const |{name}| Int)")
    among = f"(and (<= 0 |{name}|) (< |{name}| {size}))"
    found: list[str] = []
    wrong: list[str] = []
    for number, piece in enumerate(pieces):
        here, there = piece.holds(name), piece.marked("'").holds(name)
        apart = " ".join(f"(distinct |{v}| |{v}'|)" for v in piece.sizes)
        wrong.append(f"(and {here} {there} (or {apart}))")
        wrong.append(f"(and {here} (not {among}))")
        wrong += [f"(and {here} {other.holds(name)})" for other in pieces[:number]]
        found.append(piece.reached(name))
    wrong.append(f"(and {among} (not (or {' '.join(found)})))")
    lines.append(f"(assert (or {' '.join(wrong)}))")
    said = ", or ".join(f"{name} = {piece.place}" for piece in pieces)
    claim = f"each {name} below {size} is {said} once"
    return Lemma("positions", claim, "\n".join(lines) + "\n")
