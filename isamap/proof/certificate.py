"""A certificate: the claims about a mapped kernel with their proofs, and how both were run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter, process_time

from isamap.ir.nodes import Kernel
from isamap.proof.claim import Claim, Decision, Obligation, Open
from isamap.proof.evidence import Evidence, obligations
from isamap.proof.field import (
    CALLS,
    ITERATIONS,
    FieldCheck,
    Rewritten,
    field_check,
    has_all_laws,
    no_time_left,
    same_in_field,
)
from isamap.proof.reduced import reduced
from isamap.proof.sizes import MOST
from isamap.proof.timed import OutOfTimeError
from isamap.solver.lemma import Lemma, Verdict, prove

MILLISECONDS = 5000
"""What the solver may take for one lemma unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is claimed of the evidence, and what became of each claim."""

    evidence: Evidence
    claims: tuple[Claim, ...]
    field: FieldCheck

    def count(self, verdict: Decision) -> int:
        """Return how many claims have this verdict; parts of one claim count once."""
        return sum(claim.verdict == verdict for claim in merged(self.claims))

    @property
    def verdict(self) -> Decision:
        """``refuted`` if anything is, ``unknown`` if anything is left open, else ``proved``."""
        verdicts = {claim.verdict for claim in self.claims}
        if "refuted" in verdicts or self.field.verdict == "differs":
            return "refuted"
        if "unknown" in verdicts or self.field.verdict == "not run":
            return "unknown"
        return "proved"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long proofs may take.

    ``milliseconds`` for one lemma and ``seconds`` of this process for all, as many again for the
    field check (None: without limit); ``calls`` and ``iterations`` bound each run of that, made at
    up to ``sizes`` of the symbols; with ``smaller`` it is made at smaller sizes where it would take
    longer.
    """

    milliseconds: int = MILLISECONDS
    seconds: float | None = None
    calls: int = CALLS
    iterations: int = ITERATIONS
    sizes: int = MOST
    smaller: bool = True


def certify(evidence: Evidence, limits: Limits | None = None) -> Certificate:
    """Return the certificate of a mapped kernel.

    Nothing is raised for what does not hold: it is ``refuted``, or ``unknown`` with the reason.
    """
    limits = limits or Limits()
    claims = decide(obligations(evidence), limits)
    return Certificate(evidence, claims, run_field(evidence, limits))


def run_field(evidence: Evidence, limits: Limits, seeds: Sequence[int] = (0, 1)) -> FieldCheck:
    """Run kernel and code modulo a prime; at smaller sizes where these take too long."""
    until = None if limits.seconds is None else process_time() + limits.seconds

    def run(one: Evidence) -> FieldCheck:
        after = Rewritten(one.rewritings[-1].kernel, one.error) if one.rewritings else None

        def against(kernel: Kernel, written: Kernel | None = None) -> FieldCheck:
            return field_check(
                kernel,
                one.machine,
                one.lowered,
                seeds=seeds,
                calls=limits.calls,
                iterations=limits.iterations,
                written=written,
                rewritten=after,
                most=limits.sizes,
                until=until,
            )

        found = against(one.kernel)
        if found.verdict != "differs" or after is None:
            return found
        before = (one.kernel, *(r.kernel for r in one.rewritings))
        changed = [k.statements[r.statement] for k, r in zip(before, one.rewritings, strict=False)]
        if all(map(has_all_laws, changed)):
            return found
        fractions = after.error is not None
        try:
            if same_in_field(one.kernel, after.kernel, found.sizes, seeds, fractions, until):
                return found
        except OutOfTimeError:
            return no_time_left(seeds)
        # A rule used a law that its lemmas prove and the field lacks: + distributes over max.
        return against(after.kernel, written=one.kernel)

    check = run(evidence)
    if check.verdict != "not run" or not limits.smaller:
        return check
    for smaller, sizes in reduced(evidence):
        small = run(smaller)
        if small.verdict != "not run":
            told = ", ".join(f"{name}={value}" for name, value in sizes.items())
            text = f"with {told}, lowered by the same schedule"
            return replace(small, text=f"{small.text}, {text}" if small.text else text)
    return check


def decide(found: Iterable[Obligation], limits: Limits) -> tuple[Claim, ...]:
    """Put open claims to the solver, in order, while there is time."""
    begin = process_time()
    claims = []
    for obligation in found:
        if isinstance(obligation, Claim):
            claims.append(obligation)
            continue
        start = perf_counter()
        if limits.seconds is not None and process_time() - begin > limits.seconds:
            verdict = Verdict("unknown", reason="no time was left; isamap prove takes more")
        else:
            verdict = _prove(obligation.lemma, limits.milliseconds)
        took = 1000 * (perf_counter() - start)
        claims.append(_claim(obligation, verdict, took))
    return tuple(claims)


@lru_cache(maxsize=4096)
def _prove(lemma: Lemma, milliseconds: int) -> Verdict:
    return prove(lemma, milliseconds)


def _claim(open_: Open, verdict: Verdict, took: float) -> Claim:
    lemma = open_.lemma
    detail = verdict.reason
    if verdict.counterexample:
        detail = ", ".join(f"{name} = {value}" for name, value in verdict.counterexample)
    return Claim(
        open_.subject,
        lemma.name,
        lemma.claim,
        "solver",
        verdict.verdict,
        lemma.script,
        detail,
        round(took, 3),
    )


_WORST: tuple[Decision, ...] = ("refuted", "unknown", "assumed", "noted", "proved")


def merged(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Join the parts of one claim: the worst verdict, the whole time, no scripts."""
    found: dict[tuple[str, str, str], Claim] = {}
    for claim in claims:
        key = (claim.subject, claim.name, claim.claim)
        known = found.get(key)
        if known is None:
            found[key] = replace(claim, script="")
            continue
        worse = min(known, claim, key=lambda c: _WORST.index(c.verdict))
        took = known.milliseconds + claim.milliseconds
        found[key] = replace(worse, script="", milliseconds=took)
    return tuple(found.values())
