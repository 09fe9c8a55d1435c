"""Models of propositional constraints, one after the other, found by Z3.

This is the only place that knows Z3; it is imported on first use because that takes 0.1 s.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from isamap.solver.check import check

Clause = Sequence[int]
"""A disjunction: literal ``n + 1`` is variable ``n``, ``-(n + 1)`` its negation."""


def load() -> None:
    """Import Z3 now, so that its 0.1 s are not part of the first question's time."""
    import z3  # noqa: F401


class Unknown(Exception):
    """The solver gave up within its limits."""


@dataclass(frozen=True, slots=True)
class Named:
    """A clause with the demand that it stands for: any value, that of all its clauses."""

    name: Hashable
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
        while (answer := check(self._solver)) == self._z3.sat:
            model = self._solver.model()
            yield frozenset(
                n for n, shown in enumerate(self._shown) if self._z3.is_true(model.eval(shown))
            )
        if answer != self._z3.unsat:
            raise Unknown(self._solver.reason_unknown())


def conflict(clauses: Sequence[Named], milliseconds: int = 10_000) -> tuple[Hashable, ...] | None:
    """Return a smallest set of demands that contradict each other, None if all can be met.

    None of the set can be left out; clauses named None are given and never part of it.  The solver
    proposes a core, which is reduced by trying to do without each of its demands, the last one
    first.  :class:`Unknown` if the solver gives up.
    """
    import z3

    solver: Any = z3.SolverFor("QF_FD")
    solver.set("timeout", milliseconds)
    names = list(dict.fromkeys(c.name for c in clauses if c.name is not None))
    switches = {name: z3.Bool(f"s{n}") for n, name in enumerate(names)}
    for clause in clauses:
        literals = [
            z3.Bool(f"b{abs(n)}") if n > 0 else z3.Not(z3.Bool(f"b{abs(n)}"))
            for n in clause.literals
        ]
        if clause.name is not None:
            literals.append(z3.Not(switches[clause.name]))
        solver.add(z3.Or(literals))

    def is_met(chosen: Sequence[Hashable]) -> bool:
        answer = check(solver, [switches[name] for name in chosen])
        if answer == z3.unknown:
            raise Unknown(solver.reason_unknown())
        return bool(answer == z3.sat)

    if is_met(names):
        return None
    reached = {str(switch) for switch in solver.unsat_core()}
    core = [name for name in names if str(switches[name]) in reached]
    for name in reversed(core):
        rest = [other for other in core if other != name]
        if not is_met(rest):
            core = rest
    return tuple(core)
