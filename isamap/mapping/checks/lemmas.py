"""The four laws of a placement as lemmas: claims about every tile, without quantifiers.

What is claimed is the laws' meaning as statements about sets, not their linear form, so a proof is
independent of the checker's ranks.  The extents of the tile are symbols; all terms are linear.

The four laws speak of digits (the values of the placed forms), not of positions along an axis: a
position that lies within an axis determines its digits (:func:`mixed_radix`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from isamap.mapping.axes.linear import Vector, in_span
from isamap.mapping.checks.place_lemmas import Shared, agreements, padding
from isamap.mapping.checks.script import (
    Names,
    conjunction,
    digit,
    disjunction,
    linear,
    mark,
    not_all,
    unit,
)
from isamap.mapping.laws.composite import finest_layout, first_layout
from isamap.mapping.laws.functional import Layout, views
from isamap.mapping.laws.laws import Placed
from isamap.mapping.laws.problem import Local
from isamap.solver.lemma import Lemma, Verdict, prove


@dataclass(frozen=True, slots=True)
class Digits:
    """What the laws say of a placement: two placements with equal digits obey the same laws.

    ``seen`` has, for each operand, the combinations of the digits ``forms`` that fix an element of
    it in the instruction; ``rows`` what fixes its element in the kernel.  ``reordered`` are forms
    whose order the kernel forbids to change; without ``owned`` partial results may be spread, and
    law 2 is not claimed.  All vectors over forms' variables have ``size`` entries, those of
    ``seen`` one for each digit.  ``shared`` is there if operands are read at several places.
    """

    size: int
    forms: tuple[Vector, ...]
    seen: tuple[tuple[Vector, ...], ...]
    rows: tuple[tuple[Vector, ...], ...]
    witnesses: tuple[frozenset[int], ...]
    reordered: tuple[Vector, ...]
    owned: bool = True
    shared: Shared | None = None


def digits(local: Local, placed: Placed) -> Digits:
    """Return what the laws say of placements.

    Variables that no placed form uses stand still, so they are left out of the rows; a form on two
    axes that the same operands see is one digit.
    Where operands see sums of axes, what they see are the sums of digits on each level of the
    simplest legal layout (without one, of the layout in which each digit has a level of its own).
    """
    pairs = sorted(placed)
    inner = [any(local.forms[f][v] for f, _ in pairs) for v in range(local.size)]
    rows = tuple(
        tuple(dict.fromkeys(r for row in group if any(r := _restrict(row, inner))))
        for group in local.rows
    )
    reordered = tuple(local.forms[f] for f, axis in pairs if (f, axis) in local.barred)
    if local.seen:
        return laid_digits(local, first_layout(local, placed) or finest_layout(local, placed))
    found: dict[tuple[Vector, tuple[bool, ...]], None] = {}
    for f, axis in pairs:
        found.setdefault((local.forms[f], tuple(axis in sees for sees in local.sees)))
    forms = tuple(form for form, _ in found)
    seen = tuple(
        tuple(unit(n, len(found)) for n, (_, by) in enumerate(found) if by[t])
        for t in range(len(local.sees))
    )
    return Digits(local.size, forms, seen, rows, local.witnesses, reordered, local.owned)


def laid_digits(local: Local, layout: Layout) -> Digits:
    """Return what the laws say of a layout, where operands see sums of axes."""
    inner = [any(local.forms[d.form][v] for d in layout) for v in range(local.size)]
    rows = tuple(
        tuple(dict.fromkeys(r for row in group if any(r := _restrict(row, inner))))
        for group in local.rows
    )
    placed = sorted((d.form, d.axis) for d in layout)
    reordered = tuple(local.forms[f] for f, axis in placed if (f, axis) in local.barred)
    own = views(local, layout)
    sums = tuple(tuple(dict.fromkeys(v for v in view if any(v))) for view in own.seen)
    shared = Shared(local, layout, own.keys) if local.registers else None
    return Digits(
        local.size, own.digits, sums, rows, local.witnesses, reordered, local.owned, shared
    )


def placement_lemmas(local: Local, placed: Placed, names: Names | None = None) -> tuple[Lemma, ...]:
    """Return the lemmas that hold if and only if placements obey the laws at every tile."""
    return laws_of(digits(local, placed), names)


def laws_of(claimed: Digits, names: Names | None = None) -> tuple[Lemma, ...]:
    """Return the laws of these digits, one lemma for each law, operand and witness."""
    writer = _Writer(claimed, names or _numbered(claimed))
    return tuple(
        Lemma(claim.name, claim.text, _script(writer, (claim,))) for claim in writer.claims()
    )


def prove_placement(local: Local, placed: Placed, milliseconds: int = 5000) -> Verdict:
    """Return whether all lemmas of placements hold, by one question that is asked once."""
    return _prove(digits(local, placed), milliseconds)


@lru_cache(maxsize=65_536)
def _prove(claimed: Digits, milliseconds: int) -> Verdict:
    writer = _Writer(claimed, _numbered(claimed))
    claims = writer.claims()
    if not claims:
        return Verdict("proved")
    return prove(Lemma("placement", "all laws", _script(writer, claims)), milliseconds)


def mixed_radix() -> Lemma:
    """Return the lemma that a position on an axis determines its digits.

    The outer digits count as one number, so this one lemma serves any number of digits.
    """
    script = "\n".join(
        [
            "(declare-const radix Int)",
            *(f"(declare-const {name} Int)" for name in ("outer", "inner", "outer2", "inner2")),
            "(assert (and (<= 0 inner) (< inner radix) (<= 0 inner2) (< inner2 radix)))",
            "(assert (= (+ (* outer radix) inner) (+ (* outer2 radix) inner2)))",
            "(assert (not (and (= outer outer2) (= inner inner2))))",
        ]
    )
    return Lemma("digits", "a position on an axis determines the digits placed there", script)


# --- writing ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Claim:
    """``points`` are the iterations of the tile that its negation speaks of; ``free`` says that it
    speaks of any digits, too."""

    name: str
    text: str
    points: tuple[str, ...]
    negation: str
    free: bool = False
    more: tuple[str, ...] = ()
    """Further declarations and assertions."""


@dataclass(frozen=True, slots=True)
class _Writer:
    claimed: Digits
    names: Names

    def claims(self) -> tuple[_Claim, ...]:
        """Return all claims that are not empty, laws in order."""
        claimed, operands = self.claimed, self.names.operands
        one, other = "", "'"  # Two iterations are written w and w'.
        found: list[_Claim] = []
        for t, rows in enumerate(claimed.rows):
            if rows:
                seen = [self._equal(self._combined(g), one, other) for g in claimed.seen[t]]
                same = [self._equal(r, one, other) for r in rows]
                text = f"an element of operand {operands[t]} is one element of the kernel's"
                found.append(
                    _Claim("law 1", text, (one, other), conjunction([*seen, not_all(same)]))
                )
        owned = [self._equal(r, one, other) for r in claimed.rows[0]]
        if claimed.seen[0] and claimed.owned:
            same = [self._equal(self._combined(g), one, other) for g in claimed.seen[0]]
            text = f"an element of the kernel's target is one element of operand {operands[0]}"
            found.append(_Claim("law 2", text, (one, other), conjunction([*owned, not_all(same)])))
        inner = [v for v in range(claimed.size) if any(form[v] for form in claimed.forms)]
        if inner:
            seen = [self._equal(form, one, other) for form in claimed.forms]
            same = [self._equal(unit(v, claimed.size), one, other) for v in inner]
            text = "no two iterations of the tile are one iteration of the instruction"
            found.append(_Claim("law 3", text, (one, other), conjunction([*seen, not_all(same)])))
        if claimed.forms:
            found += [self._padding(witness, inner) for witness in claimed.witnesses]
        if claimed.shared is not None:
            for text, negation, more in agreements(claimed.shared, self.names):
                found.append(_Claim("law 5", text, (one, other), negation, more=more))
        for form in claimed.reordered:
            same = [self._equal(form, one, other)]
            text = f"the order of {linear(form, self.names.variables)} is that of the target"
            found.append(_Claim("order", text, (one, other), conjunction([*owned, not_all(same)])))
        return tuple(found)

    def _padding(self, witness: frozenset[int], inner: Sequence[int]) -> _Claim:
        """Return law 4 for one witness.

        An iteration of the instruction, any digits at all, agrees on what each operand of the
        witness sees with an iteration of the tile, another one for each.  The iteration put
        together from these, each variable as an operand has it that determines the variable, is in
        the tile because each of them is; the claim is that its digits are the given ones.
        """
        claimed, operands = self.claimed, self.names.operands
        strays = padding(claimed.shared, witness, self.names) if claimed.shared else None
        order = sorted(strays.firm if strays else witness)
        agree = [
            f"(= {self._digits(g)} {self._at(self._combined(g), mark(operands[t]))})"
            for t in order
            for g in (() if strays and t in strays.places else claimed.seen[t])
        ]
        own = dict.fromkeys(range(claimed.size), "0")
        ranges: list[str] = []
        for v in inner:
            t = self._determining(order, v)
            own[v] = f"|{self.names.variables[v]}{mark(operands[t])}|"
            if strays and t in strays.places:
                own[v] = strays.variable(v, t)
                extent = f"|extent of {self.names.variables[v]}|"
                ranges.append(f"(and (<= 0 {own[v]}) (< {own[v]} {extent}))")
        same = [
            f"(= |{digit(n)}| {linear(form, [own[v] for v in range(claimed.size)])})"
            for n, form in enumerate(claimed.forms)
        ]
        same += ranges
        agree += strays.agree if strays else ()
        more = strays.more if strays else ()
        told = ", ".join(operands[t] for t in sorted(witness))
        text = f"padding that writes a live element meets an unused one among {told}"
        if len(witness) == 1:
            text = f"padding writes no live element of {told}"
        points = (*(mark(operands[t]) for t in order), *(strays.points if strays else ()))
        negation = conjunction([*agree, not_all(same)])
        return _Claim("law 4", text, points, negation, free=True, more=more)

    def _determining(self, witness: Sequence[int], v: int) -> int:
        """Return an operand of the witness that determines a variable; any one if none does."""
        wanted = unit(v, self.claimed.size)
        for t in witness:
            if in_span(map(self._combined, self.claimed.seen[t]), wanted):
                return t
        return witness[0]

    def _combined(self, functional: Vector) -> Vector:
        """Return a combination of the digits as a form over the variables."""
        total = [0] * self.claimed.size
        for factor, form in zip(functional, self.claimed.forms, strict=True):
            total = [a + factor * b for a, b in zip(total, form, strict=True)]
        return tuple(total)

    def _equal(self, form: Vector, one: str, other: str) -> str:
        return f"(= {self._at(form, one)} {self._at(form, other)})"

    def _at(self, form: Vector, point: str) -> str:
        return linear(form, [f"|{name}{point}|" for name in self.names.variables])

    def _digits(self, functional: Vector) -> str:
        return linear(functional, [f"|{digit(n)}|" for n in range(len(functional))])


def _script(writer: _Writer, claims: Sequence[_Claim]) -> str:
    """Return the negation of all claims together: one of them does not hold at some tile."""
    variables = writer.names.variables
    lines = [f"(declare-const |extent of {name}| Int)" for name in variables]
    for point in dict.fromkeys(point for claim in claims for point in claim.points):
        for name in variables:
            here = f"|{name}{point}|"
            lines += [f"(declare-const {here} Int)"]
            lines += [f"(assert (and (<= 0 {here}) (< {here} |extent of {name}|)))"]
    if any(claim.free for claim in claims):
        count = len(writer.claimed.forms)
        lines += [f"(declare-const |{digit(n)}| Int)" for n in range(count)]
    lines += dict.fromkeys(line for claim in claims for line in claim.more)
    negations = [claim.negation for claim in claims]
    lines.append(f"(assert {negations[0] if len(negations) == 1 else disjunction(negations)})")
    return "\n".join(lines)


def _numbered(claimed: Digits) -> Names:
    return Names(
        tuple(f"x{v}" for v in range(claimed.size)),
        tuple(f"t{t}" for t in range(len(claimed.rows))),
    )


def _restrict(vector: Vector, inner: Sequence[bool]) -> Vector:
    return tuple(c if keep else 0 for c, keep in zip(vector, inner, strict=True))
