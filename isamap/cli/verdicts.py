"""What a certificate amounts to, in a line or two."""

import click

from isamap.proof.certificate import Certificate
from isamap.proof.field import FieldCheck


def summary(certificate: Certificate) -> str:
    """Return how many claims have which verdict."""
    counts = [(certificate.count(v), v) for v in ("proved", "refuted", "unknown", "assumed")]
    told = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
    return f"{certificate.verdict}: of its claims {told}"


def short_text(certificate: Certificate) -> str:
    """Return a certificate that was made in little time, in a line or two."""
    counts = [(certificate.count(v), v) for v in ("proved", "refuted", "unknown", "assumed")]
    claims = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
    told = f"of the claims about mapping and code {claims}"
    check = certificate.field
    match check.verdict:
        case "agrees":
            where = "modulo 2^61 - 1" if check.field_runs else "in the declared types"
            told += f"; kernel and code agree {where}"
        case "differs":
            told += f"; kernel and code differ: {check.text}"
        case "not run":
            told += "; not run modulo a prime"
    if certificate.verdict == "proved":
        return click.style(told, fg="green")
    if certificate.verdict == "unknown":
        return f"{told} ('isamap prove' takes longer)"
    return click.style(f"{told} ('isamap prove' tells which)", fg="red")


def field_text(check: FieldCheck) -> str:
    """Return what the runs of kernel and code found."""
    if check.verdict == "not run":
        return f"not run: {check.text}"
    if check.verdict == "differs":
        return f"kernel and code differ: {check.text}"
    if check.field_runs:
        made = f"{_count(check.field_runs, 'run')} modulo 2^61 - 1"
        made += f" and {check.exact_runs} in the declared types" if check.exact_runs else ""
    else:
        made = f"{_count(check.exact_runs, 'run')} in the declared types"
    text = f"kernel and code agree in {made}"
    sizes = [", ".join(f"{n}={v}" for n, v in chosen) for chosen in check.sizes if chosen]
    if sizes:
        text += f", at {'; '.join(sizes)}"
    if check.text:
        text += f" ({check.text})"
    missed = f"; chance of an error below {check.probability:.0e}" if check.field_runs else ""
    return text + missed


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
