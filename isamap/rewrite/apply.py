"""Applying rules: what the solver does not prove is not offered."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from isamap.ir.nodes import Kernel, Statement
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.rules import RULES, rules_for
from isamap.solver.lemma import Lemma, Verdict, prove

_NAME = re.compile(r"\|[^|]*\|")
"""A quoted symbol of SMT-LIB."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A rewriting with a lemma that does not hold, or that the solver left open."""

    rewriting: Rewriting
    lemma: Lemma
    verdict: Verdict

    @property
    def text(self) -> str:
        """The refusal in one line."""
        why = self.verdict.reason or self.verdict.verdict
        return f"{self.rewriting.rule}: '{self.lemma.claim}' is not proved ({why})"


@dataclass(frozen=True, slots=True)
class Rewritings:
    """The rewritings of one statement: those that are proved, and those that are refused."""

    proved: tuple[Rewriting, ...]
    refused: tuple[Refused, ...]


def rewritings(
    kernel: Kernel, statement: int, rules: Iterable[tuple[str, Rule]] = RULES
) -> Rewritings:
    """Return every way to rewrite one statement by one rule.

    Only rewritings whose lemmas are all proved are ``proved``; the kernels of these are as
    :func:`~isamap.rewrite.build.normal` makes them.
    """
    own = normal(kernel)
    candidates = (rewriting for _, rule in rules for rewriting in rule(own, statement))
    return judge(candidates)


def again(
    kernel: Kernel,
    bodies: Sequence[Statement],
    steps: Sequence[tuple[str, int]],
    same: Callable[[int, Rewriting], bool],
) -> tuple[Rewriting, ...]:
    """Apply rules again, one after the other, each by its name to a statement by its number.

    ``bodies`` are the machine's statements; ``same`` says which of the rewritings of a step is
    taken.  What is returned ends before the first step without one.
    """
    found: list[Rewriting] = []
    current = normal(kernel)
    for n, (name, statement) in enumerate(steps):
        if statement >= len(current.statements):
            break
        given = (r for _, rule in rules_for(bodies, (name,)) for r in rule(current, statement))
        chosen = next((r for r in given if same(n, r)), None)
        if chosen is None:
            break
        found.append(chosen)
        current = normal(chosen.kernel)
    return tuple(found)


def told(
    kernel: Kernel, rewritings: Sequence[Rewriting]
) -> tuple[tuple[Statement, Rewriting], ...]:
    """Return rewritings in their order, each with the statement to which it was applied."""
    before = [normal(kernel), *(rewriting.kernel for rewriting in rewritings)]
    return tuple(
        (own.statements[rewriting.statement], rewriting)
        for own, rewriting in zip(before, rewritings, strict=False)
    )


def judge(candidates: Iterable[Rewriting]) -> Rewritings:
    """Put the lemmas of rewritings to the solver."""
    proved: list[Rewriting] = []
    refused: list[Refused] = []
    for rewriting in candidates:
        verdicts = ((lemma, prove_once(lemma)) for lemma in rewriting.lemmas)
        failed = next(((le, v) for le, v in verdicts if v.verdict != "proved"), None)
        if failed is None:
            proved.append(rewriting)
        else:
            refused.append(Refused(rewriting, *failed))
    return Rewritings(tuple(proved), tuple(refused))


def prove_once(lemma: Lemma) -> Verdict:
    """Return the solver's verdict, which is asked for once in a process.

    Lemmas that differ in the names of what they are about are one.
    """
    names = tuple(dict.fromkeys(_NAME.findall(lemma.script)))
    plain = {name: f"|{number}|" for number, name in enumerate(names)}
    found = _prove_script(_NAME.sub(lambda m: plain[m[0]], lemma.script))
    back = {str(number): name.strip("|") for number, name in enumerate(names)}
    values = sorted((back.get(name, name), text) for name, text in found.counterexample)
    return replace(found, counterexample=tuple(values))


@lru_cache(maxsize=1024)
def _prove_script(script: str) -> Verdict:
    return prove(Lemma("", "", script))
