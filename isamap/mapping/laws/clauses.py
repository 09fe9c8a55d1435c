"""The laws as clauses over "this form is on this axis", for one set of inner variables."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from isamap.mapping.axes.linear import Vector, in_span
from isamap.mapping.laws.laws import Breach
from isamap.mapping.laws.problem import Local
from isamap.solver.models import Named


def literal(local: Local, form: int, axis: int) -> int:
    """Return the solver's literal for a form on an axis."""
    return form * local.axes + axis + 1


def demands(local: Local, inner: tuple[int, ...]) -> tuple[Named, ...] | None:
    """Return the clauses that placements with exactly these inner variables must satisfy.

    They are laws 1, 2 and 4a; the dependencies of law 4b are left to the checker.  None if no
    placement satisfies them.  Auxiliary variables follow the placements' own.  Each clause is named
    by the breach that it rules out; those that only say which variables are inner by None.
    """
    found = []
    for clause in named_demands(local, inner):
        if not clause.literals:
            return None
        found.append(clause)
    return tuple(found) or None


def named_demands(local: Local, inner: tuple[int, ...]) -> Iterator[Named]:
    """Yield the clauses of :func:`demands`; one that nothing can satisfy has no literals."""
    chosen = set(inner)
    forms = [
        f
        for f, form in enumerate(local.forms)
        if {v for v, c in enumerate(form) if c} <= chosen
        and any((f, axis) not in local.outside for axis in range(local.axes))
    ]
    if forms:
        yield from _all(local, inner, forms)


def _all(local: Local, inner: tuple[int, ...], forms: Sequence[int]) -> Iterator[Named]:
    vectors = tuple(_restrict(local.forms[f], inner) for f in forms)
    rows = [{_restrict(r, inner) for r in group} for group in local.rows]
    yield from _fixed(local, forms, vectors, rows[0])
    for v in inner:
        here = [f for f in forms if local.forms[f][v]]
        yield Named(None, _on(local, here, range(local.axes)))
    for t, group in enumerate(rows):
        for target in sorted(group):
            for missing in _outside(vectors, target):
                beyond = [forms[m] for m in missing]
                breach = Breach(1, t, _widened(target, inner, local.size))
                yield Named(breach, _on(local, beyond, local.sees[t]))
    for register in local.registers:
        # Places without constants meet where all digits are 0, whatever is placed.
        for one, other in combinations(register.places, 2):
            for v in () if any(one.offset(other)) else register.differing(one, other) - {*inner}:
                unit = tuple(int(u == v) for u in range(local.size))
                yield Named(Breach(7, other.operand, unit), ())
    auxiliary = len(local.forms) * local.axes
    for witness in local.witnesses:
        for n in range(len(inner)):
            unit = tuple(int(m == n) for m in range(len(inner)))
            breach = Breach(4, min(witness), _widened(unit, inner, local.size))
            choices = []
            for t in sorted(witness):
                auxiliary += 1
                choices.append(auxiliary)
                for missing in _outside(vectors, unit):
                    seen = _on(local, [forms[m] for m in missing], local.sees[t])
                    yield Named(breach, (-auxiliary, *seen))
            yield Named(breach, tuple(choices))


def _fixed(
    local: Local, forms: Sequence[int], vectors: Sequence[Vector], outputs: set[Vector]
) -> Iterator[Named]:
    """Rule out what no placement may hold: other variables, unowned outputs, what is barred."""
    for f in range(len(local.forms)):
        for axis in range(local.axes):
            if f not in forms:
                yield Named(None, (-literal(local, f, axis),))
            elif (f, axis) in local.barred:
                yield Named(Breach(0, 0, local.forms[f]), (-literal(local, f, axis),))
            elif (f, axis) in local.outside:
                yield Named(Breach(6, 0, local.forms[f]), (-literal(local, f, axis),))
            elif (
                local.owned
                and axis in local.owning
                and not in_span(outputs, vectors[forms.index(f)])
            ):
                yield Named(Breach(2, 0, local.forms[f]), (-literal(local, f, axis),))
        if local.once and f in forms:
            for one, other in combinations(range(local.axes), 2):
                pair = (-literal(local, f, one), -literal(local, f, other))
                yield Named(Breach(6, 0, local.forms[f]), pair)


def _on(local: Local, forms: Sequence[int], axes: range | frozenset[int]) -> tuple[int, ...]:
    return tuple(literal(local, f, axis) for f in forms for axis in sorted(axes))


def _restrict(vector: Vector, inner: tuple[int, ...]) -> Vector:
    return tuple(vector[v] for v in inner)


def _widened(vector: Vector, inner: tuple[int, ...], size: int) -> Vector:
    wide = [0] * size
    for v, c in zip(inner, vector, strict=True):
        wide[v] = c
    return tuple(wide)


@lru_cache(maxsize=100_000)
def _outside(vectors: tuple[Vector, ...], target: Vector) -> tuple[tuple[int, ...], ...]:
    """Return the complements of the largest sets of ``vectors`` whose span misses ``target``.

    A set spans ``target`` exactly if it meets each of them.
    """
    if not any(target):
        return ()
    found: list[set[int]] = []
    for size in range(len(vectors), -1, -1):
        for subset in map(set, combinations(range(len(vectors)), size)):
            if any(subset <= larger for larger in found):
                continue
            if not in_span([vectors[n] for n in subset], target):
                found.append(subset)
    everything = set(range(len(vectors)))
    return tuple(tuple(sorted(everything - subset)) for subset in found)
