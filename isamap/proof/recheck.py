"""A saved certificate checked again, from its data alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isamap.diagnostics import CertificateError, fail
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.proof.certificate import Certificate, Limits, decide, run_field
from isamap.proof.claim import Claim
from isamap.proof.codec import encode
from isamap.proof.evidence import obligations
from isamap.proof.saved import (
    field_json,
    instruction_json,
    read_claims,
    read_evidence,
    read_field,
)


@dataclass(frozen=True, slots=True)
class Rechecked:
    """What the data of a certificate prove now, and where the certificate says otherwise."""

    certificate: Certificate
    differences: tuple[str, ...]


def recheck(data: Mapping[str, Any], limits: Limits | None = None) -> Rechecked:
    """Derive all claims of a document anew, prove them, and compare with what it says.

    Kernel and code are run at sizes that are chosen anew: at those that a document names, code
    made for them would agree.
    CertificateError if its parts cannot be read, or are no consequence of each other.
    """
    limits = limits or Limits()
    evidence = read_evidence(data)
    try:
        claims = decide(obligations(evidence), limits)
        check = run_field(evidence, limits)
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        # Nothing says that the parts of a file name operands, arrays and variables that there are.
        text = f"schedule and lowered.code do not fit each other or the kernel: {error!r}"
        raise CertificateError(fail("E773", text)) from error
    differences = list(_compared(read_claims(data), claims))
    recorded, found = read_field(data), field_json(check)
    if recorded["verdict"] != check.verdict:
        differences.append(
            f"field: the check {_told(check.verdict)}, the certificate says "
            f"that it {_told(str(recorded['verdict']))}"
        )
    else:
        other = [name for name, value in found.items() if recorded.get(name) != value]
        differences += [f"field: its {name} is {found[name]!r}" for name in other]
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
        elif new.method != "solver" and old.detail != new.detail:
            yield f"claims[{n}]: '{new.claim}' with the detail '{new.detail}'"
    for missing in (claim for claims in left.values() for claim in claims):
        yield f"claims: '{missing.claim}' ({missing.subject}) is missing"


def _stated(claim: Claim) -> tuple[str, ...]:
    """Return what a claim says, apart from what became of it."""
    return claim.subject, claim.name, claim.claim, claim.method, claim.script


def _told(verdict: str) -> str:
    return "was not run" if verdict == "not run" else verdict


# --- of which kernel and machine -----------------------------------------------------------------
def foreign(
    data: Mapping[str, Any], kernel: Kernel | None, machine: Accelerator | None
) -> Iterator[str]:
    """Yield where a document is about another kernel or another machine than these.

    That takes no proof.  Parts that cannot be read are passed over: :func:`recheck` tells of them.
    """
    if kernel is not None and data.get("kernel") != print_kernel(kernel):
        yield f"kernel: it is about another kernel than {kernel.name} as it is given"
    if machine is None:
        return
    own, held = {entry.name: entry for entry in machine.entries}, data.get("hardware")
    if not isinstance(held, dict):
        return
    if held.get("storages") != encode(machine.storages):
        yield f"hardware.storages: {machine.name} has others"
    instructions = held.get("instructions")
    for n, one in enumerate(instructions if isinstance(instructions, list) else ()):
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            continue
        entry = own.get(one["name"])
        if entry is None:
            yield f"hardware.instructions[{n}]: {machine.name} has no {one['name']}"
        elif other := [k for k, v in instruction_json(entry).items() if one.get(k) != v]:
            told = f"{one['name']} has other {', '.join(other)} in {machine.name}"
            yield f"hardware.instructions[{n}]: {told}"
