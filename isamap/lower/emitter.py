"""Turns planned steps into calls, each fragment once per scope."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.box import box
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Buffer, Coordinate, Literal
from isamap.lower.context import Context
from isamap.lower.nodes import Call, Guard, Node, Operand, Register, Scope, Window
from isamap.lower.packing import padded_at, padded_copy
from isamap.lower.position import Position
from isamap.mapping.fragments.cut import guards_of, laid_out, tiles_of
from isamap.mapping.fragments.fragment import Fragment, Reference
from isamap.mapping.fragments.producer import fixed_shape
from isamap.mapping.fragments.steps import (
    FromImmediate,
    FromMemory,
    FromRegister,
    Source,
    Step,
    Store,
)


@dataclass(slots=True)
class SharedRegister:
    """The one register of the operands that must be ``same`` in a call."""

    same: tuple[str, ...]
    source: Source | None = None
    register: Operand | None = None

    def known(self, name: str, source: Source) -> Operand | None:
        """Return the register that an operand must take, None if it is the first of them.

        ScheduleError where what it needs is not what the register holds.
        """
        if name not in self.same or self.register is None:
            return None
        if source != self.source:
            raise self._bad(name)
        return self.register

    def noted(self, name: str, source: Source, operand: Operand) -> Operand:
        """Return ``operand``, which is that of all that must be the same from now on.

        ScheduleError where they have another already.
        """
        if name in self.same:
            if self.register not in (None, operand):
                raise self._bad(name)
            self.source, self.register = source, operand
        return operand

    def _bad(self, name: str) -> ScheduleError:
        text = f"operand '{name}' must be one register with another that holds something else"
        return ScheduleError(Diagnostic("E401", text))


@dataclass(slots=True)
class Emitter:
    """Collects the nodes of one scope.

    The same instruction on the same operands is emitted once: this alone finds the reuse in a
    register block, the sliding window of a stencil included.
    """

    context: Context
    nodes: list[Node] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)
    known: dict[tuple[object, ...], Register] = field(default_factory=dict)
    held: dict[Access, Register] = field(default_factory=dict)
    """What is in a register already, for steps that begin there."""
    places: int = 1
    """In how many places of a scratchpad what is declared lies in turn."""

    def register(self, fragment: Fragment, stem: str, declared: Buffer | None = None) -> Register:
        """Declare a register for a fragment, of the shape of an operand that is ``declared``."""
        shape = (declared and fixed_shape(declared)) or fragment.shape
        name = self.context.unique(stem)
        pad = self.context.accelerator.storage(fragment.storage).kind == "scratchpad"
        places = self.places if pad else 1
        register = Register(name, fragment.storage, fragment.dtype, shape, places=places)
        self.registers.append(register)
        return register

    def inside(self) -> "Emitter":
        """Return what collects nodes of a branch, with registers of its own: it knows what is made
        before."""
        return replace(self, nodes=[], registers=[], known={**self.known})

    def scope(self) -> tuple[Node, ...]:
        """Return what was collected, as one scope if it declares registers."""
        if not self.registers:
            return tuple(self.nodes)
        return (Scope(tuple(self.registers), tuple(self.nodes)),)

    def make(self, step: Step, position: Position, stem: str) -> Register:
        """Emit a step, unless the same was emitted here before, and return its register."""
        if step.tied is not None:
            spent = self._spent(step)
            made = spent or self.register(step.fragment, stem, step.declared)
            return self.make_into(step, position, made)
        guards = self._guards(step, position)
        if guards is None:
            assert step.otherwise is not None
            return self.make(step.otherwise, position, stem)
        operands, symbols = self._inputs(step, position, stem)
        # Of fragments that lie at one place, others may be cut, or others of their elements.
        cuts = () if self._cuts(step, position) == () else self._borders(step, position)
        key = (step.entry.name, step.target, tuple(operands), symbols, guards, cuts)
        if key not in self.known:
            register = self.register(step.fragment, stem, step.declared)
            self._call(step, position, operands, symbols, guards, register)
            self.known[key] = register
        return self.known[key]

    def _spent(self, step: Step) -> Register | None:
        """Return the register that holds already what a step overwrites, if there is one."""
        source = dict(step.inputs)[step.tied or ""]
        match source:
            case Step():
                return self._spent(source) if source.tied is not None else None
            case FromRegister(access):
                return self.held[access]
        return None

    def make_into(self, step: Step, position: Position, register: Register) -> Register:
        """Emit a step whose result goes to a given register."""
        guards = self._guards(step, position)
        if guards is None:
            assert step.otherwise is not None
            return self.make_into(step.otherwise, position, register)
        operands, symbols = self._inputs(step, position, register.name, register)
        self._call(step, position, operands, symbols, guards, register)
        return register

    def store(
        self,
        store: Store,
        position: Position,
        register: Register,
        ref: Reference,
        bypass: bool = False,
        besides: Sequence[tuple[str, Operand]] = (),
    ) -> None:
        """Emit the movements that take a register to memory, past the caches if that can be.

        ``besides`` are other operands of a store that computes.
        """
        for move in store.moves:
            declared = move.entry.instruction.operand(move.target)
            moved = self.register(move.fragment, register.name, declared)
            places: list[tuple[str, Operand]] = [(move.source, register), (move.target, moved)]
            self.nodes.append(Call(move.entry.name, tuple(places)))
            register = moved
        dense = ref.dense is not None
        symbols = bind(store.limits, store.pitches, store.fragment, position, dense)
        window = Window(ref.array, position.at(ref.offset))
        given = ((name, immediate(value, position)) for name, value in store.constants)
        operands = ((store.source, register), *besides, *given, (store.target, window))
        past = bypass and store.entry.bypass is not None
        self.nodes.append(Call(store.entry.name, operands, symbols, past))

    # --- inside ---------------------------------------------------------------------------------
    def source(self, source: Source, position: Position, stem: str) -> Operand:
        """Return the operand for an input, emitting what makes it."""
        match source:
            case Step():
                return self.make(source, position, stem)
            case FromMemory(Reference(same=Literal() as literal, dense=shape)):
                return Window(self.context.table(literal, prod(shape or ())), const(0))
            case FromMemory(reference):
                return Window(reference.array, position.at(reference.offset))
            case FromImmediate(value):
                return immediate(value, position)
            case FromRegister(access):
                return self.held[access]

    def _inputs(
        self, step: Step, position: Position, stem: str, into: Register | None = None
    ) -> tuple[list[tuple[str, Operand]], tuple[tuple[str, Index], ...]]:
        operands: list[tuple[str, Operand]] = []
        dense = False
        same = SharedRegister(step.entry.same)
        # What is overwritten is made first, for it has a register that others may have to take.
        tied_first = sorted(step.inputs, key=lambda one: one[0] != step.tied)
        for name, source in tied_first if step.entry.same else step.inputs:
            if name == step.tied:
                # The register is overwritten: the input is made afresh, and shared with nobody,
                # or is there and spent.
                assert into is not None
                if isinstance(source, Step):
                    self.make_into(source, position, into)
                else:
                    assert isinstance(source, FromRegister)
                    assert self.held[source.access] == into
                same.noted(name, source, into)
                if name != step.target:
                    operands.append((name, into))
                continue
            dense |= isinstance(source, FromMemory) and source.reference.dense is not None
            operand = same.known(name, source) or self.source(source, position, stem)
            operands.append((name, same.noted(name, source, operand)))
        symbols = bind(step.limits, step.pitches, step.fragment, position, dense)
        return operands, symbols

    def _guards(self, step: Step, position: Position) -> tuple[Index, ...] | None:
        """Return what must hold for a step's fragment to have elements of its buffer at all."""
        guards: tuple[Index, ...] = ()
        for reference in _guarded(step):
            guards += guards_of(reference, step.fragment)[1]
        return position.undecided(guards)

    def _cuts(self, step: Step, position: Position) -> tuple[Index, ...] | None:
        """Return what must hold for all elements to be such; None if that never holds."""
        if not _guarded(step):
            return ()
        live = {v: position.live[v] for v in laid_out(step.fragment) & position.live.keys()}
        cuts: tuple[Index, ...] = ()
        for border in self._borders(step, position):
            low, _ = box(border, live)
            if low is None:
                return None
            cuts += (low,)
        return position.undecided(cuts)

    def _borders(self, step: Step, position: Position) -> tuple[Index, ...]:
        """Return what is not negative for those elements of a fragment that its buffer has.

        The variables are those that are laid out in the fragment, from 0.
        """
        guarded = _guarded(step)
        if not guarded:
            return ()
        moved = {
            v: position.origin[v] + var(v) for v in laid_out(step.fragment) if v in position.live
        }
        return tuple(
            guard.substitute({**position.origin, **moved})
            for reference in guarded
            for guard in guards_of(reference, step.fragment)[0]
        )

    def _call(
        self,
        step: Step,
        position: Position,
        operands: list[tuple[str, Operand]],
        symbols: tuple[tuple[str, Index], ...],
        guards: tuple[Index, ...],
        register: Register,
    ) -> None:
        made: tuple[Node, ...]
        made = (Call(step.entry.name, (*operands, (step.target, register)), symbols),)
        cuts = self._cuts(step, position)
        if cuts is None:
            made = self._aside(step, position, register)
        elif cuts:
            made = (Guard(cuts, made, self._aside(step, position, register)),)
        if not guards:
            self.nodes += made
            return
        assert step.otherwise is not None
        other = Emitter(self.context, registers=self.registers)
        other.make_into(step.otherwise, position, register)
        self.nodes.append(Guard(guards, made, tuple(other.nodes)))

    def _aside(self, step: Step, position: Position, register: Register) -> tuple[Node, ...]:
        """Return what copies a fragment that is cut aside, and makes it from there."""
        assert step.aside is not None
        (aside,) = (r.aside for r in _guarded(step) if r.aside is not None)
        # A whole tile, however much of it is alive: rows lie as they were planned.
        tiles = tiles_of(step.fragment)
        whole = {v: const(tiles.get(v, 1)) for v in position.live}
        layout = padded_at(aside.array, aside.access, position, whole)
        assert layout is not None, "it has a closed form for whole fragments"
        copy = padded_copy(self.context, layout, position.is_nonnegative)
        other = Emitter(self.context, registers=self.registers)
        other.make_into(step.aside, position.first(), register)
        return (replace(copy, aside=True), *other.nodes)


def _guarded(step: Step) -> list[Reference]:
    """Return the references that a step reads itself and that have guards."""
    found = [source.reference for _, source in step.inputs if isinstance(source, FromMemory)]
    return [reference for reference in found if reference.guards]


def bind(
    limits: tuple[tuple[str, int], ...],
    pitches: tuple[tuple[str, Index], ...],
    fragment: Fragment,
    position: Position,
    dense: bool,
    counted: frozenset[str] = frozenset(),
) -> tuple[tuple[str, Index], ...]:
    """Return the instruction's extents and pitches at a position.

    Of ``dense`` fragments all elements are taken, but for extents that are ``counted``.
    """
    lengths = tuple(
        (
            name,
            const(fragment.shape[dim])
            if dense and name not in counted
            else position.live_extent(fragment, dim),
        )
        for name, dim in limits
    )
    return tuple(sorted((*lengths, *((name, position.at(p)) for name, p in pitches))))


def immediate(value: Literal | Coordinate, position: Position) -> Operand:
    """Return an immediate operand: a literal, or the value of an index expression here."""
    match value:
        case Literal():
            return value
        case Coordinate(index, _):
            return position.at(index)
