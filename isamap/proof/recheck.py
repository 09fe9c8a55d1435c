"""A saved certificate checked again, from its data alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isamap.proof.certificate import Certificate, Limits, decide, run_field
from isamap.proof.claim import Claim
from isamap.proof.evidence import obligations
from isamap.proof.saved import read_claims, read_evidence


@dataclass(frozen=True, slots=True)
class Rechecked:
    """What the data of a certificate prove now, and where the certificate says otherwise."""

    certificate: Certificate
    differences: tuple[str, ...]


def recheck(data: Mapping[str, Any], limits: Limits | None = None) -> Rechecked:
    """Derive all claims of a document anew, prove them, and compare with what it says.

    CertificateError if its parts cannot be read, or are no consequence of each other.
    """
    limits = limits or Limits()
    evidence = read_evidence(data)
    claims = decide(obligations(evidence), limits)
    recorded = data["field"]
    sizes = [dict(chosen) for chosen in recorded["sizes"]] or None
    check = run_field(evidence, limits, sizes, tuple(recorded["seeds"]))
    differences = list(_compared(read_claims(data), claims))
    if check.verdict != recorded["verdict"]:
        differences.append(
            f"field: the check {_told(check.verdict)}, the certificate says "
            f"that it {_told(recorded['verdict'])}"
        )
    certificate = Certificate(evidence, claims, check)
    if data["verdict"] != certificate.verdict:
        differences.append(f"verdict: {certificate.verdict}, not {data['verdict']}")
    return Rechecked(certificate, tuple(differences))


def _compared(recorded: tuple[Claim, ...], found: tuple[Claim, ...]) -> Iterator[str]:
    """Yield where a list of claims says something other than its data give."""
    left: dict[tuple[str, ...], list[Claim]] = {}
    for claim in found:
        left.setdefault(_stated(claim), []).append(claim)
    for n, old in enumerate(recorded):
        same = left.get(_stated(old))
        if not same:
            yield f"claims[{n}]: '{old.claim}' ({old.subject}) does not follow from the data"
            continue
        new = same.pop(0)
        if old.verdict != new.verdict:
            yield f"claims[{n}]: '{new.claim}' is {new.verdict}, not {old.verdict}"
    for missing in (claim for claims in left.values() for claim in claims):
        yield f"claims: '{missing.claim}' ({missing.subject}) is missing"


def _stated(claim: Claim) -> tuple[str, ...]:
    """Return what a claim says, apart from what became of it."""
    return claim.subject, claim.name, claim.claim, claim.method, claim.script


def _told(verdict: str) -> str:
    return verdict if verdict != "not run" else "was not run"
