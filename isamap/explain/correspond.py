"""A mapping taken apart: what lies on each axis and operand, and why axes are empty."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from isamap.diagnostics import Span
from isamap.explain.barriers import Barriers, barriers
from isamap.explain.explanation import AxisUse, Correspondence, Kind, OperandUse, Reason
from isamap.explain.places import axis_span, variable_span
from isamap.explain.variables import stuck
from isamap.ir.nodes import Expr, Permissions
from isamap.ir.printer import print_expr
from isamap.mapping.laws.places import as_written
from isamap.mapping.laws.positions import extent
from isamap.mapping.matching import Axis, Enumeration, Mapping
from isamap.mapping.tiles.operand import needle_access, operand_digits, operand_shape, placed_digits


def correspondence(
    found: Enumeration, permissions: Permissions, chosen: Mapping | None = None
) -> Correspondence:
    """Return the best mapping of an enumeration (or ``chosen``) taken apart.

    The enumeration is that of one instruction, and not empty.
    """
    best = chosen or found.mappings[0]
    matching = best.matching
    used = {axis.name: extent(placed_digits(best, axis.name)) for axis in matching.needle.axes}
    target = matching.needle.target.buffer
    operands = [_operand(best, target, matching.statement.target)]
    operands += [_operand(best, n, expr) for n, expr in matching.operands]
    repeated = _repeated(best)
    asked = barriers(matching, permissions)
    axes = tuple(
        AxisUse(
            axis.name,
            axis.extent,
            used[axis.name],
            tuple((str(d.form), d.extent) for d in placed_digits(best, axis.name)),
            axis.name in repeated,
            _why(axis, used[axis.name], axis.name in repeated, best, found.mappings, asked),
        )
        for axis in matching.needle.axes
        if axis.extent > 1
    )
    return Correspondence(
        best,
        len(found.mappings),
        found.complete,
        tuple(operands),
        axes,
        _tails(best),
        _banded(best, used),
    )


def _operand(mapping: Mapping, name: str, bound: Expr) -> OperandUse:
    access = needle_access(mapping.matching, name)
    operand = mapping.matching.needle.operand(name)
    shape = operand_shape(mapping, name) or (1,) * len(access.indices)
    placed = operand_digits(mapping, name)
    parts = _parts(mapping)
    dims = tuple(
        (str(index), whole, min(extent(digits), parts.get(str(index), whole)))
        for index, whole, digits in zip(access.indices, shape, placed, strict=True)
    )
    text = print_expr(as_written(access))
    if name == mapping.matching.needle.target.buffer and bound != mapping.matching.statement.target:
        text += " before"
    shown = mapping.matching.needle.shown(name)
    return OperandUse(shown, text, operand.storage, str(operand.dtype), print_expr(bound), dims)


def _parts(mapping: Mapping) -> dict[str, int]:
    """Return how many positions of each part of a merged axis are used."""
    found: dict[str, int] = {}
    for axis in mapping.matching.needle.axes:
        used, inside = extent(placed_digits(mapping, axis.name)), 1
        for name, size in reversed(axis.parts):
            found[name] = min(size, -(-used // inside))
            inside *= size
    return found


def _why(
    own: Axis,
    used: int,
    repeats: bool,
    best: Mapping,
    mappings: Sequence[Mapping],
    asked: Barriers,
) -> tuple[Reason, ...]:
    """Return why a quarter of an axis or more does no work, nothing if less."""
    matching, axis = best.matching, own.name
    if 4 * used > 3 * own.extent and not repeats:
        return ()
    statement = matching.statement
    place = axis_span(matching.needle, axis)
    known = {v.name: v.extent.constant for v in statement.variables}
    on_axis = [d.form.names for d in placed_digits(best, axis)]
    here = frozenset().union(*on_axis)
    reasons: list[Reason] = []
    for digit in placed_digits(best, axis):
        for v in sorted(digit.form.names):
            if repeats:
                text = f"{v} lies on other axes, too"
                reasons.append(Reason("extent", text, variable_span(statement, v), place))
            elif known[v] == best.tile[v]:
                text = f"{v} has only {known[v]} iterations"
                reasons.append(Reason("extent", text, variable_span(statement, v), place))
            else:
                text = f"a larger tile of {v} than {best.tile[v]} does not fit its other axes"
                reasons.append(Reason("extent", text, variable_span(statement, v), place))
    grouped: dict[tuple[Reason, ...], list[str]] = {}
    for variable in statement.variables:
        v = variable.name
        if v in here:
            continue
        told = _absent(v, axis, place, best, mappings, asked)
        grouped.setdefault(told, []).append(v)
    for told, names in grouped.items():
        lead = ", ".join(names)
        for reason in told:
            joint = ": " if reason.kind in _SENTENCES else ": each " if len(names) > 1 else " "
            text = f"{lead}{joint}{reason.text}"
            reasons.append(Reason(reason.kind, text, reason.kernel, reason.hardware))
    return tuple(reasons)


def _repeated(mapping: Mapping) -> frozenset[str]:
    """Return the axes that only repeat variables of others; those that no output has, if any."""
    digits = {
        axis.name: frozenset().union(*(d.form.names for d in placed_digits(mapping, axis.name)))
        for axis in mapping.matching.needle.axes
    }
    found = {
        axis
        for axis, names in digits.items()
        if names and names <= frozenset().union(*(n for a, n in digits.items() if a != axis))
    }
    outputs = {i.name for i in mapping.matching.needle.target.indices}
    return frozenset(found - outputs or found)


def _absent(
    v: str,
    axis: str,
    place: Span | None,
    best: Mapping,
    mappings: Sequence[Mapping],
    asked: Barriers,
) -> tuple[Reason, ...]:
    """Return why a variable does not lie on an axis."""
    statement = best.matching.statement
    if v not in asked.whole.variables:
        return (replace(stuck(statement, v), hardware=place),)
    elsewhere = [p.axis for p in best.matching.placements if v in p.form.names]
    if elsewhere and best.tile[v] > 1:
        text = f"lies on {', '.join(dict.fromkeys(elsewhere))} already"
        return (Reason("extent", text, variable_span(statement, v), place),)
    barrier = asked.at(v, axis)
    if barrier.verdict == "forbidden":
        return barrier.reasons
    others = [
        m
        for m in mappings
        if m.tile.get(v, 1) > 1
        and any(p.axis == axis and v in p.form.names for p in m.matching.placements)
    ]
    if others:
        share = 100 * max(m.utilisation for m in others)
        text = f"may lie on it, in mappings that use {share:.3g}% of the instruction at most"
    elif barrier.verdict == "legal":
        text = "may lie on it only beside another axis that holds it, which does no more work"
    else:
        text = "may or may not lie on it: that was not decided within the limits"
    kind: Kind = "extent" if barrier.verdict == "legal" else "limit"
    return (Reason(kind, text, variable_span(statement, v), place),)


_SENTENCES = ("law 1", "law 2", "law 4", "permission")


def _tails(mapping: Mapping) -> tuple[Reason, ...]:
    """Return the variables whose last tile is largely empty."""
    reasons = []
    for variable in mapping.matching.statement.variables:
        extent, tile = variable.extent.constant, mapping.tile.get(variable.name, 1)
        if extent is None or extent % tile == 0:
            continue
        steps = -(-extent // tile)
        if 4 * extent <= 3 * steps * tile:
            rest = extent - (steps - 1) * tile
            text = (
                f"{variable.name} has {extent} iterations in {steps} tiles of {tile}: "
                f"the last one has {rest}"
            )
            span = variable_span(mapping.matching.statement, variable.name)
            reasons.append(Reason("extent", text, span))
    return tuple(reasons)


def _banded(mapping: Mapping, used: dict[str, int]) -> tuple[Reason, ...]:
    """Return which digits move together, so that positions are used that do no work."""
    spent, done = prod(used.values()), prod(mapping.tile.values())
    if done >= spent:
        return ()
    where: dict[str, list[str]] = {}
    for axis in mapping.matching.needle.axes:
        for digit in placed_digits(mapping, axis.name):
            for v in digit.form.names:
                where.setdefault(v, []).append(f"{digit.form} on {axis.name}")
    linked = dict.fromkeys(text for texts in where.values() if len(texts) > 1 for text in texts)
    text = f"of {spent} combinations of used positions {done} are iterations"
    text += f": {', '.join(linked)} move together" if linked else ""
    statement = mapping.matching.statement
    return (Reason("extent", text, statement.span),)
