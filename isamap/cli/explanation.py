"""An explanation as text within 80 columns."""

import shlex
from collections.abc import Sequence

import click

from isamap.cli.picture import bar, side_by_side, tile
from isamap.cli.tables import table, wrap
from isamap.explain.compositions import parts
from isamap.explain.explanation import (
    AxisUse,
    Change,
    Correspondence,
    Effect,
    Explanation,
    OperandUse,
    Reason,
    StatementExplanation,
)
from isamap.ir.printer import print_statement
from isamap.mapping.compose.composed import conditions_of

_EFFECTS: dict[Effect, str] = {
    "same": "the result stays the same",
    "values": "callers must keep to the declared values",
    "overflow": "the result differs where the narrower type would overflow",
    "trust": "infinities and NaN must not occur",
    "rounding": "values are rounded otherwise",
    "different": "the kernel then computes something else",
    "layout": "callers lay the buffer out otherwise",
    "size": "the kernel then has another size",
}

_INDENT = "    "


def explanation_lines(statements: Sequence[StatementExplanation], pictures: int) -> list[str]:
    """Return all explanations; ``pictures`` is for how many instructions tiles are drawn."""
    lines: list[str] = []
    for statement in statements:
        text = print_statement(statement.statement).strip()
        lines += ["", *wrap(text, "", _INDENT)]
        if statement.statement.span is not None:
            lines.append(f"    at {statement.statement.span}")
        drawn = 0
        for explanation in statement.instructions:
            is_drawn = drawn < pictures and explanation.correspondence is not None
            lines += ["", *_instruction(explanation, is_drawn)]
            if lines[-1] == "":
                lines.pop()
            drawn += is_drawn
        if statement.left_out:
            text = f"{statement.left_out} more instructions (--all explains them)"
            lines += ["", *wrap(text, "  ")]
        if not statement.instructions:
            lines += ["", "  no instruction computes anything"]
    return lines


def _instruction(explanation: Explanation, is_drawn: bool) -> list[str]:
    name, found = explanation.entry.name, explanation.correspondence
    match explanation.verdict:
        case "matches" | "unreachable" | "rewritten":
            assert found is not None
            after = " after rewriting" if explanation.rewriting else ""
            text = f"matches{after}, {_count(found)}"
            if explanation.verdict == "unreachable":
                text += "; but no code can be made for it here"
        case "part":
            text = "computes a part"
        case "moves":
            text = "only moves data"
        case "differs":
            count = len(explanation.reasons)
            text = "does not match" + (f": {count} reasons" if count > 1 else "")
    lines = [click.style(line, bold=True) for line in wrap(f"{name} {text}", "  ", _INDENT)]
    lines += _places(explanation)
    if explanation.alike:
        lines += wrap(f"likewise: {', '.join(explanation.alike)}", _INDENT, _INDENT + "  ")
    if explanation.together:
        lines += wrap(f"with {', '.join(explanation.together)} as one statement", _INDENT)
    for rewriting in explanation.rewriting:
        lines += wrap(f"{rewriting.rule}: {rewriting.note}", _INDENT, _INDENT + "  ")
    if explanation.rewriting:
        lines += _taken(name)
    if found is not None:
        lines += _correspondence(found, is_drawn)
    if explanation.verdict != "moves":
        lines += _reasons(explanation.reasons, _INDENT)
    for number, change in enumerate(explanation.changes):
        lines += _change(change, number)
    if explanation.verdict in ("differs", "unreachable") and not explanation.changes:
        lines += wrap("no change that was tried helps", _INDENT)
    if explanation.is_poor and not explanation.changes:
        lines += wrap("no change that was tried does more of it at once", _INDENT)
    return lines


def _taken(name: str) -> list[str]:
    """Return when a rewriting that makes an instruction match is taken."""
    text = "'isamap map' rewrites so where it is estimated to be faster; "
    return wrap(f"{text}'--instruction {shlex.quote(name)}' does so anyway", _INDENT)


