"""From a kernel and its schedule to loops, movements and instruction calls."""

from dataclasses import replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.index import Index, const, product
from isamap.ir.inline import ApartError
from isamap.ir.nodes import Buffer, Kernel, Statement
from isamap.ir.statements import bind_extents, identity, statement_names, zero_based
from isamap.lower.apart import set_apart
from isamap.lower.begun import Begun
from isamap.lower.blocks import scattered
from isamap.lower.context import SYMBOL_RANGE, Context
from isamap.lower.drafts import Draft, Drafts
from isamap.lower.elsewhere import elsewhere
from isamap.lower.expand import expand
from isamap.lower.finish import KEPT, Finished, Finishing, finishing
from isamap.lower.held import held_elements, hold_rounds
from isamap.lower.in_registers import check_asked, in_registers
from isamap.lower.lent import lent_places
from isamap.lower.nest import Nest
from isamap.lower.nodes import Array, LoweredKernel, Node
from isamap.lower.ordered import in_order
from isamap.lower.packing import fill
from isamap.lower.past import loads_past
from isamap.lower.rounds import is_looped, one_loop
from isamap.lower.share import share_copies
from isamap.lower.staged import copy_together
from isamap.lower.statement import StatementLowering
from isamap.lower.states import with_states
from isamap.lower.tokens import with_tokens
from isamap.mapping.compose.composed import Composed
from isamap.mapping.fragments.produce import Producers, producers_of
from isamap.schedule.overlap import overlapped
from isamap.schedule.rounds import shares_of
from isamap.schedule.schedule import Schedule, StatementSchedule


def lower(
    kernel: Kernel,
    accelerator: Accelerator,
    schedule: Schedule,
    producers: Producers | None = None,
    drafts: Drafts | None = None,
    *,
    saved: bool = True,
) -> LoweredKernel:
    """Return the lowered kernel.

    Without ``saved`` the results of statements that no other one takes from registers are left
    there, for a look at what a statement costs whose results others must take from there.

    ``schedule`` has one entry per statement.  ``producers`` saves reading the machine's entries
    again.  With ``drafts`` the kernel is made of them, and its names are theirs: that saves
    lowering statements again which several schedules of one kernel share.  ScheduleError if some
    operand cannot be brought to its instruction.
    """
    bound = bind_extents(kernel)
    begun = _begin(bound, accelerator, producers)
    lent = lent_places(bound, schedule, accelerator)
    for number, own in enumerate(schedule.statements):
        if own.within is None:
            _go_on(begun, schedule, number, KEPT if saved else Finishing((), False), drafts)
    context, written = begun.context, begun.written
    entries = accelerator.by_name
    body: list[Node] = []
    for group, first, counts in zip(begun.groups, begun.firsts, begun.rounds, strict=True):
        if len(group) == 1:
            body += group[0]
        elif is_looped(counts):
            nodes = one_loop(group, counts, entries)
            body += _in_rounds(context, schedule, first, nodes, frozenset(lent))
        else:
            body += [node for nodes in group for node in nodes]
    # What never leaves a register needs no memory.
    targets = {s.target.buffer for s in bound.statements}
    context.arrays[:] = [
        a for a in context.arrays if not (a.role == "local" and a.name in targets - written)
    ]
    places = {name: place for name, place in lent.items() if {name, place} <= written}
    whole = LoweredKernel(
        bound.name,
        bound.symbols,
        tuple(array for array in context.arrays if array.name not in places),
        elsewhere(body, lambda array, at: (places.get(array, array), at)),
        lent=tuple(places.items()),
        in_registers=tuple(begun.in_registers),
    )
    apart = set_apart(whole, accelerator)
    is_shared = any(level.parallel for own in schedule.statements for level in own.levels)
    whole = share_copies(apart) if is_shared else apart
    whole = copy_together(whole, accelerator)
    whole = in_order(whole, accelerator, schedule)
    return with_tokens(with_states(whole, accelerator), accelerator)


