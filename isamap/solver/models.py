"""Models of propositional constraints, one after the other, found by Z3.

This is the only place that knows Z3; it is imported on first use because that takes 0.1 s.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Clause = Sequence[int]
"""A disjunction: literal ``n + 1`` is variable ``n``, ``-(n + 1)`` its negation."""


def load() -> None:
    """Import Z3 now, so that its 0.1 s are not part of the first question's time."""
    import z3  # noqa: F401


class Unknown(Exception):
    """The solver gave up within its limits."""


@dataclass(frozen=True, slots=True)
class Named:
    """A clause with the name of the demand that it stands for."""

    name: str
    literals: tuple[int, ...]


class Models:
    """The models of clauses over boolean variables, seen through the first ``count`` of them.

    Iterating yields each model as the set of those that are true.  Between two models the caller
    must exclude the last one, and whatever else it likes, with :meth:`add`.
    """

    def __init__(self, count: int, clauses: Iterable[Named], milliseconds: int = 10_000) -> None:
        import z3

        self._z3: Any = z3
        self._solver: Any = z3.SolverFor("QF_FD")
        self._solver.set("timeout", milliseconds)
        self._literals: dict[int, Any] = {}
        self._shown = [self._literal(n + 1) for n in range(count)]
        for clause in clauses:
            self.add(clause.literals)

    def add(self, clause: Clause) -> None:
        """Demand a clause of all further models."""
        self._solver.add(self._z3.Or([self._literal(n) for n in clause]))

    def _literal(self, literal: int) -> Any:
        if (found := self._literals.get(literal)) is None:
            variable = self._z3.Bool(f"b{abs(literal)}")
            found = variable if literal > 0 else self._z3.Not(variable)
            self._literals[literal] = found
        return found

    def __iter__(self) -> Iterator[frozenset[int]]:
        """Yield models until there are no more; :class:`Unknown` if the solver gives up."""
        while (answer := self._solver.check()) == self._z3.sat:
            model = self._solver.model()
            yield frozenset(
                n for n, shown in enumerate(self._shown) if self._z3.is_true(model.eval(shown))
            )
        if answer != self._z3.unsat:
            raise Unknown(self._solver.reason_unknown())
