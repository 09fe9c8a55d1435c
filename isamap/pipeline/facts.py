"""The facts of a report as plain data: the document of ``--json`` (docs/commands.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias, get_args

from isamap import __version__
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.printer import print_expr, print_kernel, print_statement
from isamap.ir.statements import statement_names
from isamap.mapping.compose.composed import conditions_of, parts_of
from isamap.mapping.groups import Group, grouped
from isamap.mapping.matching import Enumeration, Matching
from isamap.mapping.matching import Mapping as LegalMapping
from isamap.pipeline.offered import Offered
from isamap.pipeline.result import (
    Limits,
    Report,
    Result,
    Scheduled,
    issue_cycles,
)
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.service import Service
from isamap.pipeline.sizes import iterations
from isamap.proof.certificate import Certificate, merged
from isamap.proof.claim import Decision
from isamap.proof.saved import field_json
from isamap.rewrite.rule import Rewriting
from isamap.schedule.schedule import Schedule

Facts: TypeAlias = dict[str, Any]


def report_facts(report: Report) -> Facts:
    """Return the document that ``isamap map --json`` prints."""
    result, check, execution = report.result, report.check, report.execution
    kernel, symbols = result.kernel, result.symbols
    names = [s.name for s in result.statements]
    return {
        **head(kernel, result.accelerator),
        "sizes_assumed": dict(symbols),
        "iterations": iterations(kernel, symbols),
        "statements": [
            {
                **_statement(
                    s.name, s.statement, s.enumeration, result.mapped, symbols, s.scheduled
                ),
                "covers": list(s.covers),
                "chosen": s.chosen,
                "why": s.why,
                "ahead": s.ahead,
            }
            for s in result.statements
        ],
        "rewritings": [rewriting_facts(before, one) for before, one in result.rewritten],
        "schedule": schedule_facts(result.schedule, names, result.by),
        "calls": {"abreast": result.schedule.abreast, "once": result.schedule.once},
        "schedule_text": schedule_text(result),
        "estimate": _estimate(result),
        "prepared": _prepared(result),
        "placed": [asdict(own) for own in result.placements],
        "served": [_service(own) for own in result.services],
        "tuning": _tuning(result),
        "execution": {
            "way": execution.way,
            "reason": execution.reason,
            "sizes": dict(execution.symbols or {}),
            "seconds": execution.seconds,
            "cycles": execution.cycles,
            "samples": list(execution.samples),
            "conflicts": execution.conflicts,
        },
        "predicted": _predicted(report),
        "proof": proof_facts(report.certificate),
        "checked": check is not None and check.ok,
        "checked_outputs": check.outputs if check else 0,
        "outputs": check.total if check else 0,
        "check": check.text if check else report.unchecked,
        "seconds": {name: round(value, 6) for name, value in report.seconds.items()},
    }


def proof_facts(certificate: Certificate | None) -> Facts | None:
    """Return the claims of a certificate without their scripts."""
    if certificate is None:
        return None
    return {
        "verdict": certificate.verdict,
        **{verdict: certificate.count(verdict) for verdict in get_args(Decision)},
        "claims": [
            {
                "subject": claim.subject,
                "name": claim.name,
                "claim": claim.claim,
                "method": claim.method,
                "verdict": claim.verdict,
                "detail": claim.detail,
            }
            for claim in merged(certificate.claims)
        ],
        "field": field_json(certificate.field),
    }


def match_facts(
    kernel: Kernel,
    hardware: Accelerator,
    enumerations: tuple[Enumeration, ...],
    ways: Sequence[Offered] | None = None,
    together: Sequence[tuple[Group, Enumeration]] = (),
) -> Facts:
    """Return the document that ``isamap match --json`` prints; with rewritings, if given.

    ``together`` are statements that instructions compute as one, with the mappings.
    """
    names = statement_names(kernel)
    facts = {
        **head(kernel, hardware),
        "statements": [
            _statement(name, statement, found, kernel, {})
            for name, statement, found in zip(names, kernel.statements, enumerations, strict=True)
        ],
        "together": [
            {
                "covers": list(names[group.first : group.first + group.count]),
                **_statement(
                    names[group.first + group.count - 1],
                    found.statement,
                    found,
                    grouped(kernel, (group,)),
                    {},
                ),
            }
            for group, found in together
        ],
    }
    return facts if ways is None else {**facts, "rewritings": list(map(_offered, ways))}


def _offered(way: Offered) -> Facts:
    after = way.rewriting.kernel
    return {
        **rewriting_facts(way.before, way.rewriting),
        "statements": [
            _statement(found.statement.target.buffer, found.statement, found, after, {})
            for found in way.enumerations
        ],
    }


def mapping_facts(mapping: LegalMapping) -> Facts:
    """Return a mapping without what depends on the kernel's sizes."""
    matching = mapping.matching
    return {
        "instruction": matching.needle.name,
        "parts": list(parts_of(matching.needle)),
        "conditions": [condition.text for condition in conditions_of(matching.needle)],
        "axes": axes(matching),
        "operands": {
            matching.needle.shown(name): print_expr(expr) for name, expr in matching.operands
        },
        "tile": dict(mapping.tile),
        "utilization": mapping.utilisation,
    }


