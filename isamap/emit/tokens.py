"""The C of tokens, and of fragments that take several places in turn."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from isamap.emit import names
from isamap.emit.liveness import calls
from isamap.emit.templates import Machine
from isamap.hw.accelerator import Tokens
from isamap.hw.template import render
from isamap.lower.nodes import Guard, Loop, Node, Prefetch, Register, Scope, Setting, Token


class Waiting:
    """Writes the tokens of one function.

    A channel is a variable of the description's type for tokens, or, where some posts need not be
    waited for, an array of the last ones and a count.
    """

    def __init__(self, nodes: Sequence[Node], machine: Machine) -> None:
        self.machine = machine
        self.behind = {t.channel: t.behind for t in _tokens(nodes) if t.waits}
        self.used = self.gives(nodes)

    @property
    def _texts(self) -> Tokens:
        toolchain = self.machine.accelerator.toolchain
        assert toolchain is not None, "only what has a toolchain is emitted"
        assert toolchain.tokens is not None, "a machine of tokens has C for them"
        return toolchain.tokens

    def gives(self, nodes: Sequence[Node]) -> bool:
        """Return whether some nodes give work to units that wait for tokens."""
        if self.machine.accelerator.queues != "tokens":
            return False
        accelerator, entries = self.machine.accelerator, self.machine.entries
        every = calls(tuple(nodes))
        return any(accelerator.queue(entries[c.instruction]) is not None for c in every)

    def declarations(self) -> list[str]:
        """Return the statements that declare all channels, empty."""
        lines = []
        for channel, behind in self.behind.items():
            name = names.channel(channel)
            if behind:
                lines.append(f"{self._texts.type} {name}[{behind + 1}] = {{0}};")
                lines.append(f"uint64_t {name}_count = 0;")
            else:
                lines.append(f"{self._texts.type} {name} = {{0}};")
        return lines

    def lines(self, token: Token) -> list[str]:
        """Return the statement that posts a token, or waits for one."""
        name, behind = names.channel(token.channel), self.behind[token.channel]
        if token.waits:
            # Of as many as there are, the one that the next post replaces.
            place = f"{name}[{name}_count % {behind + 1}]" if behind else name
            return [_statement(self._texts.wait, {"unit": token.unit, "token": place})]
        place = f"{name}[{name}_count++ % {behind + 1}]" if behind else name
        return [f"{place} = {render(self._texts.post, {'unit': token.unit}).strip()};"]

    def idle_lines(self) -> list[str]:
        """Return the statement that waits until all units are done."""
        return [_statement(self._texts.idle, {})] if self.used else []

    def is_host(self, node: Node) -> bool:
        """Return whether all that is in a node is the host's to do."""
        is_told = isinstance(node, Token | Setting | Prefetch)
        return not is_told and not self.gives((node,))


class Turns:
    """Writes which of several places a fragment has, each time that its scope begins."""

    def __init__(self, nodes: Sequence[Node], machine: Machine) -> None:
        self.machine = machine
        self.turning = {r.name for r in _registers(nodes) if _turns(r)}

    def declarations(self) -> list[str]:
        """Return the statements that declare how often each fragment had a place."""
        return [f"uint64_t {names.register(name)}_turn = 0;" for name in sorted(self.turning)]

    def lines(self, registers: Sequence[Register]) -> Iterator[str]:
        """Yield the statements by which fragments take their next places."""
        for register in registers:
            if not _turns(register):
                continue
            storage = self.machine.accelerator.storage(register.storage)
            size = prod(register.shape) * register.dtype.bytes
            rows = self.machine.accelerator.rows_for(storage, size)
            name = names.register(register.name)
            turn = f"{name}_turn++ % {register.places}"
            begin = f"{register.number} + " * bool(register.number)
            yield f"const int {name} = {begin}{rows} * (int)({turn});"


def _turns(register: Register) -> bool:
    return register.number is not None and register.places > 1


def _statement(template: str, values: Mapping[str, str]) -> str:
    line = render(template, values).strip()
    return line if line.endswith((";", "}")) else f"{line};"


def _parts(node: Node) -> tuple[tuple[Node, ...], ...]:
    match node:
        case Loop(body=body) | Scope(body=body):
            return (body,)
        case Guard(_, body, otherwise):
            return (body, otherwise)
        case _:
            return ()


def _tokens(nodes: Sequence[Node]) -> Iterator[Token]:
    for node in nodes:
        if isinstance(node, Token):
            yield node
        for part in _parts(node):
            yield from _tokens(part)


def _registers(nodes: Sequence[Node]) -> Iterator[Register]:
    for node in nodes:
        if isinstance(node, Scope):
            yield from node.registers
        for part in _parts(node):
            yield from _registers(part)
