"""Whether statements take the results of earlier ones from registers: by what it is estimated."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil

from isamap.diagnostics import ScheduleError
from isamap.ir.ahead import statement_kernel, statements_ahead
from isamap.ir.inline import ApartError
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses, bind_extents
from isamap.lower.cost import Estimate
from isamap.lower.drafts import Drafts
from isamap.lower.finish import finishing
from isamap.lower.judge import Judge
from isamap.lower.looped import Looped
from isamap.lower.nodes import LoweredKernel
from isamap.lower.uncached import uncached
from isamap.schedule.buffers import first_buffers
from isamap.schedule.first import BLOCKS, first_schedule
from isamap.schedule.lines import narrowed
from isamap.schedule.rounds import rounds_of
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.schedule.shape import read_shape

ROUNDS = (4, 1)
"""Iterations of a round that are tried beside the longest block of its statements."""

LONGER = (2, 4)
"""Rounds of a thread that are tried beside these: longer ones read less again at their borders."""

GAIN = 1.01
"""What other rounds have to gain for being longer: what they hold takes more of the caches."""

NEARLY = 1.05
"""What is finished in registers may be estimated to take so much longer: it needs no memory."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A schedule, what it lowers to, and the estimate."""

    schedule: Schedule
    lowered: LoweredKernel
    estimate: Estimate


def fuse(
    kernel: Kernel,
    judge: Judge,
    schedule: Schedule,
    settled: AbstractSet[int] = frozenset(),
) -> Fused:
    """Return the schedule in which statements are finished in registers where that is faster.

    ``schedule`` has loops for every statement.  A root whose reduction is cut outside its results
    is tried with the reduction in one piece.  Statements that are ``settled`` keep their loops, and
    are where ``schedule`` has them.  ScheduleError if ``schedule`` cannot be lowered.
    """

    lowered = _lowering(kernel, judge)
    bound = bind_extents(kernel)
    best = _possible(bound, judge, schedule, lowered, settled)
    for root in range(len(bound.statements)):
        if best.schedule.statements[root].within is None:
            best = _finished(bound, judge, best, root, lowered, settled)
    best = _together(bound, judge, best, lowered, settled)
    waits = best.estimate.waits_for(judge.accelerator)
    final = uncached(bound, judge.accelerator, best.schedule, settled, waits)
    made = judge.lowered(kernel, final)
    # What bypasses the caches costs what the model knows of as before.
    cost = judge.estimate(made) if final == best.schedule else best.estimate
    return Fused(final, made, cost)


def check_lowerable(kernel: Kernel, judge: Judge, schedule: Schedule) -> None:
    """Raise ScheduleError if a schedule cannot be lowered even with results in registers."""
    _possible(bind_extents(kernel), judge, schedule, _lowering(kernel, judge), frozenset())


def _lowering(kernel: Kernel, judge: Judge) -> Callable[[Schedule], Fused]:
    """Return what lowers schedules to drafts, to be estimated."""
    drafts = Drafts()

    def lowered(trial: Schedule) -> Fused:
        code = judge.lowered(kernel, trial, drafts=drafts)
        return Fused(trial, code, judge.estimate(code))

    return lowered


def _possible(
    kernel: Kernel,
    judge: Judge,
    schedule: Schedule,
    lowered: Callable[[Schedule], Fused],
    settled: AbstractSet[int],
) -> Fused:
    """Return the first schedule that can be lowered."""
    try:
        return lowered(schedule)
    except ScheduleError as error:
        # Results that nothing takes to memory must be taken from registers.
        return _forced(kernel, judge, schedule, lowered, settled, error)


def _finished(
    kernel: Kernel,
    judge: Judge,
    best: Fused,
    root: int,
    lowered: Callable[[Schedule], Fused],
    settled: AbstractSet[int],
) -> Fused:
    """Return the schedule in which later statements are finished in the registers of one.

    After one that is, two at once are tried, then four: long chains are not lowered once for each
    of their statements.
    """
    number, size = root + 1, 1
    while number < len(kernel.statements):
        several, after = _next(kernel, best.schedule, root, number, size, settled)
        if not several:
            break
        found = _with(judge, best, root, several, root not in settled, lowered)
        if found is not None:
            best, number, size = found, after, 2 * size
        elif len(several) == 1:
            number, size = after, 1
        else:
            size = 1
    return best


def _next(
    kernel: Kernel,
    schedule: Schedule,
    root: int,
    number: int,
    size: int,
    settled: AbstractSet[int],
) -> tuple[tuple[int, ...], int]:
    """Return the next so many statements, from a number on, that can be finished in the registers
    of another one, and the number after them.
    """
    found: list[int] = []
    followers = schedule.followers(root)
    while number < len(kernel.statements) and len(found) < size:
        if schedule.statements[number].within is None and number not in settled:
            with suppress(ApartError):
                finishing(kernel, root, (*followers, *found, number))
                found.append(number)
        number += 1
    return tuple(found), number


