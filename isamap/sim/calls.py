"""Execution of instruction calls: where operands lie, whether they may, and what is touched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np

from isamap.hw.accelerator import Entry
from isamap.interp.call import CallFault, Place, Plan
from isamap.interp.cells import pitches
from isamap.interp.declared import Declared
from isamap.interp.rounding import Values
from isamap.ir.index import Index
from isamap.ir.literal import value as literal_value
from isamap.ir.nodes import Buffer, Literal
from isamap.lower.nodes import Call, Copy, Operand, Register, Setting, Token, Window
from isamap.lower.states import wanted_states
from isamap.sim.memory import Environment, LoweredFault, Memory, Number

Plans: TypeAlias = dict[tuple[Any, ...], Plan]
"""The plans of one run by instruction, symbols and pitches: unrolled calls share them."""

Action: TypeAlias = Callable[[Environment], None]


States: TypeAlias = dict[str, dict[int, int | str]]
"""The values that states of the machine have, by slot: numbers, or literals as text."""


def value_of(value: Index | Literal, memory: Memory) -> Callable[[Environment], int | str]:
    """Return what a value of a state is when code runs."""
    if isinstance(value, Literal):
        text = f"{value.dtype}({value.text})"
        return lambda environment: text
    number = memory.number(value)
    return lambda environment: int(number(environment))


class Tracer(Protocol):
    """Sees what is executed."""

    def __call__(
        self, call: Call, entry: Entry, plan: Plan, begins: Mapping[str, tuple[str, int]]
    ) -> None:
        """Take note of an executed instruction; ``begins`` has its operands in memory."""
        ...

    def copied(self, copy: Copy) -> None:
        """Take note of an executed copy."""
        ...

    def token(self, token: Token) -> None:
        """Take note of a token that is posted or waited for."""
        ...

    def setting(self, setting: Setting) -> None:
        """Take note of a state that gets a value."""
        ...

    def enter(self, registers: Sequence[Register]) -> None:
        """Take note of a scope that begins, with these registers."""
        ...


@dataclass(slots=True)
class Fragment:
    """A register's content; ``written`` marks its elements, None when all have a value.

    ``rivals`` are, for each of its numbers, the fragments that have it, itself among them: what is
    written to one of them is lost in the others.
    """

    register: Register
    data: Values
    written: Values | None
    rivals: tuple[list["Fragment"], ...] = ()
    others: list["Fragment"] | None = None

    def forget(self) -> None:
        """Take every element's value away."""
        self.written = np.zeros(self.data.size, np.bool_)

    def overwrite(self) -> None:
        """Take away the values of all others with one of its numbers."""
        if self.others is None:
            found = {id(other): other for group in self.rivals for other in group}
            self.others = [other for other in found.values() if other is not self]
        for other in self.others:
            other.forget()


def new_fragment(register: Register, memory: Memory) -> Fragment:
    """Return a fragment without values."""
    size = prod(register.shape)
    data = np.zeros(size, memory.arithmetic.carrier(register.dtype))
    return Fragment(register, data, np.zeros(size, np.bool_))


@dataclass(frozen=True, slots=True)
class _Bound:
    """A plan, with what to check and to mark around it, by the operand's position."""

    plan: Plan
    windows: tuple[tuple[int, int, int], ...]
    align: tuple[tuple[int, int], ...]
    reads: tuple[tuple[Fragment, Values], ...]
    values: tuple[tuple[int, Values, int, int], ...]
    writes: tuple[tuple[Fragment, Values | None], ...]