def _begin(bound: Kernel, accelerator: Accelerator, producers: Producers | None) -> Begun:
    context = Context(bound, accelerator, producers or producers_of(accelerator))
    context.names |= {b.name for b in bound.buffers} | {e.name for e in bound.extents}
    context.names |= {v.name for statement in bound.statements for v in statement.variables}
    for buffer in bound.buffers:
        size = product(buffer.shape)
        array = Array(buffer.name, buffer.role, buffer.dtype, size, contents=buffer.contents)
        context.arrays.append(array)
    return Begun(context)


def _go_on(
    begun: Begun, schedule: Schedule, number: int, alone: Finishing, drafts: Drafts | None
) -> None:
    """Lower one statement that has loops of its own, and what is computed in its registers.

    ``alone`` says what becomes of results that no other statement takes.
    """
    bound, own = begun.context.kernel, schedule.statements[number]
    statement = bound.statements[number]
    followers = schedule.followers(number)
    after = _finishing(bound, number, schedule) if followers else alone
    if own.along is not None:
        _look_at_rounds(bound, schedule, number)
    in_rounds = own.along is not None or bool(schedule.companions(number))
    if in_rounds and own.levels and own.levels[0].variable in overlapped(own):
        raise _apart(statement.target.buffer, "rounds do not overlap")
    if drafts is None:
        nodes, finished = lower_statement(begun.context, statement, own, begun.written, after)
    else:
        nodes, finished = _drafted(begun, schedule, number, after, drafts)
    if followers:
        names = statement_names(bound)
        check_asked(names, number, after, finished, begun.context.accelerator)
        begun.in_registers += in_registers(names, number, after, finished)
    if own.along is None:
        begun.groups.append([nodes])
        begun.rounds.append([_rounds(own)])
        begun.firsts.append(number)
    else:
        begun.groups[-1].append(nodes)
        begun.rounds[-1].append(_rounds(own))
    begun.written |= {finish.target.buffer for finish in after.finishes}
    if after.kept:
        begun.written.add(statement.target.buffer)


def _drafted(
    begun: Begun, schedule: Schedule, number: int, after: Finishing, drafts: Drafts
) -> tuple[tuple[Node, ...], tuple[Finished, ...]]:
    """Return the nodes of a statement, and how its results are finished in them, from a draft."""
    context = begun.context
    statement = context.kernel.statements[number]

    def make() -> Draft:
        inner = context.for_draft(number)
        own = schedule.statements[number]
        nodes, finished = lower_statement(inner, statement, own, begun.written, after)
        return Draft(nodes, finished, tuple(inner.arrays))

    is_written = statement.target.buffer in begun.written
    found = drafts.of(schedule, number, (is_written, after.kept), make)
    context.arrays += found.arrays
    return found.nodes, found.finished


def _rounds(own: StatementSchedule) -> Index:
    """Return how often the outermost loop of a statement goes round in full; 0 without loops."""
    if not own.levels:
        return const(0)
    level = own.levels[0]
    variables = own.mapping.matching.statement.variables
    return next(v.extent for v in variables if v.name == level.variable) // level.step


def _in_rounds(
    context: Context,
    schedule: Schedule,
    first: int,
    nodes: tuple[Node, ...],
    lent: frozenset[str],
) -> tuple[Node, ...]:
    """Return the nodes of statements in rounds, each buffer as long as a round needs it.

    What lies in another one's place is ``lent`` that and keeps its length.
    """
    roots = (first, *schedule.companions(first))
    everyone = sorted({*roots, *(f for m in roots for f in schedule.followers(m))})
    loops = {n: schedule.statements[n].levels[0] for n in roots}
    shares = shares_of(context.kernel, everyone, loops)
    assert shares is not None, "the rounds were looked at"
    held = held_elements(context.kernel, shares, loops[first].step)
    entries = context.accelerator.by_name
    own = {name: size for name, size in held.items() if name not in lent}
    nodes, arrays = hold_rounds(nodes, context.arrays, own, entries)
    context.arrays[:] = arrays
    return nodes


