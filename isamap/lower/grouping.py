"""Whether statements are computed together: by what it is estimated to take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import weights
from isamap.ir.nodes import Kernel, Statement
from isamap.ir.ranges import intervals_before
from isamap.ir.statements import bind_extents, operations, reduces
from isamap.lower.alternatives import alternatives
from isamap.lower.judge import Judge
from isamap.mapping.compose.compose import compositions
from isamap.mapping.compose.composed import is_of
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.fragments.produce import Producers, producers_of
from isamap.mapping.groups import Group, grouped, groups
from isamap.mapping.matching import Enumeration, Needle
from isamap.mapping.needles.needles import Needles, covered, needles, programs, roots
from isamap.mapping.refused import refusals


@dataclass(frozen=True, slots=True)
class Plan:
    """The statements that are mapped, and the legal mappings of each.

    ``kernel`` is the kernel with ``chosen`` groups as one statement each.
    """

    kernel: Kernel
    chosen: tuple[Group, ...]
    enumerations: tuple[Enumeration, ...]


def plan_statements(
    kernel: Kernel,
    accelerator: Accelerator,
    enumerations: Sequence[Enumeration],
    threads: int = 1,
    symbols: Mapping[str, int] | None = None,
    producers: Producers | None = None,
    instruction: str | None = None,
) -> Plan:
    """Return which statements to compute together, each group by one instruction.

    ``enumerations`` are the legal mappings of the single statements, which may be none.  Where
    statements can be computed together and apart, the lower estimate decides.  With
    ``instruction`` those that it computes, together or alone, are left to it.
    """
    found = group_mappings(kernel, needles(accelerator))
    wanted: set[int] = set()
    if instruction is not None:
        found, wanted = _preferred(kernel, accelerator, enumerations, found, instruction)
    if not found:
        return Plan(kernel, (), tuple(enumerations))
    judge = Judge(accelerator, producers or producers_of(accelerator), symbols, threads)
    costs: dict[tuple[int, int], float] = {}
    touched = {n for group, _ in found for n in range(group.first, group.first + group.count)}
    for number, enumeration in enumerate(enumerations):
        if number in touched and enumeration.mappings and number not in wanted:
            costs[number, 0] = _cycles(kernel, judge, number, enumeration)
    together: dict[tuple[int, int], tuple[Group, Enumeration]] = {}
    for group, enumeration in found:
        key = group.first, group.count
        one = grouped(kernel, (group,))
        cycles = _cycles(one, judge, group.first, enumeration)
        if cycles < float("inf"):
            together[key], costs[key] = (group, enumeration), cycles
    untouched = {(n, 0): 0.0 for n in range(len(enumerations)) if n not in touched}
    chosen = _cheapest(len(enumerations), {**untouched, **costs})
    kept: list[Enumeration] = []
    number = 0
    while number < len(enumerations):
        count = chosen.get(number, 0)
        kept.append(together[number, count][1] if count else enumerations[number])
        number += count or 1
    picked = tuple(together[first, count][0] for first, count in sorted(chosen.items()) if count)
    return Plan(grouped(kernel, picked), picked, tuple(kept))


def _preferred(
    kernel: Kernel,
    accelerator: Accelerator,
    enumerations: Sequence[Enumeration],
    found: Sequence[tuple[Group, Enumeration]],
    instruction: str,
) -> tuple[tuple[tuple[Group, Enumeration], ...], set[int]]:
    """Return the groups that may be computed as one if an instruction is asked for.

    The second part are the statements that it computes only together with others.
    """
    entries = tuple(
        e for e in accelerator.entries if instruction in (e.name, e.instruction.generic)
    )
    own = group_mappings(kernel, needles(replace(accelerator, entries=entries)))
    alone = {
        number
        for number, enumeration in enumerate(enumerations)
        if any(is_of(m.matching.needle, instruction) for m in enumeration.mappings)
    }
    together = {n for group, _ in own for n in _numbers(group)}
    rest = (one for one in found if not (alone | together) & set(_numbers(one[0])))
    return (*own, *rest), together - alone


def _numbers(group: Group) -> range:
    return range(group.first, group.first + group.count)


def group_mappings(kernel: Kernel, index: Needles) -> tuple[tuple[Group, Enumeration], ...]:
    """Return the groups that some instruction computes as one, with their legal mappings."""
    found = []
    for group in groups(kernel):
        useful = _useful(kernel, group, index)
        if useful is None:
            continue
        known = intervals_before(kernel, group.first)
        enumeration = enumerate_mappings(group.statement, useful, kernel.permissions, known=known)
        if enumeration.mappings:
            found.append((group, enumeration))
    return tuple(found)


def group_reasons(kernel: Kernel, index: Needles, number: int) -> tuple[str, ...]:
    """Return why instructions whose body fits compute a statement neither alone nor with others."""
    bound = bind_extents(kernel)
    names = [s.target.buffer for s in bound.statements]
    found = list(refusals(bound.statements[number], index, kernel.permissions))
    for group in groups(kernel):
        if group.first <= number < group.first + group.count:
            own = dict.fromkeys(names[group.first : group.first + group.count])
            known = intervals_before(kernel, group.first)
            refused = compositions(group.statement, index, 0, known, kernel.permissions).refused
            lines = (
                *refusals(group.statement, index, kernel.permissions),
                *map(str, refused if group.count > 1 else ()),
            )
            together = f" (for {' and '.join(own)} together)" if group.count > 1 else ""
            found += [f"{line}{together}" for line in lines]
    return tuple(dict.fromkeys(found))


def _useful(kernel: Kernel, group: Group, index: Needles) -> Needles | None:
    """Return the instructions that do more of a group than any one of its statements asks for."""
    run = kernel.statements[group.first : group.first + group.count]
    alone = max(operations(s.value) + (s.reduction != "=") for s in run)
    within = bool(reduces(group.statement.value))
    names = {
        needle.name
        for needle in _fitting(group.statement, index)
        if within or covered(needle) > alone
    }
    if not names:
        return None
    entries = tuple(e for e in index.accelerator.entries if e.name in names)
    return needles(replace(index.accelerator, entries=entries))


def _fitting(statement: Statement, index: Needles) -> Iterator[Needle]:
    """Yield the needles that have a statement's body, for all values of operands or for some."""
    for needle, _ in roots(statement, index):
        yield needle
    for needle in index.partial(statement):
        if programs(needle, statement, index):
            yield needle


def _cycles(kernel: Kernel, judge: Judge, number: int, enumeration: Enumeration) -> float:
    """Return the lowest estimate of a statement, weighed; infinity if it cannot be scheduled."""
    tried = alternatives(kernel, judge, number, enumeration)
    cycles = min((a.estimate.cycles for a in tried if a.estimate), default=float("inf"))
    return cycles * weights(kernel)[number]


def _cheapest(count: int, costs: Mapping[tuple[int, int], float]) -> dict[int, int]:
    """Return how many statements begin together at each number (0: one alone), at least cost.

    ``costs`` has (first, how many) as keys.  A statement that nothing computes costs infinity, and
    at equal cost more is done together.
    """
    best: list[tuple[float, int, dict[int, int]]] = [(0.0, 0, {})]
    for end in range(1, count + 1):
        options = []
        for first in range(end):
            size = end - first
            for key in ((first, size), (first, 0)) if size == 1 else ((first, size),):
                cost = costs.get(key, float("inf"))
                if key == (first, 0) or cost < float("inf"):
                    before, units, steps = best[first]
                    options.append((before + cost, units + 1, {**steps, first: key[1]}))
        best.append(min(options, key=lambda option: option[:2]))
    return best[count][2]