def axes(matching: Matching) -> dict[str, list[str]]:
    """Return the forms on each axis of the instruction, outermost digit first."""
    return {a.name: [str(form) for form in matching.on_axis(a.name)] for a in matching.needle.axes}


def schedule_facts(
    schedule: Schedule, names: Sequence[str], by: Sequence[Sequence[str]]
) -> list[Facts]:
    """Return a schedule, one entry a statement, with the instructions that compute each."""
    return [
        {
            "statement": name,
            "instruction": s.mapping.matching.needle.name,
            "by": list(instructions),
            "levels": [
                {
                    "variable": level.variable,
                    "step": level.step,
                    "parallel": level.parallel,
                    "overlap": level.overlap,
                }
                for level in s.levels
            ],
            "operands": list(s.operands),
            "inside": [s.copied_inside(n) for n in range(len(s.operands))],
            "pitches": [s.pitch(n) for n in range(len(s.operands))],
            "buffers": [s.places(n) for n in (*range(len(s.operands)), None)],
            "stream": s.stream,
            "past": list(s.past),
            "prefetch": [
                {"access": early.access, "ahead": early.count, "of": early.variable}
                for early in s.early
            ],
            "uncached": s.bypass is True,
            "later": s.later,
            "within": None if s.within is None else names[s.within],
            "along": None if s.along is None else names[s.along],
        }
        for name, s, instructions in zip(names, schedule.statements, by, strict=True)
    ]


def rewriting_facts(before: Statement, rewriting: Rewriting) -> Facts:
    """Return a rewriting, with the statement to which it was applied."""
    return {
        "rule": rewriting.rule,
        "before": print_statement(before).strip(),
        "note": rewriting.note,
        "error": None if rewriting.error is None else float(rewriting.error),
        "lemmas": [{"name": lemma.name, "claim": lemma.claim} for lemma in rewriting.lemmas],
        "kernel": print_kernel(rewriting.kernel),
    }


def head(kernel: Kernel, hardware: Accelerator) -> Facts:
    """Return what every document begins with: which kernel, at which sizes, on which machine."""
    return {
        "version": __version__,
        "kernel": kernel.name,
        "sizes": {e.name: e.value for e in kernel.extents},
        "hardware": hardware.name,
    }


def _statement(
    name: str,
    statement: Statement,
    found: Enumeration,
    kernel: Kernel,
    symbols: Mapping[str, int],
    scheduled: Sequence[Scheduled] = (),
) -> Facts:
    sized = set(kernel.symbols) <= set(symbols)
    tried = {s.mapping: s for s in scheduled}
    mappings = []
    for number, mapping in enumerate(found.mappings):
        entry = mapping_facts(mapping)
        entry["cycles"] = issue_cycles(mapping, kernel, symbols) if sized else None
        if scheduled:
            entry["estimate"] = tried[number].cycles if number in tried else None
            entry["unschedulable"] = tried[number].reason if number in tried else ""
        mappings.append(entry)
    return {
        "name": name,
        "text": print_statement(statement).strip(),
        "mappings": mappings,
        "complete": found.complete,
        "incomplete_reason": found.reason,
        "refused": list(found.refused),
    }


def _service(service: Service) -> Facts:
    return {
        "instruction": service.instruction,
        "extents": dict(service.extents),
        "function": service.function,
        "by": list(service.used),
    }


def _estimate(result: Result) -> Facts:
    estimate = result.estimate
    return {
        "cycles": estimate.cycles,
        "seconds": estimate.cycles / float(result.accelerator.clock),
        "bound_by": estimate.bound_by,
        "parts": dict(estimate.parts),
    }


def _predicted(report: Report) -> Facts | None:
    return None if report.prediction is None else asdict(report.prediction)


def _prepared(result: Result) -> Facts | None:
    if (found := result.preparation) is None:
        return None
    cycles = found.estimate.cycles
    seconds = cycles / float(result.accelerator.clock)
    return {"bytes": found.bytes, "cycles": cycles, "seconds": seconds}


def _tuning(result: Result) -> Facts | None:
    if (tuning := result.tuning) is None:
        return None
    return {
        "trials": tuning.trials,
        "failed": tuning.failed,
        "measured": tuning.measured,
        "first": tuning.first,
        "best": tuning.best,
        "interrupted": tuning.interrupted,
        "dropped": tuning.dropped,
        "others": tuning.others,
        "sampler": tuning.sampler,
        "ratio": tuning.ratio,
        "spread": tuning.spread and list(tuning.spread),
        "rounds": tuning.rounds,
        "proved": tuning.proved,
        "changes": list(tuning.changes),
        "study": tuning.study,
        "place": tuning.place,
        "records": tuning.records,
        "learned": tuning.learned,
        "objectives": list(tuning.objectives),
        "model": _limits(tuning.limits),
        "counted": tuning.counted,
        "correlation": tuning.correlation,
        "compared": tuning.compared,
        "warnings": [str(warning.span) for warning in tuning.warnings],
        "front": [
            {"values": list(row.values), "changes": list(row.changes)} for row in tuning.front
        ],
    }


def _limits(limits: Limits | None) -> Facts | None:
    if limits is None:
        return None
    return {
        "bound": limits.bound,
        "by": limits.by,
        "own": limits.own,
        "tiled": limits.tiled,
        "gap": limits.gap,
        "optimum": limits.optimum,
        "lowest": limits.lowest,
        "reached": limits.reached,
    }
