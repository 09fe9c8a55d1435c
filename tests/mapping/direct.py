"""An enumerator without a solver: every subset of a component's (form, axis) pairs, by ranks.

It shares nothing with the one under test but the statement and the instruction.  It knows products
under ``+=`` and plain accesses, where the constant 0 in any operand silences the body.  Variables
that share no index expression are independent.
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, combinations, product

from isamap.ir.index import Index
from isamap.ir.nodes import Statement
from isamap.ir.statements import read_indices
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import Bindings, operand_accesses

Form = tuple[tuple[str, int], ...]
"""Variables and coefficients, by name."""

Choice = frozenset[tuple[Form, str]]
"""Forms with their axes."""


def local_choices(
    statement: Statement, needle: Needle, operands: Bindings, family: str
) -> list[set[Choice]]:
    """Return for each component all legal placements in a family, the empty one included."""
    kernel = [statement.target.indices, *(read_indices(expr) for _, expr in operands)]
    read = operand_accesses(needle)
    sees = [needle.target.indices, *(read[name].indices for name, _ in operands)]
    seen = [{name for index in indices for name in index.names} for indices in sees]
    lengths = {v.name: v.extent.constant for v in statement.variables}
    long = [name for name, length in lengths.items() if length != 1]
    rows = [[r for i in indices if (r := _form(i, long))] for indices in kernel]
    result = []
    for variables in _components(rows, long):
        own = [[r for r in group if r[0][0] in variables] for group in rows]
        forms: set[Form] = {((v, 1),) for group in own for r in group for v, _ in r}
        if family == "embedded":
            forms |= {_reduced(r) for group in own for r in group if len(r) > 1}
        axes = [axis.name for axis in needle.axes]
        pairs = sorted(product(forms, axes))
        subsets = chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1))
        result.append(
            {
                frozenset(chosen)
                for chosen in subsets
                if _in_family(chosen, own, seen, family) and _legal(chosen, own, seen, family)
            }
        )
    return result


def maximal(legal: set[Choice]) -> set[Choice]:
    """Return the irredundant maximal placements of a component."""
    least = {p for p in legal if not any(q < p and _inner(q) == _inner(p) for q in legal)}
    return {
        p
        for p in least
        if not any(p < q and not any(_inner([x]) & _inner(p) for x in q - p) for q in least)
    }


def _form(index: Index, long: list[str]) -> Form:
    coefficients = {name: index.coefficient(name).constant for name in sorted(index.names)}
    return tuple((n, c) for n, c in coefficients.items() if n in long and c)


def _reduced(row: Form) -> Form:
    # Rows of the operators have no common factors; only signs differ.
    sign = 1 if row[0][1] > 0 else -1
    return tuple((name, sign * c) for name, c in row)


def _components(rows: list[list[Form]], long: list[str]) -> list[frozenset[str]]:
    groups = [frozenset({name}) for name in long]
    for row in chain.from_iterable(rows):
        names = {name for name, _ in row}
        touched = [g for g in groups if g & names]
        groups = [g for g in groups if not g & names] + [frozenset().union(*touched)]
    used = {name for row in chain.from_iterable(rows) for name, _ in row}
    return [g for g in groups if g <= used]


def _in_family(
    chosen: tuple[tuple[Form, str], ...],
    rows: list[list[Form]],
    seen: list[set[str]],
    family: str,
) -> bool:
    if family in ("embedded", "diagonal", "split"):
        return True
    forms = [form for form, _ in chosen]
    if len(set(forms)) < len(forms):
        return False
    if family == "broadcast":
        return True
    return all(
        (axis in sees) == any(form[0][0] in dict(row) for row in group)
        for form, axis in chosen
        for group, sees in zip(rows, seen, strict=True)
    )


def _legal(
    chosen: tuple[tuple[Form, str], ...],
    rows: list[list[Form]],
    seen: list[set[str]],
    family: str,
) -> bool:
    inner = sorted(_inner(chosen))
    vectors = [_vector(form, inner) for form, _ in chosen]
    digits = [
        [n for n, (_, axis) in enumerate(chosen) if axis in sees] for sees in seen
    ]  # which each operand sees
    for group, mine in zip(rows, digits, strict=True):
        spanned = [vectors[n] for n in mine]
        if any(not _spans(spanned, _vector(row, inner)) for row in group):
            return False
    outputs = [_vector(row, inner) for row in rows[0]]
    if family != "split" and any(not _spans(outputs, vectors[n]) for n in digits[0]):
        return False
    # Operands that see nothing but what the target sees have no unused element that matters.
    witness = [t for t in range(len(seen)) if t == 0 or not seen[t] <= seen[0]]
    for v in range(len(inner)):
        unit = [Fraction(int(u == v)) for u in range(len(inner))]
        if not any(_spans([vectors[n] for n in digits[t]], unit) for t in witness):
            return False
    # Dependencies among all digits, and those among the digits of one operand.
    generated = []
    for t in witness:
        for dependency in _kernel([vectors[n] for n in digits[t]]):
            wide = [Fraction(0)] * len(chosen)
            for n, c in zip(digits[t], dependency, strict=True):
                wide[n] = c
            generated.append(wide)
    return _rank(generated) == len(chosen) - _rank(vectors)


def _inner(chosen: Iterable[tuple[Form, str]]) -> frozenset[str]:
    return frozenset(v for form, _ in chosen for v, _ in form)


def _vector(row: Form, inner: list[str]) -> list[Fraction]:
    return [Fraction(dict(row).get(name, 0)) for name in inner]


def _reduce(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the reduced row echelon form, without rows of zeros."""
    left, done = [list(row) for row in rows], list[list[Fraction]]()
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        pivot = [x / pivot[column] for x in pivot]
        for group in (left, done):
            for row in group:
                factor = row[column]
                row[:] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
        done.append(pivot)
    return done


def _rank(rows: list[list[Fraction]]) -> int:
    return len(_reduce(rows))


def _spans(rows: list[list[Fraction]], row: list[Fraction]) -> bool:
    return _rank([*rows, row]) == _rank(rows)


def _kernel(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return a basis of the combinations of ``rows`` that vanish."""
    if not rows:
        return []
    width = len(rows[0])
    tagged = [
        [*row, *(Fraction(int(n == m)) for m in range(len(rows)))] for n, row in enumerate(rows)
    ]
    return [row[width:] for row in _reduce(tagged) if not any(row[:width])]
