"""A certificate as a JSON document, and back: text for what people wrote, data for the rest."""

import json
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from isamap.diagnostics import CertificateError, Diagnostic, IsamapError, Source, fail
from isamap.hw.accelerator import Accelerator, Entry, Storage
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_instruction, print_kernel
from isamap.ir.ranges import intervals_before
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.compose.compose import compositions
from isamap.mapping.groups import grouped, groups
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import Needles, needles
from isamap.proof.certificate import Certificate
from isamap.proof.claim import Claim
from isamap.proof.codec import Json, Unreadable, decode, encode, entry_key
from isamap.proof.evidence import Evidence, used_instructions
from isamap.proof.field import FieldCheck
from isamap.rewrite.apply import again
from isamap.rewrite.rule import Rewriting
from isamap.schedule.schedule import Schedule
from isamap.text.load import parse_instructions, parse_module

VERSION = 2
"""The version of the format."""


# --- writing ------------------------------------------------------------------------------------
def save(certificate: Certificate, path: Path) -> None:
    """Write a certificate to a file."""
    path.write_text(json.dumps(certificate_json(certificate), indent=1) + "\n", encoding="utf-8")


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """Return the document of a certificate."""
    evidence = certificate.evidence
    code = encode(evidence.lowered)
    return {
        "format": "isamap certificate",
        "version": VERSION,
        "verdict": certificate.verdict,
        "kernel": print_kernel(evidence.kernel),
        "rewritings": [
            {"rule": r.rule, "statement": r.statement, "kernel": print_kernel(r.kernel)}
            for r in evidence.rewritings
        ],
        "hardware": _hardware(evidence),
        "schedule": encode(evidence.schedule),
        "lowered": {"digest": digest(code), "code": code},
        "claims": [claim_json(claim) for claim in certificate.claims],
        "field": field_json(certificate.field),
    }


