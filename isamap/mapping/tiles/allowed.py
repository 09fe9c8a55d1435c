"""What a tile must obey besides the laws: an instruction's own tables and its constraints."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.ir.index import const
from isamap.ir.nodes import Access, Expr, Literal, Permissions
from isamap.mapping.axes.room import axis_extent
from isamap.mapping.axes.rows import row
from isamap.mapping.laws.filler import legal_filling
from isamap.mapping.laws.problem import problem
from isamap.mapping.matching import Mapping
from isamap.mapping.needles.demands import free_pitches
from isamap.mapping.needles.needles import operand_accesses
from isamap.mapping.tiles.operand import placed_digits

MOST_POINTS = 1 << 18
"""Elements of a table that are compared at most."""

MOST_TAILS = 4096
"""Combinations of whole and short tiles that are looked at."""


def refusal(
    mapping: Mapping,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> str:
    """Return why an instruction does not allow a mapping, or nothing."""
    matching = mapping.matching
    tables = dict(matching.operands).keys() - dict(matching.fed).keys()
    if tables:
        whole = problem(matching.statement, matching.needle, matching.operands, permissions)
        filling = legal_filling(whole, matching)
        for name in sorted(tables):
            needed = filling is not None and frozenset((name,)) in filling.sets
            if needed and (reason := _unused(mapping, name)) != "":
                return reason
    for name, expr in mapping.matching.operands:
        if (reason := _table_refusal(mapping, name, expr)) != "":
            return reason
    return _constraint_refusal(mapping)


def _unused(mapping: Mapping, operand: str) -> str:
    """Return why some element of a table is not used in every tile, or nothing."""
    needle = mapping.matching.needle
    names = {n for index in operand_accesses(needle)[operand].indices for n in index.names}
    extents = {v.name: v.extent for v in mapping.matching.statement.variables}
    for axis in (axis for axis in needle.axes if axis.name in names):
        digits = placed_digits(mapping, axis.name)
        ragged = [
            n for d in digits for n in d.form.names if extents[n] % mapping.tile[n] != const(0)
        ]
        if ragged or prod(d.extent for d in digits) < axis.extent:
            return (
                f"its table {operand} has numbers along {axis.name} that are not used: nothing "
                "keeps them silent"
            )
    return ""


# --- tables ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Compared:
    """The numbers of an instruction's table, and what the kernel has for them, point by point.

    ``points`` has the values of variables, ``where`` the position in the kernel's table for each of
    its dimensions (empty where it has a literal).
    """

    points: Dict[str, np.ndarray]
    own: np.ndarray
    wanted: np.ndarray
    where: tuple[np.ndarray, ...]


def compare_table(mapping: Mapping, operand: str, expr: Expr) -> Compared | str:
    """Compare a table of an instruction with what the kernel has there; or why that cannot be."""
    needle = mapping.matching.needle
    contents = needle.operand(operand).contents
    assert contents is not None, "only tables are compared"
    access = operand_accesses(needle)[operand]
    extents = {v.name: v.extent.constant for v in mapping.matching.statement.variables}
    axes = [a for a in needle.axes if any(a.name in index.names for index in access.indices)]
    digits = {axis.name: placed_digits(mapping, axis.name) for axis in axes}
    moving = {n for own in digits.values() for digit in own for n in digit.form.names}
    indices = expr.indices if isinstance(expr, Access) else ()
    used = frozenset().union(*(index.names for index in indices))
    box: dict[str, int] = {}
    for name in sorted(moving | used):
        size = extents.get(name) if name in used else mapping.tile[name]
        if size is None:
            return f"its table {operand}: {name} has no extent that is a number"
        box[name] = size
    if prod(box.values()) > MOST_POINTS:
        return f"its table {operand}: too many elements to compare"
    grid = np.indices(tuple(box.values())).reshape(len(box), -1) if box else np.zeros((0, 1), int)
    points = dict(zip(box, grid, strict=True))
    inside = {name: value % mapping.tile.get(name, 1) for name, value in points.items()}
    still = {a.name: 0 for a in needle.axes}
    places = {
        axis: sum(((d.form.evaluate(inside) - d.low) * d.weight for d in own), 0)
        for axis, own in digits.items()
    }
    at = [np.asarray(index.evaluate({**still, **places})) for index in access.indices]
    own_texts = _elements(contents.elements, contents.shape, at)
    if isinstance(expr, Literal):
        return Compared(points, own_texts, np.asarray(expr.text), ())
    assert isinstance(expr, Access)
    assert expr.contents is not None
    where = tuple(np.asarray(index.evaluate(points)) for index in expr.indices)
    wanted = _elements(expr.contents.elements, expr.contents.shape, where)
    return Compared(points, own_texts, wanted, where)


def _table_refusal(mapping: Mapping, operand: str, expr: Expr) -> str:
    """Return at which element a table of the instruction is not what the kernel has there."""
    if mapping.matching.needle.operand(operand).contents is None:
        return ""
    found = compare_table(mapping, operand, expr)
    if isinstance(found, str):
        return found
    differ = np.atleast_1d(found.own != found.wanted)
    if not differ.any():
        return ""
    first = int(np.argmax(differ))
    mine = np.atleast_1d(found.own)[min(first, np.size(found.own) - 1)]
    theirs = np.atleast_1d(found.wanted)[min(first, np.size(found.wanted) - 1)]
    shown = ", ".join(f"{name} = {int(value[first])}" for name, value in found.points.items())
    return f"its table {operand} holds {mine} where the kernel has {theirs}" + (
        f" ({shown})" if shown else ""
    )


def _elements(
    elements: Sequence[Literal], shape: tuple[int, ...], at: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the texts of some elements of a table; one outside it is nothing."""
    texts = np.array([literal.text for literal in elements], object).reshape(shape)
    if not shape:
        return texts
    at = np.broadcast_arrays(*at)  # An index without a variable is one number.
    inside = [np.clip(i, 0, n - 1) for i, n in zip(at, shape, strict=True)]
    found = np.asarray(texts[tuple(inside)], object)
    outside = np.logical_or.reduce([i != j for i, j in zip(at, inside, strict=True)])
    return np.where(outside, "nothing", found)


