"""Certificates as text."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import click

from isamap.cli.tables import table, wrap
from isamap.cli.text import head_lines
from isamap.cli.verdicts import field_text, summary
from isamap.pipeline.prove import ProvedMapping
from isamap.proof.certificate import Certificate, merged
from isamap.proof.claim import Claim

_HEADINGS = ("kind", "claim", "by", "verdict")
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
            lines += table(_HEADINGS, [_row(claim) for claim in decided])
        for claim in decided:
            if claim.verdict != "proved" and claim.detail:
                told = f"{claim.verdict}: {claim.name}: {claim.claim}: {claim.detail}"
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
        name = one.mapping.matching.needle.name
        rows.append((one.statement, name, placed, tile, verdict))
    headings = ("statement", "instruction", "axes", "tile", "verdict")
    return [click.style("every mapping", bold=True), *table(headings, rows)]


def _heading(subject: str, certificate: Certificate) -> str:
    from isamap.ir.printer import print_statement
    from isamap.proof.claim import CODE
    from isamap.proof.evidence import subjects

    kernel = certificate.evidence.mapped
    names = subjects(kernel)
    if subject in names:
        return print_statement(kernel.statements[names.index(subject)]).strip()
    return "the code" if subject == CODE else subject


def _row(claim: Claim) -> Sequence[str]:
    return claim.name, claim.claim, claim.method, claim.verdict


def _coloured(lines: list[str], verdict: str) -> list[str]:
    return [click.style(line, fg=_COLOURS.get(verdict)) for line in lines]
