"""Which statements are mapped: those of the kernel, of a rewritten one, or several as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.statements import statement_names
from isamap.lower.choose import Choice, choose
from isamap.lower.grouping import Plan, plan_statements
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.groups import covers
from isamap.mapping.matching import Enumeration
from isamap.pipeline.compete import Competed, compete
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.result import uses
from isamap.pipeline.started import Started
from isamap.rewrite.rule import Rewriting


@dataclass(frozen=True, slots=True)
class Arranged:
    """The kernel that is mapped, its mappings and the first choice among them.

    ``covers`` names for each statement those that it stands for.  ``choice`` is None where some
    statement has no mapping in any way.  ``said`` has for each statement who said what computes
    it, '' if the rules chose that; it is empty where nobody said anything.
    """

    kernel: Kernel
    enumerations: tuple[Enumeration, ...]
    choice: Choice | None
    covers: tuple[tuple[str, ...], ...]
    rewritings: tuple[Rewriting, ...] = ()
    refused: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def arrange_best(
    kernels: Sequence[Started],
    hardware: Accelerator,
    enumerations: Sequence[tuple[Enumeration, ...]],
    options: Options,
    symbols: Mapping[str, int],
    tell: Tell,
) -> Arranged:
    """Return the arrangement with the lowest estimate of any of some kernels that compute the same.

    ``enumerations`` are those of each.  NoMappingError, which is that of the first one, where every
    statement of each has mappings and yet one has none that can be scheduled.
    """
    possible: list[Arranged] = []
    fault: NoMappingError | None = None
    for one, found in zip(kernels, enumerations, strict=True):
        try:
            own = arrange(one.kernel, hardware, found, options, symbols, tell)
        except NoMappingError as error:
            fault = fault or error
        else:
            possible.append(replace(own, rewritings=(*one.rewritings, *own.rewritings)))
    if fault is not None and not any(own.choice for own in possible):
        raise fault
    return min(possible, key=lambda own: _rank(own, hardware, options.instruction))


def arrange(
    kernel: Kernel,
    hardware: Accelerator,
    enumerations: tuple[Enumeration, ...],
    options: Options,
    symbols: Mapping[str, int],
    tell: Tell,
) -> Arranged:
    """Return the arrangement with the lowest estimate.

    Statements are computed together as they are written, and as rules have rewritten them.
    NoMappingError where every statement has mappings and yet one has none that can be scheduled.
    """
    producers = producers_of(hardware)

    def plan(chosen: Kernel, found: Sequence[Enumeration]) -> Plan:
        return plan_statements(
            chosen, hardware, found, options.threads, symbols, producers, options.instruction
        )

    def together(chosen: Plan) -> Choice | None:
        if not chosen.chosen or not all(found.mappings for found in chosen.enumerations):
            return None
        found = chosen.enumerations
        return choose(
            chosen.kernel,
            hardware,
            found,
            options.threads,
            symbols,
            producers,
            tell,
            options.instruction,
        )

    written = plan(kernel, enumerations)
    possible = []
    if (choice := together(written)) is not None:
        possible.append(_arranged(kernel, written, choice, Competed(kernel, enumerations, None)))
    try:
        apart = compete(kernel, hardware, enumerations, options, symbols, tell)
    except NoMappingError:
        if not possible:
            raise
        apart = Competed(kernel, enumerations, None)
    if apart.rewritings and apart.choice is not None:
        after = plan(apart.kernel, apart.enumerations)
        if (choice := together(after)) is not None:
            possible.append(_arranged(apart.kernel, after, choice, apart))
    if apart.choice is not None or not possible:
        nothing = Plan(apart.kernel, (), apart.enumerations)
        possible.append(_arranged(apart.kernel, nothing, apart.choice, apart))

    return min(possible, key=lambda own: _rank(own, hardware, options.instruction))


def _rank(one: Arranged, hardware: Accelerator, wanted: str | None) -> tuple[bool, bool, float]:
    """Return what the best arrangement has least of; one that maps is better than any other."""
    if one.choice is None:
        return True, False, 0.0
    lacks = wanted is not None and not uses(
        one.choice.schedule, one.choice.lowered, hardware, wanted
    )
    return False, lacks, one.choice.estimate.cycles


def _arranged(before: Kernel, chosen: Plan, choice: Choice | None, competed: Competed) -> Arranged:
    names = statement_names(before)
    stands_for = tuple(tuple(names[n] for n in own) for own in covers(before, chosen.chosen))
    return Arranged(
        chosen.kernel,
        chosen.enumerations,
        choice,
        stands_for,
        competed.rewritings,
        competed.refused,
    )