def digest(code: Json) -> str:
    """Return the hash of a lowered kernel's data."""
    text = json.dumps(code, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def claim_json(claim: Claim) -> dict[str, Any]:
    """Return a claim's fields."""
    return {name: getattr(claim, name) for name in Claim.__slots__}


def field_json(check: FieldCheck) -> dict[str, Any]:
    """Return the outcome of a field check."""
    return {
        **{name: getattr(check, name) for name in FieldCheck.__slots__},
        "seeds": list(check.seeds),
        "sizes": [dict(sizes) for sizes in check.sizes],
    }


def _hardware(evidence: Evidence) -> dict[str, Any]:
    machine = evidence.machine
    entries = [machine.entry(name) for name in used_instructions(evidence)]
    return {
        "name": machine.name,
        "digest": machine.digest,
        "storages": encode(machine.storages),
        "instructions": [instruction_json(entry) for entry in entries],
    }


def instruction_json(entry: Entry) -> dict[str, Any]:
    """Return what a proof uses of an instruction."""
    return {
        "name": entry.name,
        "semantics": print_instruction(entry.instruction),
        "align": dict(entry.align),
        "same": list(entry.same),
        "constraints": encode(entry.constraints),
        "throughput": encode(entry.throughput),
    }


# --- reading ------------------------------------------------------------------------------------
def load(path: Path) -> dict[str, Any]:
    """Return the document in a file; CertificateError if it holds none of this version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong("E771", f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise _wrong("E771", f"{path} is no JSON document: {error}") from None
    except RecursionError:
        raise _wrong("E771", f"{path} is nested too deeply for a certificate") from None
    if not isinstance(data, dict) or data.get("format") != "isamap certificate":
        raise _wrong("E771", f"{path} is no certificate", "'isamap prove --save' writes one")
    if data.get("version") != VERSION:
        text = f"{path} has version {data.get('version')} of the format, not {VERSION}"
        raise _wrong("E772", text)
    return data


def read_evidence(data: Mapping[str, Any]) -> Evidence:
    """Return what a document says was proved.

    Kernel and semantics are parsed, rules are applied again, and each reading of an instruction is
    made anew.  CertificateError where one of these does not give what the document says.
    """
    try:
        kernel = _kernel(data["kernel"])
        machine = _machine(data["hardware"])
        rewritings = _rewritings(kernel, machine, data["rewritings"])
        base = rewritings[-1].kernel if rewritings else kernel
        index = needles(machine)
        made = _composed(base, index)
        entries = {entry.name: entry for entry in machine.entries}
        entries |= {entry_key(needle.entry): needle.entry for needle in made}
        schedule = decode(data["schedule"], entries, "schedule")
        code = data["lowered"]["code"]
        if digest(code) != data["lowered"]["digest"]:
            raise _wrong("E773", "lowered.code is not what lowered.digest says")
        lowered = decode(code, entries, "lowered.code")
    except Unreadable as error:
        raise _wrong("E773", str(error)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _wrong("E773", f"a part is missing or misplaced: {error!r}") from None
    except RecursionError:
        raise _wrong("E773", "it is nested too deeply") from None
    for n, statement in enumerate(schedule.statements):
        needle = statement.mapping.matching.needle
        if needle not in (*made, *index.readings(needle.entry).needles):
            text = f"schedule.statements[{n}]: {needle.name} cannot be read like that"
            raise _wrong("E774", text)
    mapped = _together(base, schedule)
    return Evidence(kernel, rewritings, mapped, machine, schedule, lowered)


def read_claims(data: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Return the claims of a document, with their recorded verdicts."""
    try:
        return tuple(Claim(**claim) for claim in data["claims"])
    except (KeyError, TypeError) as error:
        raise _wrong("E773", f"claims: {error!r}") from None


def read_field(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document says about its runs."""
    found = data.get("field")
    if not isinstance(found, dict) or "verdict" not in found:
        raise _wrong("E773", f"field: {found!r} is no outcome of runs")
    return found


def _kernel(text: str) -> Kernel:
    try:
        (kernel,) = parse_module(text, "kernel").kernels
    except IsamapError as error:
        raise CertificateError(error.diagnostics) from None
    return kernel


def _machine(data: Mapping[str, Any]) -> Accelerator:
    storages: tuple[Storage, ...] = decode(data["storages"], {}, "hardware.storages")
    names = frozenset(storage.name for storage in storages)
    entries = []
    for n, one in enumerate(data["instructions"]):
        place = f"hardware.instructions[{n}]"
        try:
            found = parse_instructions(Source(place, one["semantics"]), names)
        except IsamapError as error:
            raise CertificateError(error.diagnostics) from None
        if [instruction.name for instruction in found] != [one["name"]]:
            raise _wrong("E773", f"{place}.semantics is not of {one['name']}")
        # What it costs proves nothing, but lowering chooses movements by it: see reduced.py.
        entries.append(
            Entry(
                found[0],
                decode(one["throughput"], {}, f"{place}.throughput"),
                Fraction(1),
                align=dict(one["align"]),
                same=tuple(one["same"]),
                constraints=decode(one["constraints"], {}, f"{place}.constraints"),
            )
        )
    name = str(data["name"])
    clock = Fraction(1)
    return Accelerator(
        name, "", storages, (), tuple(entries), None, clock, digest=str(data["digest"])
    )


def _composed(kernel: Kernel, index: Needles) -> tuple[Needle, ...]:
    """Return the instructions in sequence that compute a statement of a kernel, proved anew."""
    found: list[Needle] = []
    for n, statement in enumerate(bind_extents(kernel).statements):
        known = intervals_before(kernel, n)
        roots = compositions(zero_based(statement), index, 0, known).roots
        found += [needle for needle, _ in roots]
    return tuple(found)


def _together(kernel: Kernel, schedule: Schedule) -> Kernel:
    """Return a kernel with those statements as one that a schedule computes together.

    Statements that are none of the kernel's are left to the claims about them.
    """
    bound = bind_extents(kernel)
    possible = {(g.first, zero_based(g.statement)): g for g in groups(kernel)}
    chosen = []
    at = 0
    for own in schedule.statements:
        wanted = own.mapping.matching.statement
        single = at < len(bound.statements) and zero_based(bound.statements[at]) == wanted
        group = None if single else possible.get((at, wanted))
        if group is not None:
            chosen.append(group)
        at += group.count if group is not None else 1
    return grouped(kernel, chosen)


def _rewritings(
    kernel: Kernel, machine: Accelerator, data: list[Mapping[str, Any]]
) -> tuple[Rewriting, ...]:
    """Apply the rules again, and return what they give."""
    bodies = [statement for e in machine.entries for statement in e.instruction.statements]
    steps = [(str(one["rule"]), int(one["statement"])) for one in data]

    def same(n: int, rewriting: Rewriting) -> bool:
        return print_kernel(rewriting.kernel) == str(data[n]["kernel"])

    found = again(kernel, bodies, steps, same)
    if len(found) < len(steps):
        n = len(found)
        text = f"rewritings[{n}]: the rule {steps[n][0]} does not give this kernel"
        raise _wrong("E774", text)
    return found


def _wrong(code: str, message: str, hint: str | None = None) -> CertificateError:
    return CertificateError(Diagnostic(code, message, hint=hint) if hint else fail(code, message))
