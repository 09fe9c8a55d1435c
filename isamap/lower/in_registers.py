"""Which instructions compute a statement in the registers of another one.

A statement that takes results from registers is computed by whatever finishes them best, together
with others that do: not by the instruction that would be best for it alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Expr, Op
from isamap.lower.finish import Finished, Finishing, Follower
from isamap.lower.nodes import InRegisters
from isamap.mapping.compose.composed import is_of
from isamap.mapping.fragments.steps import Source, Step
from isamap.mapping.matching import Enumeration

Asked = Mapping[int, str]
"""The instructions that are to compute statements, by the number of the statement."""


def in_registers(
    names: tuple[str, ...], root: int, after: Finishing, ways: Iterable[Finished]
) -> tuple[InRegisters, ...]:
    """Return what computes each statement that follows ``root``.

    ``names`` are those of all statements, ``ways`` how results are finished: there are several for
    one buffer where the last fragments of a row are made by other instructions.
    """
    found = tuple(ways)
    return tuple(
        InRegisters(names[own.number], names[root], computing(own, found))
        for own in after.followers
    )


def asked_for(enumerations: Iterable[Enumeration], instruction: str | None) -> Asked:
    """Return for each statement that an instruction can compute, that it is to do so.

    ``enumerations`` are the mappings of all statements: to that instruction where it can be.
    """
    if instruction is None:
        return {}
    return {
        number: instruction
        for number, found in enumerate(enumerations)
        if any(is_of(mapping.matching.needle, instruction) for mapping in found.mappings)
    }


def check_asked(
    names: tuple[str, ...],
    root: int,
    after: Finishing,
    ways: Iterable[Finished],
    accelerator: Accelerator,
) -> None:
    """ScheduleError if a statement that follows ``root`` is not computed by what is asked for.

    That may also take it to memory only.  The others are what :func:`in_registers` takes.
    """
    found = tuple(ways)
    asked = dict(after.by)
    for own in after.followers:
        if (wanted := asked.get(own.number)) is None:
            continue
        wrong = [way for way in found if _instead(own, wanted, way, accelerator)]
        by = computing(own, wrong[:1] or found)
        if wrong or not by:
            there = f"{' + '.join(by)} computes it there" if by else "it is not done there"
            text = f"{names[own.number]} cannot be computed in the registers of {names[root]} by "
            raise ScheduleError(Diagnostic("E401", f"{text}{wanted}: {there}"))


def instead(after: Finishing, way: Finished, accelerator: Accelerator) -> tuple[str, ...]:
    """Return the instructions that compute or store statements in place of what is asked for."""
    asked = dict(after.by)
    found = (
        name
        for own in after.followers
        if own.number in asked
        for name in _instead(own, asked[own.number], way, accelerator)
    )
    return tuple(dict.fromkeys(found))


def _instead(
    own: Follower, wanted: str, way: Finished, accelerator: Accelerator
) -> tuple[str, ...]:
    by = (*computing(own, (way,)), *storing(own, (way,)))
    return () if is_by(by, wanted, accelerator) else by


def is_by(by: Iterable[str], asked: str, accelerator: Accelerator) -> bool:
    """Return whether instructions are, or have among them, the one that is asked for.

    That may be a generic one, or a sequence (``a + b``), of which they have all.
    """
    used = {name for own in by for name in (own, accelerator.entry(own).instruction.generic)}
    return all(name in used for name in asked.split(" + "))


def computing(own: Follower, ways: Sequence[Finished]) -> tuple[str, ...]:
    """Return the instructions that compute a statement, in the order in which they run.

    Where there is nothing to compute they are those that store it.
    """
    mine = frozenset(_operations(own.value, own.taken))
    if not mine:
        return tuple(dict.fromkeys(storing(own, ways)))
    doing = (name for way in ways for name, done in _doing(way) if done & mine)
    return tuple(dict.fromkeys(doing))


def storing(own: Follower, ways: Iterable[Finished]) -> Iterator[str]:
    """Yield the instructions that take to memory what a statement leaves in registers."""
    for way in ways:
        if (way.finish.target.buffer, way.finish.value) == (own.buffer, own.value):
            yield from (move.entry.name for move in way.store.moves)
            yield way.store.entry.name


def _doing(way: Finished) -> Iterator[tuple[str, AbstractSet[Expr]]]:
    """Yield the instructions that finish a fragment, with the operations that each of them does."""
    sources = (way.made, *(step for _, step in way.besides))
    for source in sources:
        yield from _steps(source)
    yield way.store.entry.name, _done(way.finish.value, sources)


def _steps(source: Source) -> Iterator[tuple[str, AbstractSet[Expr]]]:
    if isinstance(source, Step):
        sources = tuple(own for _, own in source.inputs)
        for own in sources:
            yield from _steps(own)
        yield source.entry.name, _done(source.value, sources)
        if source.aside is not None:
            yield from _steps(source.aside)


def _done(value: Expr, sources: Iterable[Source]) -> AbstractSet[Expr]:
    """Return the operations of a value that are left where its sources are made by others."""
    made = frozenset(source.value for source in sources if isinstance(source, Step))
    return frozenset(_operations(value, made))


def _operations(value: Expr, ends: AbstractSet[Expr]) -> Iterator[Op]:
    """Yield the operations of a value that are in none of the parts ``ends`` of it."""
    if isinstance(value, Op) and value not in ends:
        yield value
        for arg in value.args:
            yield from _operations(arg, ends)
