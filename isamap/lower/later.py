"""Results that are finished while the next ones are computed.

Where units that have nothing to do with each other compute and finish results, one waits for the
other in every block, for a core looks ahead over a few hundred instructions only.  So results leave
the accumulators, and what is made of them follows in parts between the parts of the next block's
reduction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from isamap.lower.emitter import Emitter
from isamap.lower.fault import bad
from isamap.lower.finish import Finished
from isamap.lower.nodes import Call, Node, Register, Scope
from isamap.lower.position import Position
from isamap.lower.results import Results
from isamap.lower.statement import StatementLowering
from isamap.mapping.fragments.steps import FromRegister, Source, Step

Tile = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Left:
    """How one result is finished after it has left its accumulator.

    ``step`` takes it into ``register``, from which ``rest`` finishes it.
    """

    step: Step
    register: Register
    rest: Finished


class Later:
    """What the blocks of one loop hand on, each to the next one."""

    def __init__(self, results: Results, places: Mapping[Tile, Position], stem: str) -> None:
        """``places`` are where the tiles of a block stand, for what is cut of them.

        ScheduleError if results cannot leave their accumulators.
        """
        self.results = results
        self.emitter = Emitter(results.context)
        self.left = {
            tile: tuple(self._left(finished, stem) for finished in self._finished(here))
            for tile, here in places.items()
        }

    def _finished(self, here: Position) -> tuple[Finished, ...]:
        return self.results.finished.of(here.partial(self.results.at.tile))

    def _left(self, finished: Finished, stem: str) -> Left:
        name = finished.finish.target.buffer
        steps = _leaving(finished.made)
        if not steps or any(other != steps[0] for other in steps):
            raise bad(f"{name} is not finished later: nothing takes it out of its registers")
        step = steps[0]
        machine = self.results.context.accelerator
        made, own = (
            machine.register_file(machine.storage(storage))[0].name
            for storage in (step.fragment.storage, self.results.at.entry.storage(self._result))
        )
        if made == own or step.tied or step.guarded:
            raise bad(f"{name} is not finished later: it would stay in {own}")
        register = self.emitter.register(step.fragment, stem)
        rest = replace(finished, made=_without(finished.made, step))
        return Left(step, register, rest)

    @property
    def _result(self) -> str:
        return self.results.at.needle.target.buffer

    @property
    def registers(self) -> tuple[Register, ...]:
        """The registers that results are in from one block to the next."""
        return tuple(self.emitter.registers)

    def leave(self, emitter: Emitter, here: Position, tile: Tile, register: Register) -> None:
        """Take the results of a tile from their accumulator, and to their buffer if it has them."""
        for left in self.left[tile]:
            emitter.held[left.rest.finish.result] = register
            emitter.make_into(left.step, here, left.register)
        self.results.keep(emitter, here, register)

    def finish(self, here: Position, tile: Tile) -> tuple[Node, ...]:
        """Return what finishes the results of a tile that have left."""
        emitter = Emitter(self.results.context)
        for left in self.left[tile]:
            self.results.finish_one(emitter, here, left.rest, left.register)
        return emitter.scope()


def check_later(at: StatementLowering, accumulate_at: int) -> None:
    """ScheduleError unless blocks of a statement can hand their results on.

    ``accumulate_at`` is the number of loops outside the accumulators.
    """
    name = at.statement.target.buffer
    if not 0 < accumulate_at < len(at.schedule.levels):
        raise bad(f"{name} is not finished later: no loops over its elements and over its terms")


def _leaving(source: Source) -> list[Step]:
    """Return the steps that take what is in the accumulator."""
    if not isinstance(source, Step):
        return []
    own = [source] if any(isinstance(s, FromRegister) for _, s in source.inputs) else []
    return [*own, *(step for _, inner in source.inputs for step in _leaving(inner))]


def _without(source: Source, step: Step) -> Step | FromRegister:
    """Return what finishes a result, once ``step`` has taken it out of its accumulator."""
    assert isinstance(source, Step)
    if source == step:
        return next(s for _, s in step.inputs if isinstance(s, FromRegister))
    inputs = tuple(
        (name, _without(s, step) if isinstance(s, Step) else s) for name, s in source.inputs
    )
    return replace(source, inputs=inputs)


def between(parts: Sequence[Sequence[Node]], units: Sequence[tuple[Node, ...]]) -> list[Node]:
    """Return the parts of a reduction with what finishes other results spread over them."""
    nodes: list[Node] = []
    for n, part in enumerate(parts):
        own = units[n * len(units) // len(parts) : (n + 1) * len(units) // len(parts)]
        nodes += _woven(part, [node for unit in own for node in unit])
    return nodes


def _woven(part: Sequence[Node], unit: Sequence[Node]) -> Sequence[Node]:
    """Return a part with other nodes spread over its calls, or behind it where it has loops.

    A core looks ahead over fewer instructions than finish a tile: what is to run beside a
    product has to stand beside it.
    """
    registers, others = _opened(unit)
    calls = _calls(part)
    if not calls or not others:
        return [*part, *unit]
    return [Scope(tuple(registers), tuple(_Weave(others, calls).nodes(part)))]


def _opened(nodes: Sequence[Node]) -> tuple[list[Register], list[Node]]:
    """Return the registers of scopes and what is in them, in turn."""
    registers: list[Register] = []
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Scope):
            inner, body = _opened(node.body)
            registers += [*node.registers, *inner]
            found += body
        else:
            found.append(node)
    return registers, found


def _calls(nodes: Sequence[Node]) -> int | None:
    """Return how many calls there are, None if there is anything else than these and scopes."""
    total = 0
    for node in nodes:
        inside = _calls(node.body) if isinstance(node, Scope) else int(isinstance(node, Call))
        if not inside:
            return None
        total += inside
    return total


@dataclass(slots=True)
class _Weave:
    """Nodes that are put behind calls, evenly; so many ``calls`` there are, of which some are
    ``done``."""

    others: Sequence[Node]
    calls: int
    done: int = 0

    def nodes(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes with others between them."""
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Scope):
                found.append(replace(node, body=tuple(self.nodes(node.body))))
                continue
            first = self.done * len(self.others) // self.calls
            self.done += 1
            found += [node, *self.others[first : self.done * len(self.others) // self.calls]]
        return found
