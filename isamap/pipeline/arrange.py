"""Which statements are mapped: those of the kernel, of a rewritten one, or several as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.lower.choose import Choice, choose
from isamap.lower.grouping import Plan, plan_statements
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.groups import covers
from isamap.mapping.matching import Enumeration
from isamap.pipeline.compete import Competed, compete
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.result import statement_names, uses
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
    producers = Producers(hardware)

    def plan(chosen: Kernel, found: Sequence[Enumeration]) -> Plan:
        return plan_statements(
            chosen, hardware, found, options.threads, symbols, producers, options.instruction
        )

    def together(chosen: Plan) -> Choice | None:
        if not chosen.chosen or not all(found.mappings for found in chosen.enumerations):
            return None
        found = chosen.enumerations
        return choose(chosen.kernel, hardware, found, options.threads, symbols, producers, tell)

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

    def rank(one: Arranged) -> tuple[bool, float]:
        if one.choice is None:
            return False, 0.0
        wanted = options.instruction
        lacks = wanted is not None and not uses(one.choice.schedule, wanted)
        return lacks, one.choice.estimate.cycles

    return min(possible, key=rank)


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
