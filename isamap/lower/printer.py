"""A lowered kernel as text for people and golden files; the same input gives the same text."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import assert_never

from isamap.ir.index import Index
from isamap.ir.nodes import Literal
from isamap.lower.nodes import (
    Array,
    Call,
    Copy,
    Guard,
    InRegisters,
    Loop,
    LoweredKernel,
    Node,
    Operand,
    Prefetch,
    Register,
    Scope,
    Setting,
    Token,
    Window,
)

_INDENT = "  "

_WIDE = 100
"""Characters of a line, without its indentation, from which on its parts have lines of their own.

(A body of many tiles declares hundreds of registers.)
"""


def print_lowered(lowered: LoweredKernel) -> str:
    """Return the text of a lowered kernel: a line for each node, more for long ones; bodies
    indented."""
    lines = [f"lowered {lowered.name}({', '.join(lowered.symbols)}) {{"]
    lines += [_INDENT + _array(array) for array in lowered.arrays]
    lines += [f"{_INDENT}{name} lies in {place}" for name, place in lowered.lent]
    lines += [_INDENT + _in_registers(own) for own in lowered.in_registers]
    lines += [f"{_INDENT}requires {_condition(index)}" for index in lowered.requires]
    if lowered.prepare:
        lines += [_INDENT + line for line in ("prepare {", *_indented(lowered.prepare), "}")]
    lines += [_INDENT + line for line in _nodes(lowered.body)]
    return "\n".join([*lines, "}"]) + "\n"


def _array(array: Array) -> str:
    private = "private " if array.private else ""
    text = f"{private}{array.role} {array.name} : {array.dtype}[{array.size}]"
    if array.contents is not None:
        texts = [literal.text for literal in array.contents.elements]
        alike = len(texts) > 1 and len(set(texts)) == 1
        text += f" = [{texts[0]}, ...]" if alike else f" = [{', '.join(texts)}]"
    return text


def _in_registers(own: InRegisters) -> str:
    by = f" by {' + '.join(own.by)}" if own.by else ""
    return f"{own.statement} in the registers of {own.within}{by}"


def _nodes(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        yield from _node(node)


def _node(node: Node) -> Iterator[str]:
    match node:
        case Call():
            yield _call(node)
        case Loop(counter, count, body, parallel):
            yield f"{'parallel ' if parallel else ''}for {counter} in 0..{_bound(count)} {{"
            yield from _indented(body)
            yield "}"
        case Guard(conditions, body, otherwise):
            yield f"if {_conditions(conditions)} {{"
            yield from _indented(body)
            if otherwise:
                yield "} else {"
                yield from _indented(otherwise)
            yield "}"
        case Scope(registers, body):
            yield "scope {"
            yield from (_INDENT + line for line in _registers(registers))
            yield from _indented(body)
            yield "}"
        case Copy():
            yield from _copy(node)
        case Token():
            yield _token(node)
        case Setting(state, value, slot):
            number = f" {slot}" if slot else ""
            yield f"set {state}{number} = {value if isinstance(value, Index) else _operand(value)}"
        case Prefetch(storage, buffer, offset):
            yield f"prefetch {buffer}[{offset}] into {storage}"
        case _:
            assert_never(node)


def _indented(body: tuple[Node, ...]) -> Iterator[str]:
    return (_INDENT + line for line in _nodes(body))


def _registers(registers: tuple[Register, ...]) -> Iterator[str]:
    """Yield a declaration for each run of registers of one kind."""
    for (storage, dtype, shape), same in groupby(
        registers, key=lambda r: (r.storage, r.dtype.name, r.shape)
    ):
        extents = ", ".join(map(str, shape))
        *others, last = (_register(r) for r in same)
        parts = [*(f"{one}," for one in others), f"{last} : {dtype}[{extents}] @ {storage}"]
        yield from _filled(parts)


def _filled(parts: Iterable[str]) -> Iterator[str]:
    """Yield lines that parts fill; those after the first are indented."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) >= _WIDE:
            yield line
            line = _INDENT + part
        else:
            line = f"{line} {part}" if line else part
    yield line


def _register(register: Register) -> str:
    """Return a fragment's name and where it lies: ``a = 64 in 2 places``."""
    number = "" if register.number is None else f" = {register.number}"
    return register.name + number + f" in {register.places} places" * (register.places > 1)


def _token(token: Token) -> str:
    if not token.waits:
        return f"{token.unit} posts {token.channel}"
    behind = f" but for the last {token.behind}" * bool(token.behind)
    return f"{token.unit} waits for {token.channel}{behind}"


def _call(call: Call) -> str:
    arguments = ", ".join(f"{name} = {_operand(place)}" for name, place in call.operands)
    symbols = ", ".join(f"{name} = {index}" for name, index in call.symbols)
    past = " past the caches" * call.bypass
    return f"{call.instruction}({arguments}{'; ' if symbols else ''}{symbols}){past}"


def _operand(place: Operand) -> str:
    match place:
        case Register(name):
            return name
        case Window(buffer, offset):
            return f"{buffer}[{offset}]"
        case Literal(text, dtype):
            return f"{dtype}({text})"
        case Index():
            return f"index({place})"
        case _:
            assert_never(place)


def _copy(copy: Copy) -> Iterator[str]:
    box = ", ".join(f"{name} in 0..{_bound(count)}" for name, count in copy.counters)
    target = f"{copy.target}[{copy.target_offset}]"
    fill = f"{copy.fill.dtype}({copy.fill.text})" if copy.fill is not None else ""
    source = f"{copy.source}[{copy.source_offset}]" if copy.source is not None else fill
    parts = [f"copy {target} = {source}"]
    if box:
        parts.append(f"for {box}")
    if copy.conditions:
        otherwise = f" else {fill}" if fill else ""
        parts.append(f"where {_conditions(copy.conditions)}{otherwise}")
    text = " ".join(parts)
    if len(text) <= _WIDE:
        yield text
        return
    yield parts[0]
    yield from (_INDENT + part for part in parts[1:])


def _conditions(conditions: tuple[Index, ...]) -> str:
    return " and ".join(map(_condition, conditions)) or "true"


def _condition(index: Index) -> str:
    return f"{index} >= 0"


def _bound(count: Index) -> str:
    return str(count) if len(count.terms) <= 1 else f"({count})"