def _look_at_rounds(kernel: Kernel, schedule: Schedule, number: int) -> None:
    """ScheduleError unless a statement may have the outermost loop of the one that it names."""
    first = schedule.statements[number].along
    assert first is not None
    roots = [n for n, own in enumerate(schedule.statements) if own.within is None]
    group = [n for n in roots if first <= n <= number]
    name = kernel.statements[number].target.buffer
    if first not in group or any(schedule.statements[n].along != first for n in group[1:]):
        raise _apart(name, "other loops come between")
    everyone = sorted({*group, *(f for m in group for f in schedule.followers(m))})
    if schedule.statements[first].along is not None or any(
        not schedule.statements[n].levels for n in group
    ):
        raise _apart(name, "one of the statements has no loop of its own")
    found = shares_of(kernel, everyone, {n: schedule.statements[n].levels[0] for n in group})
    if found is None:
        raise _apart(name, "what the statements share lies in several rounds")


def _apart(name: str, why: str) -> ScheduleError:
    text = f"{name} cannot be computed in the outermost loop of another statement: {why}"
    return ScheduleError(Diagnostic("E401", text))


def _finishing(kernel: Kernel, root: int, schedule: Schedule) -> Finishing:
    """Return what becomes of the results of a statement; ScheduleError if it cannot be."""
    followers = schedule.followers(root)
    asked = ((number, schedule.statements[number].by) for number in followers)
    by = {number: name for number, name in asked if name is not None}
    try:
        return replace(finishing(kernel, root, followers), by=tuple(by.items()))
    except ApartError as error:
        names = ", ".join(dict.fromkeys(kernel.statements[n].target.buffer for n in followers))
        source = kernel.statements[root].target.buffer
        text = f"{names} cannot be computed in the registers of {source}: {error}"
        raise ScheduleError(Diagnostic("E401", text)) from None


def lower_statement(
    context: Context,
    statement: Statement,
    schedule: StatementSchedule,
    written: set[str],
    after: Finishing = KEPT,
) -> tuple[tuple[Node, ...], tuple[Finished, ...]]:
    """Return the nodes of one statement, and how its results are finished in them.

    ``written`` are the buffers that have content already.  ``after`` says what becomes of its
    results while they are in registers.
    """
    buffer = context.buffers[statement.target.buffer]
    fresh = buffer.role in ("out", "local") and buffer.name not in written
    assert schedule.mapping.matching.statement == zero_based(statement)
    direct = fresh and _covers(schedule.mapping.matching.statement, buffer)
    lowering = StatementLowering(context, schedule, "identity" if direct else "load")
    nodes: list[Node] = []
    if fresh and statement.reduction != "=" and (not direct or lowering.result_in_memory):
        value = identity(statement.reduction, buffer.dtype)
        nodes.append(fill(context, buffer.name, product(buffer.shape), value))
    ranges = {name: SYMBOL_RANGE for name in context.kernel.symbols}
    made = Nest(lowering, after)
    nest = made.build(ranges)
    if isinstance(lowering.entry, Composed):
        nest = expand(nest, lowering.entry, context)
    nest = loads_past(nest, lowering.operands.past, context.accelerator)
    nodes += [*lowering.placed_first(), *lowering.operands.copies, *nest]
    return tuple(nodes), made.results.finished.ways


def _covers(statement: Statement, buffer: Buffer) -> bool:
    """Return whether each element of ``buffer`` is written by one block of the loop nest."""
    if scattered(statement):
        return False
    extents = {v.name: v.extent for v in statement.variables}
    seen: set[str] = set()
    for index, extent in zip(statement.target.indices, buffer.shape, strict=True):
        names = index.names & extents.keys()
        if not names:
            if extent != const(1):
                return False
            continue
        (name,) = names
        plain = index.coefficient(name) == const(1) and index.offset == 0
        if not plain or len(index.terms) != 1 or name in seen or extents[name] != extent:
            return False
        seen.add(name)
    return True
