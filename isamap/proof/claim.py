"""A claim of a certificate: what is claimed, who decided it, and how."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from isamap.solver.lemma import Lemma

Decision: TypeAlias = Literal["proved", "refuted", "unknown", "assumed", "noted"]
"""``assumed`` is not proved but relied on; ``noted`` is no claim but a fact to know."""

Method: TypeAlias = Literal["solver", "checker", "data flow", "intervals", "runs", "none"]

CODE = "code"
"""The subject of claims about the lowered kernel."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about ``subject`` (a statement's name, or the lowered kernel), and its decision.

    ``script`` is the SMT-LIB text of its negation where ``method`` is the solver, else empty;
    ``detail`` a counterexample, a reason or a condition.
    """

    subject: str
    name: str
    claim: str
    method: Method
    verdict: Decision
    script: str = ""
    detail: str = ""
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Open:
    """A claim that is still to be put to the solver."""

    subject: str
    lemma: Lemma


Obligation: TypeAlias = Claim | Open
