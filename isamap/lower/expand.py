"""Calls of composed instructions become calls of the instructions of which they are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from isamap.diagnostics import Diagnostic, ScheduleError
from isamap.ir.nodes import Buffer, Literal
from isamap.lower.context import Context
from isamap.lower.emitter import Emitter
from isamap.lower.nodes import (
    Call,
    Copy,
    Guard,
    Loop,
    Node,
    Operand,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
)
from isamap.lower.position import Position
from isamap.mapping.compose.composed import Composed
from isamap.mapping.compose.connect import Given, Made, Place
from isamap.mapping.fragments.fragment import Digit, Fragment


def expand(nodes: Iterable[Node], entry: Composed, context: Context) -> tuple[Node, ...]:
    """Return nodes in which each call of a composition is the sequence of its parts.

    Results that parts hand on live in registers of their own; constants are set once, before the
    loops that are not parallel.  ScheduleError if no instruction sets a constant.
    """
    found = _Expander(entry, context)
    return found.scope(tuple(nodes))


@dataclass(slots=True)
class _Expander:
    entry: Composed
    context: Context
    constants: dict[tuple[str, Literal], Register] = field(default_factory=dict)

    def scope(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return expanded nodes behind what sets the constants that they use."""
        outer, self.constants = self.constants, {}
        emitter = Emitter(self.context)
        body = self._nodes(nodes)
        for literal_and_kind, register in self.constants.items():
            self._set(emitter, register, literal_and_kind[1])
        registers = (*emitter.registers, *self.constants.values())
        self.constants = outer
        return (Scope(registers, (*emitter.nodes, *body)),) if registers else body

    def _nodes(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(inner for node in nodes for inner in self._node(node))

    def _node(self, node: Node) -> tuple[Node, ...]:
        match node:
            case Call(instruction) if instruction == self.entry.name:
                return self._call(node)
            case Loop(parallel=True):
                # Each thread has registers of its own.
                return (replace(node, body=self.scope(node.body)),)
            case Loop() | Scope():
                return (replace(node, body=self._nodes(node.body)),)
            case Guard(_, body, otherwise):
                inside, other = self._nodes(body), self._nodes(otherwise)
                return (replace(node, body=inside, otherwise=other),)
            case Call() | Copy() | Prefetch() | Token() | Setting():
                return (node,)

    def _call(self, call: Call) -> tuple[Node, ...]:
        given = dict(call.operands)
        registers = [
            self._register(buffer) if buffer is not None else None
            for buffer in self.entry.temporaries
        ]
        calls: list[Node] = []
        for part in self.entry.parts:
            operands = []
            for name, place in part.places:
                operand = part.entry.instruction.operand(name)
                operands.append((name, self._place(place, operand, given, registers)))
            calls.append(Call(part.entry.name, tuple(operands)))
        made = tuple(register for register in registers if register is not None)
        return (Scope(made, tuple(calls)),) if made else tuple(calls)

    def _place(
        self,
        place: Place,
        operand: Buffer,
        given: Mapping[str, Operand],
        registers: list[Register | None],
    ) -> Operand:
        match place:
            case Given(name):
                return given[name]
            case Made(number):
                register = registers[number]
                assert register is not None, "a part that hands on has a register"
                return register
            case Literal():
                if self.context.producers.is_immediate(operand.storage or ""):
                    return place
                key = (f"{operand.storage} {operand.shape}", place)
                if key not in self.constants:
                    self.constants[key] = self._register(operand)
                return self.constants[key]

    def _register(self, operand: Buffer) -> Register:
        shape = tuple(extent.constant or 1 for extent in operand.shape)
        name = self.context.unique(operand.name)
        return Register(name, operand.storage or "", operand.dtype, shape)

    def _set(self, emitter: Emitter, register: Register, literal: Literal) -> None:
        dims = tuple((Digit(str(d), extent),) for d, extent in enumerate(register.shape))
        wanted = Fragment(register.storage, register.dtype, register.shape, dims)
        step = self.context.producers.make(literal, wanted, {})
        if step is None:
            text = f"no instruction sets a register of {register.storage} to {literal.text}"
            raise ScheduleError(Diagnostic("E401", f"{text}, which {self.entry.name} takes"))
        emitter.make_into(step, Position({}, {}, {}), register)