# --- constraints ----------------------------------------------------------------------------------
def _constraint_refusal(mapping: Mapping) -> str:
    """Return which constraint a tile breaks, in its whole or in a short tile at an end."""
    if not mapping.matching.needle.entry.constraints:
        return ""
    broken = broken_constraint(mapping, {name: () for name in mapping.matching.inner})
    return broken if broken is not None else "its constraints: too many short tiles to look at"


def broken_constraint(mapping: Mapping, steps: Dict[str, Sequence[int]]) -> str | None:
    """Return which constraint some tile breaks, or nothing; None where there are too many tiles.

    ``steps`` are those into which the range of each inner variable is cut before it is cut into
    tiles, outermost first: each leaves a short tile at its own end.  What is demanded of a pitch is
    not looked at: it is, where it is known how the operand lies in memory.
    """
    entry = mapping.matching.needle.entry
    inner = mapping.matching.inner
    axes = mapping.matching.needle.axes
    forms = {a.name: [row(f, inner) for f in mapping.matching.on_axis(a.name)] for a in axes}
    lives = [_live_extents(mapping, name, steps[name]) for name in inner]
    if prod(len(own) for own in lives) > MOST_TAILS:
        return None
    bounds = _bounding(entry)
    pitches = free_pitches(entry.instruction)
    demanded = [c for c in entry.constraints if not c.names & pitches.keys()]
    for live in product(*lives):
        used = {name: axis_extent(own, live) for name, own in forms.items()}
        used |= {e: used[axis] for e, axis in bounds.items() if axis in used}
        used |= {e.name: e.value for e in entry.instruction.extents if e.value is not None}
        for constraint in demanded:
            if not constraint.names <= used.keys():
                missing = min(constraint.names - used.keys())
                return f"its constraint {constraint.text}: {missing} is not known here"
            if not constraint.holds(used):
                shown = ", ".join(f"{n} = {used[n]}" for n in sorted(constraint.names))
                return f"its constraint {constraint.text} does not hold: {shown}"
    return ""


def _live_extents(mapping: Mapping, name: str, steps: Sequence[int]) -> tuple[int, ...]:
    """Return how many iterations of an inner variable one tile may have."""
    extents = {v.name: v.extent.constant for v in mapping.matching.statement.variables}
    tile, extent = mapping.tile[name], extents[name]
    if extent is None:
        return tuple(range(1, tile + 1))
    lengths = {extent}
    for step in (*steps, tile):
        whole = {step for length in lengths if length >= step}
        lengths = whole | {length % step for length in lengths if length % step}
    return tuple(sorted(lengths))


def _bounding(entry: Entry) -> dict[str, str]:
    """Return the axis that each extent of an operand's shape bounds."""
    found: dict[str, str] = {}
    for statement in entry.instruction.statements:
        for variable in statement.variables:
            if (name := variable.extent.name) is not None:
                found[name] = variable.name
    return found