def _places(explanation: Explanation) -> list[str]:
    """Return where an instruction, or each part of a composition, is described; what was proved."""
    entry = explanation.entry
    if entry.span is not None:
        return [f"    at {entry.span}"]
    lines = [f"    {part.name} at {part.span}" for part in parts(entry)]
    if explanation.correspondence is not None:
        for condition in conditions_of(explanation.correspondence.mapping.matching.needle):
            lines += wrap(f"it computes it because {condition.text}", _INDENT, _INDENT + "  ")
    return lines


def _count(found: Correspondence) -> str:
    count = f"{found.count} mapping{'s' * (found.count != 1)}"
    share = f"{100 * found.mapping.utilisation:.3g}%"
    return f"{count}; the best uses {share} of it"


# --- correspondence -------------------------------------------------------------------------------
def _correspondence(found: Correspondence, is_drawn: bool) -> list[str]:
    rows = [(o.text, _place(o), o.bound, _dims(o)) for o in found.operands]
    lines = table(("operand", "is", "stands for", "positions used"), rows, indent="  ")
    if found.axes:
        axes = [
            (
                axis.name,
                ", ".join(f"{form} ({n})" for form, n in axis.forms) or "-",
                bar(axis.extent, axis.used),
                f"{axis.used} of {axis.extent}",
            )
            for axis in found.axes
        ]
        lines += table(("axis", "holds", "", "used"), axes, indent="  ")
    tile_text = ", ".join(f"{v} {n}" for v, n in found.mapping.tile.items() if n > 1)
    lines += wrap(f"tile: {tile_text or 'one iteration'}", _INDENT)
    if is_drawn:
        shown = [o for o in found.operands if len(o.bound) < 40 and not o.text.endswith("before")]
        drawn = [tile(f"{o.name}: {o.bound}", o.dims) for o in shown]
        lines += ["", *side_by_side(drawn), "    (# used, . padded)", ""]
    for axis in found.axes:
        lines += _axis(axis)
    return [*lines, *_reasons((*found.tails, *found.banded), _INDENT)]


def _place(operand: OperandUse) -> str:
    where = "built in" if operand.storage is None else f"@ {operand.storage}"
    return f"{operand.dtype} {where}"


def _dims(operand: OperandUse) -> str:
    texts = [
        f"{index} {used} of {extent}" if used != extent else f"{index} {extent}"
        for index, extent, used in operand.dims
    ]
    return ", ".join(texts) or "one element"


def _axis(axis: AxisUse) -> list[str]:
    if not axis.why:
        return []
    empty = "is empty" if axis.used == 1 else f"is used {axis.used} of {axis.extent}"
    if axis.repeats:
        empty = "does no work of its own"
    return [*wrap(f"axis {axis.name} {empty}:", _INDENT), *_reasons(axis.why, _INDENT + "  ")]


# --- reasons and changes --------------------------------------------------------------------------
def _reasons(reasons: Sequence[Reason], indent: str) -> list[str]:
    lines = []
    for reason in reasons:
        lines += wrap(f"- {reason.text}", indent, indent + "  ")
        places = [str(span) for span in (reason.kernel, reason.hardware) if span is not None]
        if places:
            lines.append(f"{indent}    {', '.join(places)}")
    return lines


def _change(change: Change, number: int) -> list[str]:
    lead = "nearest change" if number == 0 else "or"
    lines = wrap(f"{lead}: {change.text}", _INDENT, _INDENT + "  ")
    lines += [f"      {line}" for line in change.lines]
    done = f"tried: it then uses {100 * change.used:.3g}% of the instruction; "
    done += _EFFECTS[change.effect]
    if change.rest:
        done += f". This machine has no code for it yet: {change.rest}"
    return [*lines, *wrap(done, _INDENT + "  ", _INDENT + "  ")]
