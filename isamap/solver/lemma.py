"""Lemmas: claims as SMT-LIB scripts, which Z3 refutes the negation of, or does not.

A script travels as text, so that what was proved can be saved, read and proved again elsewhere.
"""

from dataclasses import dataclass
from typing import Literal

from isamap.solver.check import check


@dataclass(frozen=True, slots=True)
class Lemma:
    """A claim.

    ``name`` says which kind of claim it is, ``claim`` says it in the user's own names, and
    ``script`` is SMT-LIB 2 text (declarations and assertions of the claim's *negation*, no
    commands such as ``check-sat``) that is unsatisfiable exactly if the claim holds.
    """

    name: str
    claim: str
    script: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the solver found: ``refuted`` comes with a counterexample, ``unknown`` with a reason."""

    verdict: Literal["proved", "refuted", "unknown"]
    counterexample: tuple[tuple[str, str], ...] = ()
    reason: str = ""


def prove(lemma: Lemma, milliseconds: int = 5000) -> Verdict:
    """Return whether a lemma holds.

    A solver that gives up, or runs out of its ``milliseconds``, has proved nothing.
    """
    import z3

    solver = z3.Solver()
    solver.set("timeout", milliseconds)
    solver.from_string(lemma.script)
    answer = check(solver)
    if answer == z3.unsat:
        return Verdict("proved")
    if answer != z3.sat:
        return Verdict("unknown", reason=solver.reason_unknown())
    model = solver.model()
    values = sorted((str(d.name()), str(model[d])) for d in model.decls())
    return Verdict("refuted", tuple(values))
