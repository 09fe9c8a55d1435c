"""A conflict is a smallest set of demands that cannot all be met, by going through all models."""

from collections.abc import Iterable
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from isamap.solver.models import Named, conflict

VARIABLES = 4
LITERALS = st.integers(1, VARIABLES).flatmap(lambda n: st.sampled_from((n, -n)))
NAMES = st.sampled_from((None, "a", "b", "c", "d"))
CLAUSES = st.lists(
    st.builds(Named, NAMES, st.lists(LITERALS, max_size=3).map(tuple)), min_size=1, max_size=9
)


def is_met(clauses: Iterable[Named]) -> bool:
    """Return whether some assignment satisfies all clauses."""
    return any(
        all(any((n > 0) == model[abs(n) - 1] for n in c.literals) for c in clauses)
        for model in product((False, True), repeat=VARIABLES)
    )


@given(CLAUSES)
def test_conflict(clauses: list[Named]) -> None:
    given_ = [c for c in clauses if c.name is None]
    if not is_met(given_):
        return  # What is given contradicts itself: there is nothing to name.
    core = conflict(clauses)
    if core is None:
        assert is_met(clauses)
        return
    assert core
    assert not is_met([c for c in clauses if c.name is None or c.name in core])
    for left in core:
        rest = [c for c in clauses if c.name is None or (c.name in core and c.name != left)]
        assert is_met(rest)
