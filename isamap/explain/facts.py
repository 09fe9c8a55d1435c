"""An explanation as plain data: the document of ``isamap explain --json``."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from isamap.diagnostics import Span
from isamap.explain.compositions import parts
from isamap.explain.explanation import (
    Change,
    Correspondence,
    Explanation,
    Reason,
    StatementExplanation,
)
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel, print_statement
from isamap.pipeline.facts import head, mapping_facts, rewriting_facts
from isamap.rewrite.apply import told
from isamap.rewrite.rule import Rewriting

Facts: TypeAlias = dict[str, Any]


def explanation_facts(
    kernel: Kernel,
    hardware: Accelerator,
    statements: Sequence[StatementExplanation],
    rewritings: Sequence[Rewriting] = (),
) -> Facts:
    """Return the document: one entry a statement, one an instruction, the nearest first.

    Statements are those after the ``rewritings`` of the kernel.
    """
    return {
        **head(kernel, hardware),
        "rewritings": [rewriting_facts(before, one) for before, one in told(kernel, rewritings)],
        "statements": [
            {
                "name": s.name,
                "text": print_statement(s.statement).strip(),
                "place": _place(s.statement.span),
                "maps": s.maps,
                "instructions": [_explanation(e) for e in s.instructions],
                "left_out": s.left_out,
            }
            for s in statements
        ],
    }


def _explanation(explanation: Explanation) -> Facts:
    found = explanation.correspondence
    return {
        "instruction": explanation.entry.name,
        "place": _place(explanation.entry.span),
        "parts": [
            {"instruction": part.name, "place": _place(part.span)}
            for part in parts(explanation.entry)
        ],
        "verdict": explanation.verdict,
        "distance": explanation.distance,
        "alike": list(explanation.alike),
        "reasons": [_reason(r) for r in explanation.reasons],
        "changes": [_change(c) for c in explanation.changes],
        "together": list(explanation.together),
        "rewriting": [{"rule": r.rule, "note": r.note} for r in explanation.rewriting],
        "correspondence": None if found is None else _correspondence(found),
    }


def _correspondence(found: Correspondence) -> Facts:
    return {
        "mapping": mapping_facts(found.mapping),
        "mappings": found.count,
        "complete": found.complete,
        "operands": [
            {
                "operand": o.name,
                "access": o.text,
                "storage": o.storage,
                "type": o.dtype,
                "stands_for": o.bound,
                "dimensions": [
                    {"axis": axis, "extent": extent, "used": used} for axis, extent, used in o.dims
                ],
            }
            for o in found.operands
        ],
        "axes": [
            {
                "axis": a.name,
                "extent": a.extent,
                "used": a.used,
                "repeats": a.repeats,
                "forms": [{"form": form, "positions": n} for form, n in a.forms],
                "why": [_reason(r) for r in a.why],
            }
            for a in found.axes
        ],
        "tails": [_reason(r) for r in found.tails],
        "banded": [_reason(r) for r in found.banded],
    }


def _reason(reason: Reason) -> Facts:
    return {
        "kind": reason.kind,
        "text": reason.text,
        "kernel": _place(reason.kernel),
        "hardware": _place(reason.hardware),
    }


def _change(change: Change) -> Facts:
    return {
        "text": change.text,
        "effect": change.effect,
        "lines": list(change.lines),
        "utilization": change.used,
        "lowering": change.rest,
        "kernel": print_kernel(change.kernel),
    }


def _place(span: Span | None) -> Facts | None:
    if span is None:
        return None
    return {"file": span.source.name, "line": span.line, "column": span.column}
