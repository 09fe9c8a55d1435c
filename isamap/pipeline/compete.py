"""Which kernel is mapped: the one that was written, or one that it can be rewritten to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from isamap.diagnostics import Diagnostic, NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.ir.ahead import weights
from isamap.ir.nodes import Kernel, Op
from isamap.ir.statements import bind_extents, zero_based
from isamap.lower.choose import Choice, choose
from isamap.mapping.fragments.produce import producers_of
from isamap.mapping.matching import Enumeration
from isamap.mapping.needles.needles import needles
from isamap.pipeline.costs import Costs
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.result import issue_cycles
from isamap.pipeline.rewritten import Limits, Rewriter
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting

FED = 2
"""How many times as long as its calls a statement takes, with memory that is never busy, where
bringing operands to them is what it waits for.
"""

NOTED = 0.01
"""The part of all cycles that other ways must promise to save in rounds to be looked at."""


@dataclass(frozen=True, slots=True)
class Competed:
    """The kernel that won, its mappings and the first choice among them.

    ``choice`` is None where some statement has no mapping, rewritten or not.  ``refused`` are
    rewritings that would have been looked at, had their lemmas been proved.
    """

    kernel: Kernel
    enumerations: tuple[Enumeration, ...]
    choice: Choice | None
    rewritings: tuple[Rewriting, ...] = ()
    refused: tuple[str, ...] = ()


def compete(
    kernel: Kernel,
    hardware: Accelerator,
    enumerations: tuple[Enumeration, ...],
    options: Options,
    symbols: Mapping[str, int],
    tell: Tell,
) -> Competed:
    """Return the best kernel that the rules give, which may be the one that was written.

    NoMappingError where every statement has mappings and yet one has none that can be scheduled.
    """
    producers = producers_of(hardware)
    may_rewrite = options.rewrite is None or bool(options.rewrite)

    def first(chosen: Kernel, found: Sequence[Enumeration]) -> Choice | None:
        if not all(one.mappings for one in found):
            return None
        return choose(
            chosen,
            hardware,
            found,
            options.threads,
            symbols,
            producers,
            tell,
            options.instruction,
        )

    fault: NoMappingError | None = None
    choice: Choice | None = None
    try:
        choice = first(kernel, enumerations)
    except NoMappingError as error:
        if not may_rewrite:
            raise
        fault = error
    if not may_rewrite:
        return Competed(kernel, enumerations, choice)
    costs = Costs(
        hardware, needles(hardware), symbols, options.threads, producers, options.instruction
    )
    rewriter = Rewriter(costs, options.rewrite)
    own = normal(kernel)
    # A variable may have another name there: mappings are those of a statement as it is written.
    written_so = [zero_based(statement) for statement in bind_extents(kernel).statements]
    known = tuple(
        found if own.statements[n] == written_so[n] else costs.mapped(own, n)
        for n, found in enumerate(enumerations)
    )
    current = Competed(own, known, choice)
    lacking = costs.lacking(enumerations)
    if lacking:
        limits = [Limits() for _ in own.statements]
        current = _rewritten(current, rewriter, lacking, limits, demanded=True)
    if choice is None or current.rewritings:
        numbers = [*range(len(current.kernel.statements))]
        ways = [[n for n in numbers if not current.enumerations[n].mappings]]
        if fault is not None and not current.rewritings:
            # Without limits of its own a statement becomes anything: others stay as they are first.
            failing = [n for n in numbers if not costs.schedules(own, n, known[n])]
            ways = [failing, numbers] if 0 < len(failing) < len(numbers) else [numbers]
        before = current
        for wanted in ways:
            if wanted:
                current = _rewritten(before, rewriter, wanted, [Limits() for _ in numbers])
            if current.rewritings:
                try:
                    choice = first(current.kernel, current.enumerations)
                except NoMappingError:
                    if wanted is ways[-1]:
                        raise
                else:
                    break
        if current.rewritings:
            current = Competed(
                current.kernel,
                current.enumerations,
                choice,
                current.rewritings,
                current.refused,
            )
        elif fault is not None:
            raise _with_notes(fault, current.refused)
        if choice is None:
            return current
    before = current
    tell("rewrite")
    current = _rewritten(current, rewriter, None, _limits(current, choice, symbols))
    if not current.rewritings:
        return Competed(kernel, enumerations, choice, (), current.refused)
    written = choice
    if current.rewritings != before.rewritings:
        choice = first(current.kernel, current.enumerations)
        if choice is None or not choice.estimate.is_below(written.estimate):
            # What works less does not pay here: without that, once more.
            rewriter.lighter = False
            current = _rewritten(before, rewriter, None, _limits(before, written, symbols))
            choice = written
            if current.rewritings != before.rewritings:
                choice = first(current.kernel, current.enumerations)
            if not current.rewritings:
                return Competed(kernel, enumerations, choice, (), current.refused)
    if choice is None:
        return current
    # Each was rewritten by itself; in rounds with others there is less to do at once.
    for rewriter.rounds in _rounds(choice):
        other = _rewritten(before, rewriter, None, _limits(before, written, symbols))
        if rewriter.gained > NOTED * choice.estimate.cycles:
            found = first(other.kernel, other.enumerations)
            if found is not None and found.estimate.is_below(choice.estimate):
                current, choice = other, found
                break
    return Competed(
        current.kernel, current.enumerations, choice, current.rewritings, current.refused
    )


def _rounds(choice: Choice) -> tuple[dict[str, int], ...]:
    """Return the variables of outermost loops that statements share, with iterations of a round:
    one, and those of the choice.
    """
    schedule = choice.schedule
    shared = [n for first, others in schedule.rounds.items() for n in (first, *others)]
    outermost = [schedule.statements[n].levels[0] for n in shared]
    chosen = {level.variable: level.step for level in outermost}
    one = dict.fromkeys(chosen, 1)
    if not chosen:
        return ()
    return (one,) if one == chosen else (one, chosen)


def _with_notes(fault: NoMappingError, refused: Sequence[str]) -> NoMappingError:
    """Return a fault that also tells the rewritings that would have been looked at."""
    notes = tuple(Diagnostic("", f"not rewritten by {r}", severity="note") for r in refused)
    return NoMappingError([replace(d, notes=(*d.notes, *notes)) for d in fault.diagnostics])


def _rewritten(
    before: Competed,
    rewriter: Rewriter,
    numbers: Sequence[int] | None,
    limits: Sequence[Limits],
    demanded: bool = False,
) -> Competed:
    """Return what the rules make of some statements: of all, if no numbers are given."""
    kernel = before.kernel
    for number, found in enumerate(before.enumerations):
        rewriter.costs.know(kernel, number, found)
    only = frozenset(range(len(kernel.statements)) if numbers is None else numbers)
    after = rewriter.rewrite(kernel, limits, only, demanded)
    found_after = tuple(
        rewriter.costs.mapped(after.kernel, number)
        for number in range(len(after.kernel.statements))
    )
    rewritings = (*before.rewritings, *after.rewritings)
    return Competed(after.kernel, found_after, None, rewritings, after.refused)


def _limits(current: Competed, choice: Choice, symbols: Mapping[str, int]) -> list[Limits]:
    """Return for each statement the cycles of its calls and its estimate, as chosen and weighed.

    What brings operands to the calls counts with them, but not what memory takes.  Where other
    instructions compute operands before, all of the estimate does.
    """
    limits = []
    for scheduled, tried, weight in zip(
        choice.schedule.statements, choice.alternatives, weights(current.kernel), strict=True
    ):
        own = [a.estimate for a in tried if a.mapping == scheduled.mapping and a.estimate]
        calls = issue_cycles(scheduled.mapping, current.kernel, symbols)
        cycles = min((e.cycles for e in own), default=inf)
        busy = min((e.busy for e in own), default=inf)
        fed = scheduled.mapping.matching.fed
        computed = any(isinstance(expr, Op) for _, expr in fed)
        limit = cycles if computed and cycles < inf else max(calls, busy if busy < inf else 0.0)
        single = prod(scheduled.mapping.tile.values()) == 1
        hungry = single or FED * calls < busy < inf
        limits.append(Limits(limit * weight, cycles * weight, busy * weight, hungry))
    return limits
