"""What the unused elements of an instruction's operands must hold."""

from isamap.ir.nodes import Literal, Permissions
from isamap.mapping.laws.composite import layout_of
from isamap.mapping.laws.functional import is_legal_layout
from isamap.mapping.laws.killing import Filling, literal_of, zero
from isamap.mapping.laws.laws import is_legal
from isamap.mapping.laws.problem import Problem, problem
from isamap.mapping.matching import Matching
from isamap.mapping.needles.needles import operand_accesses


def fillers(
    matching: Matching,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> dict[str, Literal | None]:
    """Return for each input operand what its dead elements must hold; None: anything.

    A dead element is one that no iteration of the tile uses.  Where a value is given it is needed
    only along :func:`filled_axes` and between digits that depend on each other (a variable on two
    axes, a sum beside its terms): an element that is dead because its place along an axis of the
    output lies beyond the tile meets dead outputs only.
    """
    whole = problem(matching.statement, matching.needle, matching.operands, permissions)
    return fillers_of(whole, matching)


def fillers_of(whole: Problem, matching: Matching) -> dict[str, Literal | None]:
    """Return the :func:`fillers` of a matching that solves a problem."""
    filling = legal_filling(whole, matching)
    assert filling is not None, "the matching is legal"
    constants = dict(filling.constants)
    bound = dict(matching.operands)
    read = operand_accesses(matching.needle)
    built_in = bound.keys() - dict(matching.fed).keys()
    result: dict[str, Literal | None] = {}
    for n, name in enumerate(whole.operands[1:], 1):
        expr = bound[name]
        if whole.is_fixed(n) or name in built_in:
            result[name] = None
        elif isinstance(expr, Literal):
            result[name] = expr
        else:
            dtype = read[name].dtype
            result[name] = constants.get(name, literal_of(zero(dtype), dtype))
    for register in whole.registers:
        names = [whole.operands[place.operand] for place in register.places]
        needed = next((result[name] for name in names if result[name] is not None), None)
        result.update(dict.fromkeys(names, needed))
    return result


def filled_axes(matching: Matching, operand: str) -> tuple[str, ...]:
    """Return the axes along which an input operand's elements beyond the tile need the filler.

    They are the ones that the operand sees and the target does not.
    """
    whole = problem(matching.statement, matching.needle, matching.operands)
    owned = whole.seen[0].alone if whole.seen else whole.sees[0]
    seen = whole.sees[whole.operands.index(operand)] - owned
    return tuple(whole.axes[n] for n in sorted(seen))


def legal_filling(whole: Problem, matching: Matching) -> Filling | None:
    """Return the first choice of constants under which a matching is legal, or None."""
    if whole.seen:
        layout = layout_of(whole, matching.placements)
        if layout is None:
            return None
        for filling in whole.fillings:
            if whole.is_open(filling) and is_legal_layout(whole.local(filling), layout):
                return filling
        return None
    placed = whole.placed(matching.placements)
    if placed is None:
        return None
    for filling in whole.fillings:
        if whole.is_open(filling) and is_legal(whole.local(filling), placed):
            return filling
    return None
