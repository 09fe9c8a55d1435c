"""The rule that gives the digits of a variable variables of their own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from itertools import product as combinations
from math import gcd, prod

from isamap.ir.index import Div, Index, Mod, Name, const, total, var
from isamap.ir.nodes import Access, Kernel
from isamap.ir.smt import term
from isamap.ir.statements import read_indices, substitute_expr
from isamap.rewrite.build import Draft, extents, fresh, replaced
from isamap.rewrite.laws import laws, may_reorder
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.simple import Simple, least_alike
from isamap.solver.lemma import Lemma

NAME = "split-variables"

FEW = 4
"""Pieces of a variable, at most."""

MOST = 9
"""Pieces of all variables together, at most, each of which is a statement."""


def split_variables(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement without the quotients and remainders of variables by constants.

    ``C[i] = A[i // 16] * B[i % 16]`` over 40 values of i becomes

        C[16*i_1 + i_2] = A[i_1] * B[i_2]
        C[i_from_32 + 32] = A[2] * B[i_from_32]

    because instructions have axes for variables alone.  Where a quotient seldom changes there are
    statements before and after that: ``Y[i] = X[(i + 1) % 40]`` becomes

        Y[i_from_0] = X[i_from_0 + 1]
        Y[39] = X[0]

    Digits and pieces of what is reduced come in another order: reductions need that permitted.
    """
    statement = kernel.statements[number]
    reduces = statement.reduction != "="
    if reduces and not may_reorder(kernel, statement):
        return
    sizes = {v: e.constant for v, e in extents(statement).items()}
    indices = [i for part in (statement.target, statement.value) for i in read_indices(part)]
    if None in sizes.values() or any(index.reads for index in indices):
        return
    known = {v: size for v, size in sizes.items() if size is not None}
    pieces: dict[str, tuple[_Piece, ...]] = {}
    for name, size in known.items():
        taken = [v for own in pieces.values() for piece in own for v in piece.sizes]
        if cuts := _cuts(indices, name, size):
            pieces[name] = _digits(kernel, name, size, cuts, taken)
        elif turns := _turns(indices, name, known):
            ends = (*turns, size)
            pieces[name] = tuple(
                _between(kernel, name, start, end, taken) for start, end in pairwise((0, *ends))
            )
    if not pieces or prod(map(len, pieces.values())) > MOST:
        return
    drafts: list[Draft] = []
    lemmas = [_once(name, known[name], own) for name, own in pieces.items()]
    lemmas += laws(kernel, statement) if reduces else ()
    for chosen in combinations(*pieces.values()):
        ranges = {v: size for v, size in known.items() if v not in pieces}
        for piece in chosen:
            ranges |= piece.sizes
        places = {name: piece.place for name, piece in zip(pieces, chosen, strict=True)}
        simple = Simple({v: (0, size - 1) for v, size in ranges.items()})
        target = simple.expr(substitute_expr(statement.target, places))
        value = simple.expr(substitute_expr(statement.value, places))
        used = [i for part in (target, value) for i in read_indices(part)]
        if frozenset(ranges) - frozenset().union(*(index.names for index in used)):
            return  # an iteration that leaves no trace cannot be written
        assert isinstance(target, Access)
        # A position that is one number is a literal in the value, and no index any more.
        sides = [(old, simple.index(old.substitute(places))) for old in indices]
        lemmas.append(_same([(a, b) for a, b in sides if a != b], places, ranges))
        drafts.append(
            Draft(target, statement.reduction, value, {v: const(n) for v, n in ranges.items()})
        )
    said = " and ".join(
        f"{name} = {' or '.join(str(piece.place) for piece in own)}" for name, own in pieces.items()
    )
    note = f"{said}: indices need no quotients and remainders of {' and '.join(pieces)}"
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
    for value, divisor in _divided(index):
        for weight, factor in _parts(value, name):
            yield weight * (divisor // gcd(divisor, factor))


def _turns(indices: Iterable[Index], name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return where quotients become others along a variable; nothing where that is often.

    Where others are added to the variable, that is a stretch of its values, of which both ends are
    returned: inside, the quotient depends on the others.  Stretches of half of all values and more
    are not worth it.
    """
    others = {v: (0, size - 1) for v, size in sizes.items() if v != name}
    found: set[int] = set()
    for value, divisor in (pair for index in indices for pair in _divided(index)):
        least = least_alike(value, divisor)
        factor = least.coefficient(name).constant
        rest = (least - var(name) * (factor or 0)).bounds(others)
        if not factor or rest is None:
            continue
        steps = factor * (sizes[name] - 1)
        low, high = rest[0] + min(steps, 0), rest[1] + max(steps, 0)
        quotients = range(low // divisor + 1, high // divisor + 1)[:FEW]
        turns = [
            sorted(_first(quotient * divisor - end, factor) for end in rest)
            for quotient in quotients
        ]
        ends = ((max(0, before), min(sizes[name], after)) for before, after in turns)
        if 2 * sum(max(0, after - before) for before, after in ends) <= sizes[name]:
            found.update(turn for pair in turns for turn in pair)
    inside = sorted(turn for turn in found if 0 < turn < sizes[name])
    return tuple(inside) if len(inside) < FEW else ()


def _first(distance: int, factor: int) -> int:
    """Return the first value whose product with ``factor`` is on the other side of a distance."""
    return -(-distance // factor) if factor > 0 else distance // factor + 1


def _divided(index: Index) -> Iterator[tuple[Index, int]]:
    """Yield what is divided in an index, with the divisors."""
    for atom in index.atoms:
        if isinstance(atom, Div | Mod):
            yield from _divided(atom.value)
            yield atom.value, atom.divisor


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


def _digits(
    kernel: Kernel, name: str, size: int, cuts: tuple[int, ...], taken: Iterable[str]
) -> tuple[_Piece, ...]:
    """Return the whole multiples of the greatest divisor by digits, and what is left over."""
    weights = (*reversed(cuts), 1)
    names = [fresh(kernel, f"{name}_{n}", taken) for n in range(1, len(weights) + 1)]
    whole = size - size % cuts[-1]
    counts = (whole // cuts[-1], *(high // low for high, low in pairwise(weights)))
    place = total(var(n) * weight for n, weight in zip(names, weights, strict=True))
    digits = _Piece(place, dict(zip(names, counts, strict=True)))
    return (digits,) if whole == size else (digits, _between(kernel, name, whole, size, taken))


def _between(kernel: Kernel, name: str, start: int, end: int, taken: Iterable[str]) -> _Piece:
    """Return the values from ``start`` up to ``end``, which is none of them."""
    if end == start + 1:
        return _Piece(const(start), {})
    own = fresh(kernel, f"{name}_from_{start}", taken)
    return _Piece(var(own) + start, {own: end - start})


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
        wrong.append(f"(and {here} {there} (or false {apart}))")
        wrong.append(f"(and {here} (not {among}))")
        wrong += [f"(and {here} {other.holds(name)})" for other in pieces[:number]]
        found.append(piece.reached(name))
    wrong.append(f"(and {among} (not (or {' '.join(found)})))")
    lines.append(f"(assert (or {' '.join(wrong)}))")
    said = ", or ".join(f"{name} = {piece.place}" for piece in pieces)
    claim = f"each {name} below {size} is {said} once"
    return Lemma("positions", claim, "\n".join(lines) + "\n")