def _with(
    judge: Judge,
    best: Fused,
    root: int,
    several: Sequence[int],
    whole_too: bool,
    lowered: Callable[[Schedule], Fused],
) -> Fused | None:
    """Return the best schedule with several more statements finished in the registers of another;
    None if that cannot be, or takes much longer.
    """
    too_large: Fused | None = None
    for trial in _trials(judge, best.schedule, root, several, whole_too):
        try:
            found = lowered(trial)
        except ScheduleError:
            continue
        if judge.excess(found.lowered) is not None:
            too_large = too_large or found
            continue
        if found.estimate.cycles > NEARLY * best.estimate.cycles:
            with suppress(ScheduleError):
                later = lowered(trial.with_results_later(root))
                found = later if judge.excess(later.lowered) is None else found
        if found.estimate.cycles > NEARLY * best.estimate.cycles:
            other = _with_loops_of(trial, root, several[-1])
            with suppress(ScheduleError):
                found = found if other is None else lowered(other)
        is_good = found.estimate.cycles <= NEARLY * best.estimate.cycles
        return found if is_good and judge.excess(found.lowered) is None else None
    if too_large is None or not whole_too:
        return None
    smaller = _narrower(judge, too_large, root, lowered)
    # A smaller block brings operands more often, which has to pay.
    is_better = smaller is not None and smaller.estimate.is_below(best.estimate)
    return smaller if is_better else None


def _with_loops_of(schedule: Schedule, root: int, other: int) -> Schedule | None:
    """Return the schedule with the loops of another statement for a root without a reduction.

    The block that is best for it alone may reuse what the others do not have.  None if loops cannot
    be the same.
    """
    own, levels = schedule.statements[root], schedule.statements[other].levels
    statement = own.mapping.matching.statement
    whole = {v.name: v.extent for v in statement.variables}
    theirs = schedule.statements[other].mapping.matching.statement.variables
    same = whole == {v.name: v.extent for v in theirs} and levels != own.levels
    if not same or whole.keys() - statement.target.names or set(own.operands) - {"direct"}:
        return None
    if any(level.step % own.mapping.tile.get(level.variable, 1) for level in levels):
        return None
    return schedule.with_statement(root, replace(own, levels=levels, early=(), stream=None))


def _forced(
    kernel: Kernel,
    judge: Judge,
    schedule: Schedule,
    lowered: Callable[[Schedule], Fused],
    settled: AbstractSet[int],
    error: ScheduleError,
) -> Fused:
    """Return the first schedule that can be lowered with ever more statements in registers.

    ``error`` is why ``schedule`` cannot be.  ScheduleError if there is none.
    """
    now, refused = schedule, error
    for root in range(len(kernel.statements)):
        for number in range(root + 1, len(kernel.statements)):
            own = now.statements
            if number in settled or not (own[root].within is own[number].within is None):
                continue
            with suppress(ApartError):
                finishing(kernel, root, (*now.followers(root), number))
                # With the reduction in one piece, where it is not.
                (*_, now) = _trials(judge, now, root, (number,), root not in settled)
                try:
                    found = lowered(now)
                except ScheduleError as other:
                    refused = other
                    continue
                if judge.excess(found.lowered) is None:
                    return found
                return _fitting(kernel, judge, found, root, lowered) or found
    if refused is error:
        raise error from None
    first, last = error.diagnostics[0], refused.diagnostics[0]
    if first.message == last.message:
        raise error from None
    raise ScheduleError(replace(first, message=f"{first.message}, and {last.message}")) from None


def _fitting(
    kernel: Kernel, judge: Judge, found: Fused, root: int, lowered: Callable[[Schedule], Fused]
) -> Fused | None:
    """Return a schedule in which a statement has a smaller block, so that storages hold what others
    make of its results as well; None if there is none.
    """
    own = found.schedule.statements
    alone = bind_extents(statement_kernel(kernel, root))
    for rank in BLOCKS[1:]:
        block = first_schedule(
            own[root].mapping, judge.accelerator, judge.producers, alone, judge.threads, rank
        )
        for buffers in first_buffers(judge.accelerator, block):
            smaller = replace(block, buffers=buffers)
            trial = found.schedule.with_statement(root, smaller)
            with suppress(ScheduleError):
                other = lowered(trial)
                if judge.excess(other.lowered) is None:
                    return other
    return None


def _narrower(
    judge: Judge, found: Fused, root: int, lowered: Callable[[Schedule], Fused]
) -> Fused | None:
    """Return the fastest schedule in which a statement has half or a fourth of its block, where
    storages hold what others make of its results as well; None if there is none.
    """
    own = found.schedule.statements[root]
    best: Fused | None = None
    for levels in narrowed(read_shape(own.mapping), own.levels):
        trial = found.schedule.with_statement(root, replace(own, levels=levels))
        with suppress(ScheduleError):
            other = lowered(trial)
            fits = judge.excess(other.lowered) is None
            if fits and (best is None or other.estimate.is_below(best.estimate)):
                best = other
    return best


