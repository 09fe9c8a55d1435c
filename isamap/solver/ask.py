"""Questions about integers in SMT-LIB, answered by Z3: yes with a model, no, or unknown.

Z3 is imported on first use because that takes 0.1 s.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isamap.solver.check import check

if TYPE_CHECKING:
    import z3


@dataclass(frozen=True, slots=True)
class Answer:
    """``sat`` with the values of the names asked for, ``unsat``, or ``unknown`` with the reason."""

    verdict: Literal["sat", "unsat", "unknown"]
    values: dict[str, int]
    reason: str = ""


def ask(
    names: Iterable[str],
    assertions: Iterable[str],
    milliseconds: int = 5000,
    steps: int | None = None,
) -> Answer:
    """Return whether integers ``names`` exist for which all assertions hold.

    Assertions are SMT-LIB terms of sort Bool; a name stands in them as ``|name|``.  The solver is
    stopped after ``milliseconds``, or instead after so many ``steps`` of its own, which are the
    same on every machine.
    """
    import z3

    declared = tuple(names)
    lines = [f"(declare-const |{name}| Int)" for name in declared]
    lines += [f"(assert {assertion})" for assertion in assertions]
    solver = z3.Solver()
    if steps is None:
        solver.set("timeout", milliseconds)
    else:
        solver.set("rlimit", steps)
    if (none := _without_model(solver, lines)) is not None:
        return none
    model = solver.model()
    values = {name: model.eval(z3.Int(name), model_completion=True) for name in declared}
    return Answer("sat", {name: value.as_long() for name, value in values.items()})


def ask_choices(names: Iterable[str], assertions: Iterable[str], steps: int) -> Answer:
    """Return whether truth values ``names`` exist for which all assertions hold: 1 is true.

    Assertions are SMT-LIB terms of sort Bool as in :func:`ask`, sums of truth values among them
    (``(_ at-most 1)``, ``(_ pble 7 2 5)``).  Where choices are few and sums many, this decides
    in a hundredth of the time that whole numbers take.
    """
    import z3

    declared = tuple(names)
    lines = [f"(declare-const |{name}| Bool)" for name in declared]
    lines += [f"(assert {assertion})" for assertion in assertions]
    solver = z3.SolverFor("QF_FD")
    solver.set("rlimit", steps)
    if (none := _without_model(solver, lines)) is not None:
        return none
    model = solver.model()
    true = {name: z3.is_true(model.eval(z3.Bool(name), model_completion=True)) for name in declared}
    return Answer("sat", {name: int(value) for name, value in true.items()})


def _without_model(solver: "z3.Solver", lines: Iterable[str]) -> Answer | None:
    """Return the answer where a script has no model, None where the solver has one of it."""
    import z3

    solver.from_string("\n".join(lines))
    verdict = check(solver)
    if verdict == z3.sat:
        return None
    if verdict == z3.unsat:
        return Answer("unsat", {})
    return Answer("unknown", {}, solver.reason_unknown())
