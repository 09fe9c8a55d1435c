"""From the syntax of definitions to kernels, instructions and programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import cast

from isamap.diagnostics import Collector, Diagnostic
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.nodes import (
    Buffer,
    Instruction,
    Invocation,
    Kernel,
    Program,
    Role,
    State,
    Statement,
    TimeLoop,
)
from isamap.text.body import Body
from isamap.text.context import Scope
from isamap.text.header import (
    buffer,
    declare_buffer,
    declare_extents,
    declare_range,
    limits,
    permissions,
)
from isamap.text.syntax import (
    BufferItem,
    CallItem,
    Damage,
    Definition,
    LoopItem,
    RangeItem,
    StateItem,
    StatementItem,
)
from isamap.text.tokens import Places
from isamap.text.values import Typing

_MAX_INSTANCES = 2000
_DERIVED: Mapping[Damage, frozenset[str]] = {
    "": frozenset(),
    "statements": frozenset(("E024", "E027", "E028", "E043")),
    "declarations": frozenset(("E013", "E022", "E023", "E024", "E027", "E028", "E043")),
}
"""What may only follow from an error of syntax: not told of a damaged definition."""


@dataclass(slots=True)
class Reader:
    """Reads the definitions of one file; errors and open questions go to its collectors.

    ``constants`` are names that stand for numbers everywhere.
    """

    places: Places
    errors: Collector
    limits: Collector
    constants: Mapping[str, int] = field(default_factory=dict)

    def kernel(self, definition: Definition, overrides: Mapping[str, int]) -> Kernel | None:
        """Return a kernel, or None after reporting what is wrong with it."""
        mine = self._mine()
        scope = self._scope(mine)
        declare_extents(scope, definition, overrides)
        permitted = permissions(scope, definition)
        self._declare(scope, definition, None)
        body = self._body(scope, definition)
        if body.plans:
            self._check_seen(scope, definition)
        typing = Typing(scope, {})
        statements = self._typed(typing, body)
        if self._close(mine, definition):
            return None
        return Kernel(
            definition.name.text,
            tuple(scope.extents.values()),
            permitted,
            tuple(typing.buffers.values()),
            tuple(scope.ranges.values()),
            tuple(statements),
            scope.span(definition.name),
        )

    def instructions(
        self, definition: Definition, storages: frozenset[str]
    ) -> tuple[Instruction, ...]:
        """Return an instruction for every combination of its type parameters.

        ``storages`` are the names of storages that there are; empty: any name is one.
        """
        mine = self._mine()
        scope = self._scope(mine)
        for parameter in definition.parameters:
            if scope.declare(parameter.name):
                scope.parameters[parameter.name.text] = parameter.name
        declare_extents(scope, definition, {})
        self._declare(scope, definition, storages)
        body = self._body(scope, definition)
        found: list[tuple[Typing, list[Statement]]] = []
        for types in self._bindings(scope, definition):
            before = len(mine.found)
            typing = Typing(scope, types, spans=found[0][0].spans if found else {})
            found.append((typing, self._typed(typing, body)))
            if len(mine.found) > before:
                bound = ", ".join(f"{name} = {dtype}" for name, dtype in types.items())
                mine.found[before:] = [_with(d, bound) for d in mine.found[before:]]
                break
        states = self._states(scope, definition)
        if self._close(mine, definition):
            return ()
        return tuple(
            self._instruction(scope, definition, typing, statements, states)
            for typing, statements in found
        )

    def program(self, definition: Definition, overrides: Mapping[str, int]) -> Program | None:
        """Return a program, or None after reporting what is wrong with it."""
        mine = self._mine()
        scope = self._scope(mine)
        declare_extents(scope, definition, overrides)
        self._declare(scope, definition, None)
        typing = Typing(scope, {})
        self._buffers(typing)
        body = tuple(self._steps(scope, definition.items))
        if not body:
            message = f"the program {definition.name.text} calls nothing"
            scope.fail("E028", message, definition.name)
        if self._close(mine, definition):
            return None
        name, extents = definition.name, tuple(scope.extents.values())
        buffers = tuple(typing.buffers.values())
        return Program(name.text, extents, buffers, body, scope.span(name))

    # --- parts ------------------------------------------------------------------------------------
    def _mine(self) -> Collector:
        return Collector()

    def _scope(self, errors: Collector) -> Scope:
        return Scope(self.places, errors, self.limits, self.constants)

    def _close(self, mine: Collector, definition: Definition) -> bool:
        """Hand over the errors of a definition; return whether it cannot be used."""
        derived = _DERIVED[definition.damaged]
        self.errors.extend(d for d in mine.found if d.code not in derived)
        return bool(mine.found or definition.damaged)

    def _declare(
        self, scope: Scope, definition: Definition, storages: frozenset[str] | None
    ) -> None:
        for item in definition.items:
            match item:
                case BufferItem():
                    declare_buffer(scope, item, storages, definition.kind)
                    if (ends := limits(item)) is not None:
                        scope.values[item.name.text] = ends
                case RangeItem():
                    declare_range(scope, item)
                case _:
                    pass

    def _body(self, scope: Scope, definition: Definition) -> Body:
        body = Body(scope)
        for item in definition.items:
            if isinstance(item, StatementItem):
                body.add(item)
        if not body.plans:
            message = f"the {definition.kind} {definition.name.text} has no statement"
            hint = "a statement is written Y[i] = X[i]"
            scope.fail("E028", message, definition.name, hint)
        else:
            body.finish()
        return body

    def _check_seen(self, scope: Scope, definition: Definition) -> None:
        """Report a kernel whose caller sees nothing of what it computes."""
        # As they are written: what else is wrong with a buffer is told already.
        roles = {item.role.text for item in definition.items if isinstance(item, BufferItem)}
        if not roles & {"out", "inout"}:
            message = f"the kernel {definition.name.text} has no out or inout buffer"
            hint = "what a kernel computes is seen in these only: out Y : f32[4]"
            scope.fail("E028", message, definition.name, hint)

    def _typed(self, typing: Typing, body: Body) -> list[Statement]:
        self._buffers(typing)
        return body.statements(typing)

    def _buffers(self, typing: Typing) -> None:
        for name, declared in typing.scope.buffers.items():
            if (found := buffer(typing, declared)) is not None:
                typing.buffers[name] = found

    def _bindings(self, scope: Scope, definition: Definition) -> Iterator[dict[str, DType]]:
        parameters = definition.parameters
        count = prod(len(p.dtypes) for p in parameters)
        if count > _MAX_INSTANCES:
            message = f"{count} combinations of types; {_MAX_INSTANCES} are allowed"
            scope.fail("E039", message, definition.name)
            return
        for parameter in parameters:
            seen: set[str] = set()
            for dtype in parameter.dtypes:
                if dtype.text in seen:
                    scope.fail("E039", f"the type {dtype.text} is given twice", dtype)
                seen.add(dtype.text)
        for chosen in product(*(p.dtypes for p in parameters)):
            pairs = zip(parameters, chosen, strict=True)
            yield {parameter.name.text: DTYPES[dtype.text] for parameter, dtype in pairs}

    def _states(self, scope: Scope, definition: Definition) -> tuple[State, ...]:
        found = []
        for item in definition.items:
            if isinstance(item, StateItem) and scope.declare(item.name):
                dtype = DTYPES.get(item.dtype.text)
                if dtype is None:
                    hint = f"the types are: {' '.join(DTYPES)}"
                    scope.fail("E013", f"unknown type '{item.dtype.text}'", item.dtype, hint)
                else:
                    role = cast(Role, item.role.text)
                    found.append(State(item.name.text, role, dtype, scope.span(item.name)))
        return tuple(found)

    def _instruction(
        self,
        scope: Scope,
        definition: Definition,
        typing: Typing,
        statements: list[Statement],
        states: tuple[State, ...],
    ) -> Instruction:
        name = definition.name.text
        operands: tuple[Buffer, ...] = tuple(typing.buffers.values())
        return Instruction(
            "_".join((name, *(dtype.name for dtype in typing.types.values()))),
            tuple(scope.extents.values()),
            operands,
            states,
            tuple(scope.ranges.values()),
            tuple(statements),
            tuple(typing.types.items()),
            name,
            typing.span(definition.name),
        )

    def _steps(self, scope: Scope, items: object) -> Iterator[Invocation | TimeLoop]:
        for item in cast("tuple[object, ...]", items):
            match item:
                case CallItem():
                    for argument in item.arguments:
                        if argument.text not in scope.buffers | dict.fromkeys(scope.broken):
                            hint = f"the buffers are: {', '.join(scope.buffers) or 'none'}"
                            message = f"unknown buffer '{argument.text}'"
                            scope.fail("E013", message, argument, hint)
                    arguments = tuple(argument.text for argument in item.arguments)
                    yield Invocation(item.kernel.text, arguments, scope.span(item))
                case LoopItem():
                    yield from self._loop(scope, item)
                case _:
                    pass

    def _loop(self, scope: Scope, item: LoopItem) -> Iterator[TimeLoop]:
        for inner in item.body:
            if isinstance(inner, BufferItem):
                message = "buffers are declared at the beginning of a program, outside its loops"
                scope.fail("E038", message, inner)
        declare_range(scope, RangeItem(item.name, item.lower, item.upper, item.start, item.end))
        body = tuple(self._steps(scope, item.body))
        if (found := scope.ranges.get(item.name.text)) is not None:
            yield TimeLoop(found.name, found.lower, found.upper, body, scope.span(item))


def _with(diagnostic: Diagnostic, bound: str) -> Diagnostic:
    """Return a message with a note on the types for which it holds."""
    if not bound:
        return diagnostic
    note = Diagnostic("", f"with {bound}", diagnostic.span, severity="note")
    return replace(diagnostic, notes=(*diagnostic.notes, note))
