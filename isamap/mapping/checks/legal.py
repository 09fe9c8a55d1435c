"""The checker: is a matching legal for every tile?  By the laws' linear form, without a solver."""

from dataclasses import dataclass

from isamap.ir.nodes import Permissions
from isamap.ir.printer import print_expr
from isamap.mapping.axes.rows import as_form
from isamap.mapping.groups import whole_variables
from isamap.mapping.laws import functional
from isamap.mapping.laws.composite import layout_of
from isamap.mapping.laws.filler import legal_filling
from isamap.mapping.laws.laws import Breach, breaches
from isamap.mapping.laws.problem import Local, Problem, problem
from isamap.mapping.matching import Matching


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a matching breaks, told in the kernel's names.

    ``law`` is 1 to 5; 0 where a placement is none at all or the kernel forbids it.
    """

    law: int
    message: str


def violations(
    matching: Matching,
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> tuple[Violation, ...]:
    """Return the laws that a matching breaks; none if it is legal for every tile that fits."""
    whole = problem(matching.statement, matching.needle, matching.operands, permissions)
    outer = whole_variables(matching.statement) - set(matching.inner)
    if outer:
        text = f"what comes after the reduction over {min(outer)} needs all of it at once"
        return (Violation(3, text),)
    if legal_filling(whole, matching) is not None:
        return ()
    filling = whole.fillings[0]
    broken = _breaches(whole, matching, whole.local(filling))
    if broken is None:
        return (Violation(0, "something is placed that is no form of this statement"),)
    found = [_told(whole, matching, breach) for breach in broken]
    if whole.torn is not None:
        found.append(Violation(5, _torn(whole, matching, whole.torn.places[1].operand)))
    elif not whole.is_open(filling):
        found.append(
            Violation(4, "an axis of the instruction cannot be padded: no constant keeps it silent")
        )
    return tuple(dict.fromkeys(found))


def _breaches(whole: Problem, matching: Matching, local: Local) -> tuple[Breach, ...] | None:
    if whole.seen:
        layout = layout_of(whole, matching.placements)
        if layout is None:
            return None
        return tuple(Breach(*found) for found in functional.breaches(local, layout))
    placed = whole.placed(matching.placements)
    return None if placed is None else tuple(breaches(local, placed))


def _told(whole: Problem, matching: Matching, breach: Breach) -> Violation:
    form = as_form(breach.vector, whole.variables)
    name = whole.operands[breach.operand]
    target = matching.statement.target.buffer
    match breach.law:
        case 0:
            return Violation(0, f"{form} may not be reordered: the kernel forbids reassociation")
        case 1:
            return Violation(1, f"operand {name} would need different elements for each {form}")
        case 2:
            return Violation(2, f"elements of {target} would be spread over places of {name}")
        case 4:
            return Violation(4, f"padding repeats iterations: no single operand sees {form}")
        case 7:
            return Violation(5, _torn(whole, matching, breach.operand))
        case 8:
            text = "padding repeats iterations: what would have to be unused at one place of an "
            return Violation(4, text + "operand is in use at another")
        case _:
            return Violation(4, "padding repeats iterations: no single operand ties the digits")


def _torn(whole: Problem, matching: Matching, operand: int) -> str:
    """Return which places of an operand want different elements."""
    needle = matching.needle
    register = next(r for r in whole.registers if operand in [p.operand for p in r.places])
    names = [whole.operands[place.operand] for place in register.places]
    told = " and ".join(
        f"{print_expr(matching.bound(name))} as {needle.shown(name)}"
        for name in (names[0], whole.operands[operand])
    )
    return f"operand {needle.owner(names[0])} is one register, and would hold {told}"
