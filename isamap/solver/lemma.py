"""Lemmas: claims as SMT-LIB scripts, which Z3 refutes the negation of, or does not.

A script travels as text, so that what was proved can be saved, read and proved again elsewhere.
"""

from dataclasses import dataclass
from typing import Literal

from isamap.solver.check import check

_SHARES = (1, 2, 3, 4)  # of the time a lemma has: how long each beginning may take


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

    A solver that gives up, or runs out of its ``milliseconds``, has proved nothing.  Products of
    variables are proved at once or not at all, by luck: three of a hundred seeds find no end
    where the others take a tenth of a second.  So the solver begins again from another seed, each
    time with more of the ``milliseconds``.
    """
    import z3

    reason = ""
    for seed, share in enumerate(_SHARES):
        solver = z3.Solver()
        solver.set("timeout", max(1, milliseconds * share // sum(_SHARES)))
        solver.set("random_seed", seed)
        solver.from_string(lemma.script)
        answer = check(solver)
        if answer == z3.unsat:
            return Verdict("proved")
        if answer == z3.sat:
            model = solver.model()
            values = sorted((str(d.name()), str(model[d])) for d in model.decls())
            return Verdict("refuted", tuple(values))
        reason = solver.reason_unknown()
    return Verdict("unknown", reason=reason)
