"""What a schedule prefetches: as it is written, and the few ways that a search tries."""

from collections.abc import Sequence
from math import prod

from isamap.diagnostics import Diagnostic
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Access
from isamap.ir.printer import print_expr
from isamap.mapping.matching import Mapping
from isamap.schedule.reader import squeezed
from isamap.schedule.schedule import Early, Level
from isamap.schedule.treatment import inputs
from isamap.schedule.written import WrittenEarly, WrittenStatement

RULE = "rule"
"""What the schedule has that the others come from."""

EARLY = (RULE, "none", "results", "inputs 1", "inputs 4", "inputs 16", "all 4")
"""What is prefetched: the places of the results of a block before they are computed, and inputs so
many iterations ahead of the innermost loop that moves them."""


LONGEST = 1 << 40
"""Iterations that loops have at most of which only the run tells how many they are."""


def early_of(option: str, mapping: Mapping, levels: Sequence[Level]) -> tuple[Early, ...]:
    """Return what an option of :data:`EARLY` prefetches, the rule's apart; nothing may be left."""
    what, _, number = option.partition(" ")
    found: list[Early] = []
    for n, (_, access) in enumerate(inputs(mapping)) if number else ():
        moving = access.names
        loops = [level.variable for level in levels if level.variable in moving]
        if loops and int(number) < _rounds(access, mapping, levels) and not _is_held(access):
            found.append(Early(n, int(number), loops[-1]))
    if what in ("results", "all") and not _is_held(mapping.matching.statement.target):
        found.append(Early(None))
    return tuple(found)


def resolve_early(
    written: WrittenStatement,
    mapping: Mapping,
    levels: Sequence[Level],
    accelerator: Accelerator,
    faults: list[Diagnostic],
) -> tuple[Early, ...]:
    """Return what a text asks to prefetch; what is wrong with it is added to ``faults``."""
    found: list[Early] = []
    for own in written.prefetch or ():
        if accelerator.prefetched is None:
            text = f"{accelerator.name} has no cache into which lines can be asked for"
            hint = "a description says how with 'prefetch' of a cache"
            faults.append(Diagnostic("E415", text, own.what.span, hint=hint))
            continue
        for number, access in _meant(own, mapping):
            fault = _fault(own, access, number is None, mapping, levels)
            if fault is not None:
                faults.append(fault)
                break
            ahead = int(own.shared) if own.count is None else own.count.number
            variable = None if own.variable is None else own.variable.text
            found.append(Early(number, ahead, variable, own.shared))
        else:
            if not _meant(own, mapping):
                faults.append(_unknown(own, written.name.text, mapping))
    return tuple(dict.fromkeys(found))


def _meant(own: WrittenEarly, mapping: Mapping) -> list[tuple[int | None, Access]]:
    """Return the accesses that are meant, with their numbers: None for the place of the results.

    What is read from the buffer of the results is told by its operand.
    """
    target = mapping.matching.statement.target
    if own.operand is None and _is(own, target):
        return [(None, target)]
    return [
        (n, access)
        for n, (operand, access) in enumerate(inputs(mapping))
        if _is(own, access) and (own.operand is None or own.operand.text == operand)
    ]


def _is(own: WrittenEarly, access: Access) -> bool:
    text = squeezed(print_expr(access))
    return own.what.text in (text, text.partition("[")[0])


def _fault(
    own: WrittenEarly, access: Access, is_result: bool, mapping: Mapping, levels: Sequence[Level]
) -> Diagnostic | None:
    """Return why something cannot be prefetched like that, None if it can."""
    name = own.what.text
    if _is_held(access):
        text = f"where '{name}' lies depends on what arrays hold: it is not known ahead"
        return Diagnostic("E415", text, own.what.span)
    loops = list(dict.fromkeys(level.variable for level in levels))
    if own.variable is None:
        if is_result:
            return None
        text = f"how far ahead '{name}' is wanted is missing"
        known = f"loops over {', '.join(loops)}" if loops else "no loops"
        return Diagnostic(
            "E414", text, own.what.span, hint=f"as in '{name} 2 of k'; it has {known}"
        )
    wanted = own.variable.text
    names = [v.name for v in mapping.matching.statement.variables]
    if wanted not in names:
        hint = f"it has {', '.join(names) or 'none'}"
        return Diagnostic("E412", f"there is no variable '{wanted}'", own.variable.span, hint=hint)
    if wanted not in loops:
        hint = f"there are loops over {', '.join(loops) or 'nothing'}"
        text = f"there is no loop over '{wanted}' of which to be ahead"
        return Diagnostic("E414", text, own.variable.span, hint=hint)
    if wanted not in access.names:
        text = f"'{name}' is the same in all iterations of '{wanted}'"
        moving = ", ".join(v for v in loops if v in access.names)
        hint = f"it moves with {moving or 'none of the loops'}"
        return Diagnostic("E414", text, own.variable.span, hint=hint)
    rounds = _rounds(access, mapping, levels)
    if own.count is not None and own.count.number >= rounds:
        ahead = f"no iteration of '{wanted}' is {own.count.text} ahead"
        text = f"{ahead}: the loops over '{name}' have {rounds} altogether"
        hint = f"{rounds - 1} is the most" if rounds > 1 else "all of it is read in one"
        return Diagnostic("E414", text, own.count.span, hint=hint)
    if own.shared and (is_result or not _passes(wanted, access, levels)):
        text = f"what the next iteration of '{wanted}' has of '{name}' is passed once"
        hint = "'next of' is for inputs that a loop inside does not move, and one in that does"
        return Diagnostic("E414", text, own.variable.span, hint=hint)
    return None


def _rounds(access: Access, mapping: Mapping, levels: Sequence[Level]) -> int:
    """Return how many iterations the innermost loops over an access's variables have altogether.

    In so many all of it is passed once; whatever lies beyond is not read.
    """
    extents = {v.name: v.extent.constant for v in mapping.matching.statement.variables}
    steps = {level.variable: level.step for level in levels if level.variable in access.names}
    counts = (-(-(extents[name] or LONGEST) // step) for name, step in steps.items())
    return min(LONGEST, prod(counts))


def _passes(variable: str, access: Access, levels: Sequence[Level]) -> bool:
    """Return whether the loops inside those over a variable pass over an input several times."""
    at = max(n for n, level in enumerate(levels) if level.variable == variable)
    inside = [level.variable in access.names for level in levels[at + 1 :]]
    return len(inside) > 1 and inside[-1] and not all(inside)


def _unknown(own: WrittenEarly, name: str, mapping: Mapping) -> Diagnostic:
    told = f" as {own.operand.text}" if own.operand else ""
    there = [print_expr(mapping.matching.statement.target)]
    there += [f"{print_expr(access)} as {operand}" for operand, access in inputs(mapping)]
    text = f"{name} touches no '{own.what.text}'{told}"
    return Diagnostic("E412", text, own.what.span, hint=f"there are {'; '.join(there)}")


def _is_held(access: Access) -> bool:
    """Return whether some array says where an access finds its element."""
    return any(index.reads for index in access.indices)
