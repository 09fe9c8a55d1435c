"""The results of differential tests as a page of the documentation."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isamap.diagnostics import IsamapError, fail
from isamap.hw.accelerator import Accelerator
from isamap.hw.parameters import split_name
from isamap.targets.probe.finding import Finding
from isamap.targets.test import Outcome, compiler_version, runner_version

BEGIN, END = "<!-- begin proof -->", "<!-- end proof -->"
"""The lines between which a file has the tables."""

_HEAD = (
    "| target | compiled by | run on | instructions | inherited | operand sets | result |",
    "|---|---|---|---:|---:|---:|---|",
)

_MANY = 20
"""Forms of an instruction that are named one by one."""


@dataclass(frozen=True, slots=True)
class Untested:
    """A machine that could not be tested here, and why."""

    machine: Accelerator
    reason: str


def write_tables(path: Path, results: Sequence[Outcome | Untested], alone: bool = True) -> None:
    """Write tables between the two marks of a file: ``alone``, or beside those of other targets.

    IsamapError if the file has no marks.
    """
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(f"{BEGIN}\n")
    old, end, after = rest.partition(END)
    if not begin or not end:
        raise IsamapError(fail("E545", f"{path} has no lines '{BEGIN}' and '{END}'"))
    rows, lists = ({}, {}) if alone else _written(old)
    for result in results:
        name = result.name if isinstance(result, Outcome) else result.machine.name
        rows[name] = _row(result)
        if name == split_name(name)[0]:  # not another size of what is listed already
            lists[name] = _list(name, result)
    body = [*_HEAD, *(rows[n] for n in sorted(rows)), *(lists[n] for n in sorted(lists))]
    path.write_text("\n".join([f"{before}{begin}", *body, f"\n{end}{after}"]), encoding="utf-8")


def _written(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the rows of targets and the lists of instructions that tables have, by name."""
    first, *rest = text.split("\n<details><summary>")
    rows = re.findall(r"^(\| `([^`]+)` \|.*)$", first, re.MULTILINE)
    lists = {part.partition(":")[0]: f"\n<details><summary>{part.rstrip()}" for part in rest}
    return {name: row for row, name in rows}, lists


def _list(name: str, result: Outcome | Untested) -> str:
    """Return the table of a target's instructions."""
    own, inherited = _listed(result)
    lines = [
        "",
        f"<details><summary>{name}: {len(own)} instructions</summary>",
        "",
        "| instruction | forms | operand sets | extents | result |",
        "|---|---|---:|---:|---|",
        *(_group(found) for found in _groups(own).values()),
        *(_inherited(origin, found) for origin, found in _origins(inherited).items()),
        "",
        "</details>",
    ]
    return "\n".join(lines)


def verdict(findings: Iterable[Finding]) -> str:
    """Return the results of some instructions in a few words."""
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.status] = counts.get(finding.status, 0) + 1
    if list(counts) == ["right"]:
        return "right"
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def _row(result: Outcome | Untested) -> str:
    if isinstance(result, Untested):
        machine = result.machine
        count = len(machine.own_entries)
        more = len(machine.entries) - count
        return f"| `{machine.name}` | | | {count} | {more} | 0 | not run here: {result.reason} |"
    own, inherited = _listed(result)
    return (
        f"| `{result.name}` | {compiler_version(result)} | {runner_version(result)} | "
        f"{len(own)} | {len(inherited)} | {result.sets:,} | {verdict(result.findings)} |"
    )


def _listed(result: Outcome | Untested) -> tuple[list[Finding], list[Finding]]:
    """Return what was found of the description's own instructions, and of the others."""
    if isinstance(result, Outcome):
        own = [finding for finding in result.findings if not finding.origin]
        return own, [finding for finding in result.findings if finding.origin]
    return [
        Finding(e.name, e.instruction.generic or e.name, 0, 0, 0, "not tried", "not run here")
        for e in result.machine.own_entries
    ], []


def _origins(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.origin, []).append(finding)
    return found


def _inherited(origin: str, findings: Sequence[Finding]) -> str:
    """Return a row of what is inherited from a description, then what of that is not right."""
    right = [finding for finding in findings if finding.status == "right"]
    others = [finding for finding in findings if finding.status != "right"]
    rows = [_line(f"from `{origin}`", str(len(right)), right)] if right else []
    return "\n".join([*rows, *(_group(found) for found in _groups(others).values())])


def _groups(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.generic, []).append(finding)
    return found


def _group(findings: Sequence[Finding]) -> str:
    """Return a row of an instruction: its forms, and what was found of them."""
    forms = [f.name.removeprefix(f.generic).strip("_") for f in findings]
    named = " ".join(form or "plain" for form in forms) if any(forms) else "1"
    told = named if len(forms) <= _MANY else str(len(forms))
    return _line(f"`{findings[0].generic}`", told, findings)


def _line(name: str, forms: str, findings: Sequence[Finding]) -> str:
    sets = sum(finding.sets for finding in findings)
    extents = max(finding.combinations for finding in findings)
    told = verdict(findings)
    reasons = dict.fromkeys(f.text.replace("\n", "; ") for f in findings if f.status != "right")
    if reasons and all(reasons):
        told += f": {' / '.join(reasons)}".replace("|", "\\|")
    return f"| {name} | {forms} | {sets:,} | {extents} | {told} |"
