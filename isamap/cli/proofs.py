"""Certificates as text."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import click

from isamap.cli.tables import table, wrap
from isamap.cli.text import head_lines
from isamap.pipeline.prove import ProvedMapping
from isamap.proof.certificate import Certificate, merged
from isamap.proof.claim import Claim
from isamap.proof.field import FieldCheck

_HEADINGS = ("claim", "by", "verdict", "ms")
_COLOURS = {"refuted": "red", "unknown": "yellow", "proved": "green"}


def proof_lines(certificate: Certificate) -> list[str]:
    """Return a certificate: its claims by subject, the field check, and the sum of it."""
    lines = head_lines(certificate.evidence.kernel, certificate.evidence.machine)
    claims = merged(certificate.claims)
    for subject, group in groupby(claims, key=lambda claim: claim.subject):
        own = list(group)
        decided = [c for c in own if c.verdict in ("proved", "refuted", "unknown")]
        lines += ["", click.style(_heading(subject, certificate), bold=True)]
        if decided:
            lines += table(_HEADINGS, [_row(claim) for claim in decided], frozenset({3}))
        for claim in decided:
            if claim.verdict != "proved" and claim.detail:
                told = f"{claim.verdict}: {claim.claim}: {claim.detail}"
                lines += _coloured(wrap(told, "    ", "      "), claim.verdict)
        for claim in own:
            if claim.verdict in ("assumed", "noted"):
                told = f"{claim.verdict}: {claim.claim}"
                told += f" ({claim.detail})" if claim.detail else ""
                lines += wrap(told, "    ", "      ")
    lines += ["", *wrap(f"field     {field_text(certificate.field)}", "", " " * 10)]
    return [
        *lines,
        *_coloured(wrap(f"proof     {summary(certificate)}", "", " " * 10), certificate.verdict),
    ]


def summary(certificate: Certificate) -> str:
    """Return how many claims have which verdict."""
    counts = [(certificate.count(v), v) for v in ("proved", "refuted", "unknown", "assumed")]
    told = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
    return f"{certificate.verdict}: of its claims {told}"


def field_text(check: FieldCheck) -> str:
    """Return what the runs of kernel and code found."""
    if check.verdict == "not run":
        return f"not run: {check.text}"
    if check.verdict == "differs":
        return f"kernel and code differ: {check.text}"
    text = f"kernel and code agree in {_count(check.field_runs, 'run')} modulo 2^61 - 1"
    if check.exact_runs:
        text += f" and {check.exact_runs} in the declared types"
    sizes = [", ".join(f"{n}={v}" for n, v in chosen) for chosen in check.sizes if chosen]
    if sizes:
        text += f", at {'; '.join(sizes)}"
    if check.text:
        return f"{text} ({check.text})"
    return f"{text}; chance of an error below {check.probability:.0e}"


def all_lines(proved: Iterable[ProvedMapping]) -> list[str]:
    """Return a row for every legal mapping: what was claimed of it, and what became of that."""
    rows = []
    for one in proved:
        tile = ", ".join(f"{n}={s}" for n, s in one.mapping.tile.items() if s > 1) or "1"
        placed = ", ".join(f"{p.axis}<-{p.form}" for p in one.mapping.matching.placements) or "-"
        claims = merged(one.claims)
        verdict = "proved"
        for worse in ("unknown", "refuted"):
            if any(claim.verdict == worse for claim in claims):
                verdict = worse
        took = sum(claim.milliseconds for claim in claims)
        name = one.mapping.matching.needle.name
        rows.append((one.statement, name, placed, tile, verdict, f"{took:.0f}"))
    headings = ("statement", "instruction", "axes", "tile", "verdict", "ms")
    return [click.style("every mapping", bold=True), *table(headings, rows, frozenset({5}))]


def _heading(subject: str, certificate: Certificate) -> str:
    from isamap.ir.printer import print_statement
    from isamap.proof.evidence import CODE, subjects

    kernel = certificate.evidence.mapped
    names = subjects(kernel)
    if subject in names:
        return print_statement(kernel.statements[names.index(subject)]).strip()
    return "the code" if subject == CODE else subject


def _row(claim: Claim) -> Sequence[str]:
    return claim.claim, claim.method, claim.verdict, f"{claim.milliseconds:.0f}"


def _coloured(lines: list[str], verdict: str) -> list[str]:
    return [click.style(line, fg=_COLOURS.get(verdict)) for line in lines]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