def _together(
    kernel: Kernel,
    judge: Judge,
    best: Fused,
    lowered: Callable[[Schedule], Fused],
    settled: AbstractSet[int],
) -> Fused:
    """Return the schedule in which statements that follow each other have one outermost loop.

    Each group grows from its first statement on while the estimate falls, by all statements in a
    row that write one buffer, the last of which has a buffer in common with others; what constants
    alone decide stays apart, to be computed ahead, and so does what is ``settled``.
    """
    targets = [statement.target.buffer for statement in kernel.statements]
    touched = [
        {s.target.buffer, *(access.buffer for access in accesses(s.value))}
        for s in kernel.statements
    ]
    apart = {*statements_ahead(kernel), *settled}
    roots = [n for n, own in enumerate(best.schedule.statements) if own.within is None]
    looped = Looped(kernel, judge)

    def trials(plain: Schedule, at: int, length: int | None) -> list[Schedule]:
        members, found = [roots[at]], []
        for number in roots[at + 1 :]:
            own = looped.over(plain, [*members, number])
            trial = rounds_of(kernel, own, [*members, number], length)
            if trial is None or apart & {*members, number}:
                break
            members.append(number)
            found.append(trial)
        return found

    def is_whole(at: int, count: int, most: int) -> bool:
        """Return whether the first and so many more, of ``most``, may make a group: all that write
        one buffer, the last of them with something that one before touches."""
        last = at + count
        if count < most and targets[roots[last]] == targets[roots[last + 1]]:
            return False
        # Rounds of what has nothing in common keep it from those of others.
        return bool(touched[roots[last]] & frozenset().union(*(touched[n] for n in roots[at:last])))

    at = 0
    while at < len(roots):
        grown = best
        joined = trials(best.schedule, at, None)
        for count, trial in enumerate(joined, 1):
            if not is_whole(at, count, len(joined)):
                continue
            try:
                found = lowered(trial)
            except ScheduleError:
                break
            if found.estimate.cycles < grown.estimate.cycles:
                grown = found
        count = len(grown.schedule.companions(roots[at]))
        for length in _lengths(grown.schedule, roots[at], judge.threads) if count else ():
            others = trials(best.schedule, at, length)
            for more, trial in enumerate(others[count - 1 :], count):
                if not is_whole(at, more, len(others)):
                    continue
                before = grown
                with suppress(ScheduleError):
                    found = lowered(trial)
                    is_longer = length > grown.schedule.statements[roots[at]].levels[0].step
                    least = found.estimate.times(GAIN if is_longer else 1.0)
                    if least.is_below(grown.estimate):
                        grown = found
                # With these rounds those that follow may gain by them, too.
                if grown is before:
                    break
        best = grown
        at += 1 + len(best.schedule.companions(roots[at]))
    return best


def _lengths(schedule: Schedule, root: int, threads: int) -> Iterator[int]:
    """Yield the iterations of rounds that are tried beside those of a schedule."""
    own = schedule.statements[root]
    first = own.levels[0]
    variables = own.mapping.matching.statement.variables
    extent = next(v.extent.constant for v in variables if v.name == first.variable)
    longer = [ceil(extent / (threads * rounds)) for rounds in LONGER] if extent else []
    yield from dict.fromkeys(n for n in (*ROUNDS, *longer) if n != first.step)


def _trials(
    judge: Judge, schedule: Schedule, root: int, several: Sequence[int], whole_too: bool
) -> Iterator[Schedule]:
    """Yield the schedules that finish statements in the registers of another.

    What is asked for of a statement computes it there, too.  With ``whole_too`` the other one's
    reduction may be done in one piece for that.
    """
    own = list(schedule.statements)
    for number in several:
        own[number] = replace(own[number], within=root, by=judge.asked.get(number))
    yield replace(schedule, statements=tuple(own))
    if whole_too and (whole := _in_one_piece(own[root])) is not None:
        own[root] = whole
        yield replace(schedule, statements=tuple(own))


def _in_one_piece(own: StatementSchedule) -> StatementSchedule | None:
    """Return a schedule without the loops that cut a reduction outside the results, if it can be.

    A variable's block is its smallest step, so that only outer ones of several can go.
    """
    statement = own.mapping.matching.statement
    target = statement.target.names
    kept = []
    for position, level in enumerate(own.levels):
        inner = {later.variable for later in own.levels[position + 1 :]}
        cuts = level.variable not in target and bool(inner & target)
        if cuts and level.variable in inner:
            continue
        kept.append(level)
    return replace(own, levels=tuple(kept)) if len(kept) < len(own.levels) else None
