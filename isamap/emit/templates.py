"""Instruction calls: a description's C template with its placeholders filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from isamap.diagnostics import HardwareError, fail
from isamap.emit import literals, names
from isamap.emit.expressions import Env, operand, text
from isamap.hw.accelerator import Accelerator, Entry
from isamap.hw.template import Placeholder, render, scan
from isamap.ir.index import Index, product
from isamap.ir.nodes import Buffer, Literal
from isamap.lower.nodes import Call, Operand, Prefetch, Register, Setting, Window

_REACH = 1 << 24
"""Elements beyond a pointer that are a part of an instruction: fewer than 2^31 bytes."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An accelerator with its entries by name."""

    accelerator: Accelerator
    entries: Mapping[str, Entry]

    @classmethod
    def of(cls, accelerator: Accelerator) -> "Machine":
        """Index the entries of an accelerator."""
        return cls(accelerator, accelerator.by_name)

    def template(self, call: Call) -> str:
        """Return the C template of a call, HardwareError if its instruction has none."""
        entry = self.entries[call.instruction]
        if entry.emit is None:
            text = f"instruction {entry.name} has no C template (emit)"
            raise HardwareError(fail("E514", text, entry.span))
        assert entry.bypass is not None or not call.bypass, "only what has one for it bypasses"
        return entry.bypass if call.bypass and entry.bypass is not None else entry.emit

    def register_type(self, register: Register) -> str:
        """Return the C type of a register."""
        storage = self.accelerator.storage(register.storage)
        if register.dtype.name not in storage.types:
            raise HardwareError(
                fail(
                    "E513",
                    f"storage {storage.name} gives no C type for {register.dtype}",
                    storage.span,
                    hint=f"add '{register.dtype}: <C type>' to its types",
                )
            )
        return storage.types[register.dtype.name]


def call_lines(call: Call, machine: Machine, env: Env) -> list[str]:
    """Return the statements of one instruction call."""
    template = machine.template(call)
    filled = render(template, _values(call, machine.entries[call.instruction], machine, env))
    lines = [line.rstrip() for line in filled.strip("\n").splitlines()]
    if not lines:
        return []
    if not lines[-1].endswith((";", "}")):
        lines[-1] += ";"
    # Several statements may declare names: they get a block of their own.
    if len(lines) > 1 or ";" in lines[0][:-1]:
        return ["{", *(f"    {line}" if line else "" for line in lines), "}"]
    return lines


def setting_lines(setting: Setting, machine: Machine, env: Env) -> list[str]:
    """Return the statements that give a state of the machine its value."""
    state = machine.accelerator.state(setting.state)
    if state.emit is None:
        text = f"the state {state.name} has no C template (emit)"
        raise HardwareError(fail("E514", text, state.span))
    match setting.value:
        case Index():
            value = operand(setting.value, env)
        case Literal():
            value = literals.value_text(setting.value)
    line = render(state.emit, {"value": value}).strip()
    return [line if line.endswith((";", "}")) else f"{line};"]


def prefetch_line(prefetch: Prefetch, machine: Machine, env: Env) -> str:
    """Return the statement that asks for a line of memory.

    The address is computed as an integer: a pointer may not lie outside its array, even unused.
    """
    template = machine.accelerator.storage(prefetch.storage).prefetch
    assert template is not None, "only a cache that has a template is prefetched into"
    pointer = names.buffer(prefetch.buffer)
    offset = f"(uintptr_t)({text(prefetch.offset, env)}) * sizeof *{pointer}"
    line = render(template, {"address": f"((uintptr_t){pointer} + {offset})"}).strip()
    return line if line.endswith((";", "}")) else f"{line};"


def _values(call: Call, entry: Entry, machine: Machine, env: Env) -> dict[str, str]:
    values = {name: dtype.name for name, dtype in entry.instruction.types}
    for extent in entry.instruction.extents:
        if extent.value is not None:
            values[extent.name] = str(extent.value)
    for name, index in call.symbols:
        values[name] = operand(index, env)
    for name, place in call.operands:
        declared = entry.instruction.operand(name)
        values[name] = _place(place, declared, call, machine, env)
        far, near = _apart(place)
        values[f"{name}.base"] = _place(far, declared, call, machine, env)
        values[f"{name}.offset"] = str(near)
    return values


def _apart(place: Operand) -> tuple[Operand, int]:
    """Return a place as another one and the constant number of elements from there to it.

    The number is 0 where it is more than an address in an instruction holds.
    """
    if not isinstance(place, Window):
        return place, 0
    near = place.offset.offset
    if not 0 < near < _REACH:
        return place, 0
    return replace(place, offset=place.offset - near), near


def names_offsets(call: Call, machine: Machine) -> bool:
    """Return whether the template of a call names constant parts of addresses."""
    found = scan(machine.template(call))
    return any(isinstance(token, Placeholder) and token.part for token in found)


def _place(place: Operand, declared: Buffer, call: Call, machine: Machine, env: Env) -> str:
    match place:
        case Register(name, number=number, places=places):
            return names.register(name) if number is None or places > 1 else str(number)
        case Window(buffer, offset):
            pointer = names.buffer(buffer)
            return f"({pointer} + {text(offset, env)})" if offset.terms else pointer
        case Literal():
            return _literal(place, declared, call, machine)
        case Index():
            return operand(place, env)
        case _:
            assert_never(place)


def _literal(literal: Literal, declared: Buffer, call: Call, machine: Machine) -> str:
    assert declared.storage is not None
    storage = machine.accelerator.storage(declared.storage)
    if storage.kind not in ("registers", "immediate", "scratchpad"):
        # A pointer to as many elements as the operand has, on the stack of the caller.
        count = product(e.substitute(dict(call.symbols)) for e in declared.shape).constant
        assert count is not None, "a constant in memory has a fixed number of elements"
        element = literals.memory_text(literal)
        c_type = literals.memory_type(literal.dtype)
        return f"((const {c_type}[{count}]){{{', '.join([element] * count)}}})"
    c_type = storage.types.get(literal.dtype.name, "float")
    if literals.is_raw(literal.dtype) and c_type not in ("float", "double"):
        return literals.memory_text(literal)
    return literals.value_text(literal)