class CallSite:
    """One call node, ready to be executed many times."""

    def __init__(
        self,
        node: Call,
        entry: Entry,
        kinds: Mapping[str, str],
        scope: Mapping[str, Fragment],
        memory: Memory,
        plans: Plans,
        tracer: Tracer | None,
        states: States,
    ) -> None:
        self.node, self.entry, self.memory, self.tracer = node, entry, memory, tracer
        self.states = states
        self.wanted = [
            (state, value_of(value, memory)) for state, value in wanted_states(node, entry).items()
        ]
        self.plans = plans
        self.operands = entry.instruction.operands
        given = dict(node.operands)
        extra = given.keys() - {o.name for o in self.operands}
        if extra:
            raise LoweredFault(f"{node.instruction} has no operand {min(extra)}")
        self.symbols = [(name, memory.number(index)) for name, index in node.symbols]
        self.fragments: dict[int, Fragment] = {}
        self.offsets: list[tuple[int, Values, Number]] = []
        self.numbers: list[tuple[int, Number]] = []
        self.places: list[Place] = []
        for position, operand in enumerate(self.operands):
            if operand.role in ("local", "table"):  # the plan's own
                self.places.append((np.zeros(0), 0))
                continue
            if operand.name not in given:
                raise self._fault(operand, "is not given")
            self._place(position, operand, given[operand.name], kinds, scope)
        self._check_same()
        self.bound: dict[tuple[int, ...], _Bound] = {}

    def _fault(self, operand: Buffer, text: str) -> LoweredFault:
        return LoweredFault(f"{self.node.instruction}: operand {operand.name} {text}")

    def _check_same(self) -> None:
        """Raise a fault where operands that must be one register are several."""
        own = [n for n, o in enumerate(self.operands) if o.name in self.entry.same]
        held = [self.fragments.get(n) for n in own]
        if any(fragment is not held[0] for fragment in held[1:]):
            names = " and ".join(self.entry.same)
            raise LoweredFault(f"{self.node.instruction}: {names} must be one register")

    def _place(
        self,
        position: int,
        operand: Buffer,
        place: Operand,
        kinds: Mapping[str, str],
        scope: Mapping[str, Fragment],
    ) -> None:
        kind = kinds[operand.storage or ""]
        carrier = self.memory.arithmetic.carrier(operand.dtype)
        match place:
            case Register():
                fragment = scope.get(place.name)
                if fragment is None or fragment.register != place:
                    raise self._fault(operand, f"is register {place.name}, which is not in scope")
                if (place.storage, place.dtype) != (operand.storage, operand.dtype):
                    found = f"{place.dtype} @ {place.storage}"
                    wanted = f"{operand.dtype} @ {operand.storage}"
                    raise self._fault(operand, f"is {wanted}, register {place.name} {found}")
                self.fragments[position] = fragment
                self.places.append((fragment.data, 0))
            case Window():
                array = self.memory.array(place.buffer)
                if kind not in ("memory", "cache"):
                    raise self._fault(operand, f"lies in {operand.storage}, not in memory")
                if array.dtype != operand.dtype:
                    raise self._fault(operand, f"is {operand.dtype}, {array.name} {array.dtype}")
                data = self.memory.data[array.name]
                self.offsets.append((position, data, self.memory.number(place.offset)))
                self.places.append((data, 0))
            case Literal():
                self._check_immediate(operand, kind)
                value = self.memory.arithmetic.constant(place)
                if place.dtype != operand.dtype:
                    raise self._fault(operand, f"is {operand.dtype}, the literal {place.dtype}")
                self.places.append((np.full(1, value, carrier), 0))
            case Index():
                self._check_immediate(operand, kind)
                if operand.dtype.name != "s64":
                    raise self._fault(operand, f"is {operand.dtype}, an index s64")
                self.numbers.append((position, self.memory.number(place)))
                self.places.append((np.zeros(1, carrier), 0))

    def _check_immediate(self, operand: Buffer, kind: str) -> None:
        if kind != "immediate" or operand.shape or operand.role not in ("in", "const"):
            raise self._fault(operand, "is given a value, but is no immediate scalar")

    # --- binding to symbols -----------------------------------------------------------------------
    def _bind(self, values: tuple[int, ...]) -> _Bound:
        symbols = {name: value for (name, _), value in zip(self.symbols, values, strict=True)}
        for extent in self.entry.instruction.extents:
            value = symbols.get(extent.name, extent.value)
            if value is None:
                raise LoweredFault(f"{self.node.instruction}: no value for {extent.name}")
            if extent.range is not None and not extent.range[0] <= value < extent.range[1]:
                raise LoweredFault(
                    f"{self.node.instruction}: {extent.name} = {value} is outside "
                    f"{extent.range[0]}..{extent.range[1]}"
                )
            symbols[extent.name] = value
        layouts = {
            o.name: self._pitches(position, o, symbols) for position, o in enumerate(self.operands)
        }
        key = (self.entry.name, tuple(symbols.items()), tuple(layouts.items()))
        if key not in self.plans:
            try:
                plan = Plan(self.entry.instruction, symbols, layouts, self.memory.arithmetic)
            except CallFault as fault:
                raise LoweredFault(str(fault)) from fault
            self.plans[key] = plan
        return self._with_checks(self.plans[key])

    def _pitches(
        self, position: int, operand: Buffer, symbols: Mapping[str, int]
    ) -> tuple[int, ...]:
        shape = tuple(int(extent.evaluate(symbols)) for extent in operand.shape)
        fragment = self.fragments.get(position)
        if fragment is not None:
            held = fragment.register.shape
            if shape != held and prod(shape) == prod(held):
                return pitches(shape)  # The same elements, seen as another shape: row by row.
            fits = len(held) == len(shape) and all(
                n <= size for n, size in zip(shape, held, strict=True)
            )
            if not fits:
                text = f"has shape {list(shape)}, register {fragment.register.name} {list(held)}"
                raise self._fault(operand, text)
            return pitches(held)
        if operand.strides is None:
            return pitches(shape)
        try:
            return tuple(int(stride.evaluate(symbols)) for stride in operand.strides)
        except KeyError as missing:
            raise self._fault(operand, f"has no value for its pitch {missing}") from None

    def _with_checks(self, plan: Plan) -> _Bound:
        windows, align, reads, values, writes = [], [], [], [], []
        for position, operand in enumerate(self.operands):
            footprint = plan.footprints[operand.name]
            fragment = self.fragments.get(position)
            if fragment is not None:
                if footprint.reads.size:
                    reads.append((fragment, footprint.reads))
                if operand.role in ("out", "inout"):
                    every = len(footprint.writes) == fragment.data.size
                    writes.append((fragment, None if every else footprint.writes))
            elif footprint.ends is not None and operand.role not in ("local", "table"):
                windows.append((position, *footprint.ends))
            # Residues have no order.
            if operand.values is not None and isinstance(self.memory.arithmetic, Declared):
                low, high = (int(literal_value(end)) for end in operand.values)
                values.append((position, footprint.reads, low, high))
            step = self.entry.align.get(operand.name, 1) // operand.dtype.bytes
            if step > 1:
                align.append((position, step))
        return _Bound(
            plan, tuple(windows), tuple(align), tuple(reads), tuple(values), tuple(writes)
        )

    # --- execution --------------------------------------------------------------------------------
    def _check_values(self, bound: _Bound, environment: Environment) -> None:
        """Raise a fault where the instruction is not defined for what an operand holds."""
        for position, needed, low, high in bound.values:
            data, begin = self.places[position]
            own = data[begin + needed]
            if own.size and (own.min() < low or own.max() > high):
                wrong = int(own[(own < low) | (own > high)][0])
                text = f"is {wrong}, which is not in {low} .. {high} ({_state(environment)})"
                raise self._fault(self.operands[position], text)

    def _check_states(self, environment: Environment) -> None:
        """Raise a fault where a state has not the value that the call takes it to have."""
        for state, value in self.wanted:
            wanted, held = value(environment), self.states.get(state, {}).values()
            if wanted not in held:
                has = " and ".join(map(str, held)) or "no value"
                text = f"{self.node.instruction}: the state {state} has {has}, not {wanted}"
                raise LoweredFault(f"{text} ({_state(environment)})")

    def run(self, environment: Environment) -> None:
        """Execute the call."""
        if self.wanted:
            self._check_states(environment)
        values = () if not self.symbols else tuple(int(f(environment)) for _, f in self.symbols)
        bound = self.bound.get(values)
        if bound is None:
            bound = self.bound[values] = self._bind(values)
        places = self.places
        for position, data, offset in self.offsets:
            places[position] = (data, offset(environment))
        for position, number in self.numbers:
            data = self.memory.arithmetic.coordinate(np.full(1, number(environment)))
            places[position] = (data, 0)
        for position, low, high in bound.windows:
            data, begin = places[position]
            if begin + low < 0 or begin + high >= data.size:
                raise self._outside(position, begin + low, begin + high, environment)
        for position, step in bound.align:
            if places[position][1] % step:
                text = f"begins at element {places[position][1]}, not at a multiple of {step}"
                raise self._fault(self.operands[position], text)
        for fragment, needed in bound.reads:
            if fragment.written is not None and not fragment.written[needed].all():
                raise self._unwritten(fragment, needed, environment)
        if bound.values:
            self._check_values(bound, environment)
        try:
            bound.plan.run(places)
        except CallFault as fault:
            raise LoweredFault(f"{fault} ({_state(environment)})") from fault
        for fragment, made in bound.writes:
            self._mark(fragment, made)
        if self.memory.observer is not None:
            self._observe(bound.plan)
        if self.tracer is not None:
            self.tracer(self.node, self.entry, bound.plan, self._begins())

    def _begins(self) -> dict[str, tuple[str, int]]:
        """Return where the operands in memory begin in this call."""
        found: dict[str, tuple[str, int]] = {}
        for position, _, _ in self.offsets:
            name = self.operands[position].name
            place = self.node.operand(name)
            assert isinstance(place, Window)
            found[name] = (place.buffer, self.places[position][1])
        return found

    def _mark(self, fragment: Fragment, made: Values | None) -> None:
        if fragment.rivals:
            fragment.overwrite()
        if made is None:
            fragment.written = None
        elif fragment.written is not None:
            fragment.written[made] = True

    def _outside(
        self, position: int, low: int, high: int, environment: Environment
    ) -> LoweredFault:
        operand = self.operands[position]
        place = self.node.operand(operand.name)
        name = place.buffer if isinstance(place, Window) else operand.name
        text = (
            f"touches {name}[{low}..{high}], which has {self.places[position][0].size} elements "
            f"({_state(environment)})"
        )
        return self._fault(operand, text)

    def _unwritten(
        self, fragment: Fragment, needed: Values, environment: Environment
    ) -> LoweredFault:
        assert fragment.written is not None
        missing = needed[~fragment.written[needed]]
        return LoweredFault(
            f"{self.node.instruction} reads element {int(missing[0])} of register "
            f"{fragment.register.name}, which has no value ({_state(environment)})"
        )

    def _observe(self, plan: Plan) -> None:
        observer = self.memory.observer
        assert observer is not None
        for position, _, _ in self.offsets:
            operand = self.operands[position]
            place = self.node.operand(operand.name)
            assert isinstance(place, Window)
            footprint, begin = plan.footprints[operand.name], self.places[position][1]
            if footprint.reads.size:
                observer(place.buffer, footprint.reads + begin, False)
            if footprint.writes.size:
                observer(place.buffer, footprint.writes + begin, True)


def _state(environment: Environment) -> str:
    return ", ".join(f"{name} = {value}" for name, value in environment.items()) or "no counters"
