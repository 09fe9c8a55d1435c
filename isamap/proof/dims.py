"""A flat address as an index in each dimension of its array, where products make it hard to judge.

If every index is within its extent, two addresses are equal only if all their indices are: that is
the lemma about digits (:func:`isamap.mapping.checks.lemmas.mixed_radix`), and turns claims about
products of symbols into linear ones.
"""

from collections.abc import Sequence

from isamap.ir.index import Atom, Index, const, row_major


def is_product(index: Index) -> bool:
    """Return whether an expression multiplies names."""
    return any(len(monomial) > 1 for monomial, _ in index.terms)


def dimensions(address: Index, shape: Sequence[Index]) -> tuple[Index, ...] | None:
    """Return an index for each dimension of a row-major array, or None if it cannot be told.

    The indices times the pitches are the address; whether each is within its extent is another
    question.
    """
    pitches = row_major(shape)
    parts = [const(0)] * len(pitches)
    if any(len(pitch.terms) != 1 for pitch in pitches):
        return None
    for monomial, factor in address.terms:
        for n, pitch in enumerate(pitches):
            ((own, weight),) = pitch.terms
            rest = _without(monomial, own)
            if rest is not None and factor % weight == 0:
                parts[n] = parts[n] + Index(((rest, factor // weight),))
                break
        else:
            return None
    return tuple(parts)


def _without(monomial: Sequence[Atom], own: Sequence[Atom]) -> tuple[Atom, ...] | None:
    rest = list(monomial)
    for atom in own:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
