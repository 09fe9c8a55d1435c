"""A lowered kernel as C functions: one that computes, and one that prepares constants for it."""

import re
from collections.abc import Mapping

from isamap.emit import copies, expressions, names, team, turns, workspace
from isamap.emit.body import INDENT, Body
from isamap.emit.expressions import Env, condition
from isamap.emit.head import head_lines
from isamap.emit.header import (
    EXPORTED,
    exported,
    header_text,
    pointer,
    prepare_signature,
    prepare_workspace_signature,
    prepared_signature,
    signature,
    workspace_signature,
    wrapped,
)
from isamap.emit.liveness import buffers_used, calls
from isamap.emit.prelude import used_part
from isamap.emit.source import Ahead, CSource, Parameter
from isamap.emit.state import State
from isamap.emit.tables import table_lines
from isamap.emit.templates import Machine
from isamap.emit.together import InStep, Together, without_threads
from isamap.emit.workspace import Block
from isamap.hw.accelerator import Accelerator
from isamap.ir.index import product
from isamap.ir.nodes import Kernel, Role
from isamap.ir.printer import print_kernel
from isamap.lower.apart import indices
from isamap.lower.nodes import LoweredKernel, Node, Window

_INNER = ("local", "table")
"""Roles of buffers that no caller gives."""


def emit_c(lowered: LoweredKernel, accelerator: Accelerator, kernel: Kernel) -> CSource:
    """Return the C of ``lowered``: the same text for the same input, byte for byte.

    ``kernel`` gives the order and the shapes of the pointer parameters.  HardwareError if an
    instruction or a register cannot be written in C.
    """
    machine = Machine.of(accelerator)
    for call in calls(lowered.body):  # Before types of registers: what has no C needs none.
        machine.template(call)
    if accelerator.toolchain is not None and accelerator.toolchain.team:
        lowered = without_threads(lowered)
    preamble = preamble_text(accelerator)
    entry = names.entry_point(lowered.name, _words(lowered, machine, preamble))
    alignments = _alignments(lowered, machine)
    parameters = _parameters(kernel, alignments)
    prepared = _ahead(lowered, parameters)
    functions = _Writer(lowered, kernel, machine, entry, alignments).functions(parameters, prepared)
    requires = tuple(f"{index} >= 0" for index in lowered.requires)
    permits = State.of(lowered.body, machine).permits
    return CSource(
        entry=entry,
        preamble="\n".join([*head_lines(accelerator), preamble_text(accelerator, functions)]),
        functions=functions,
        header=header_text(
            entry, parameters, lowered.symbols, requires, kernel, prepared, bool(permits)
        ),
        parameters=parameters,
        symbols=lowered.symbols,
        requires=requires,
        ahead=prepared,
        permits=permits,
        inner=inner_of(kernel),
    )


def inner_of(kernel: Kernel) -> tuple[tuple[str, Role], ...]:
    """Return the names and roles of a kernel's buffers that nobody gives to a call."""
    return tuple((b.name, b.role) for b in kernel.buffers if b.role in _INNER)


def function_text(lowered: LoweredKernel, machine: Machine, kernel: Kernel) -> str:
    """Return the functions of ``lowered``, called by its name, without what precedes them.

    Errors are those of :func:`emit_c`.
    """
    alignments = _alignments(lowered, machine)
    parameters = _parameters(kernel, alignments)
    return _Writer(lowered, kernel, machine, lowered.name, alignments).functions(parameters, None)


def local_text(
    lowered: LoweredKernel,
    machine: Machine,
    kernel: Kernel,
    sizes: Mapping[str, int],
    restrict: bool,
) -> tuple[str, int]:
    """Return a function ``void name(pointers..., int64_t symbols...)`` that other functions of the
    file call, and the bytes that it takes on the stack.

    It computes with one thread; its symbols are at most ``sizes``, and what the machine permits is
    known.  Its arrays lie apart if they are to ``restrict``.  Errors are those of :func:`emit_c`.
    """
    parameters = _parameters(kernel, {})
    return _Writer(lowered, kernel, machine, lowered.name, {}).local(parameters, sizes, restrict)


def preamble_text(accelerator: Accelerator, functions: str | None = None) -> str:
    """Return what precedes the functions of kernels on ``accelerator``.

    Of the description's prelude only what ``functions`` need, all of it if they are not given.
    """
    toolchain = accelerator.toolchain
    headers: tuple[str, ...] = ("math.h", "stddef.h", "stdint.h", "string.h")
    if toolchain is not None:
        headers += tuple(h for h in toolchain.headers if h not in headers)
    runtime = (toolchain.team if toolchain is not None else "") or team.RUNTIME
    is_shared = functions is None or team.is_used(functions)
    lines = [
        *([team.BEFORE] if is_shared else []),
        *(f"#include <{header}>" for header in headers),
        "",
        copies.ATTRIBUTE,
        EXPORTED,
        *([copies.ASIDE_ATTRIBUTE] if copies.is_aside(functions or "") else []),
        expressions.HELPERS,
        workspace.HELPERS,
        *([turning] if (turning := turns.turns(functions or "")) else []),
    ]
    prelude = toolchain.prelude.strip("\n") if toolchain is not None else ""
    if functions is not None:
        prelude = used_part(prelude, f"{functions}\n{runtime if is_shared else ''}")
    parts = ["\n".join(lines), prelude, runtime if is_shared else ""]
    parts = [part for part in parts if part]
    return "\n".join(parts) + ("\n" if len(parts) > 1 else "")


def _words(lowered: LoweredKernel, machine: Machine, preamble: str) -> str:
    """Return the foreign text in which a function's name must not occur."""
    used = dict.fromkeys(c.instruction for c in calls(lowered.code))
    own = [machine.entries[name] for name in used]
    return "\n".join([preamble, *(f"{e.emit or ''}\n{e.bypass or ''}" for e in own)])


def _alignments(lowered: LoweredKernel, machine: Machine) -> dict[str, int]:
    """Return the bytes to which instructions want arrays aligned, by array."""
    wanted: dict[str, int] = {}
    for call in calls(lowered.code):
        align = machine.entries[call.instruction].align
        for operand, place in call.operands:
            if isinstance(place, Window) and operand in align:
                wanted[place.buffer] = max(wanted.get(place.buffer, 1), align[operand])
    return wanted


def _parameters(kernel: Kernel, alignments: Mapping[str, int]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=b.name,
            role=b.role,
            dtype=b.dtype,
            shape=b.shape,
            size=product(b.shape),
            alignment=max(b.dtype.bytes, alignments.get(b.name, 1)),
        )
        for b in kernel.buffers
        if b.role not in _INNER
    )


def _ahead(lowered: LoweredKernel, parameters: tuple[Parameter, ...]) -> Ahead | None:
    """Return what the function that prepares constants takes; None if there is none."""
    if not lowered.prepare:
        return None
    used, later = buffers_used(lowered.prepare), buffers_used(lowered.body)
    taken = tuple(p for p in parameters if p.name in used)
    needed = frozenset().union(
        *(index.names for index in indices(lowered.prepare)),
        *(extent.names for p in taken for extent in p.shape),
        *(a.size.names for a in lowered.arrays if a.role == "prepared" or a.name in used),
    )
    return Ahead(
        taken,
        tuple(s for s in lowered.symbols if s in needed),
        frozenset(p.name for p in taken if p.name not in later),
    )


class _Writer:
    """Writes the functions of one kernel."""

    def __init__(
        self,
        lowered: LoweredKernel,
        kernel: Kernel,
        machine: Machine,
        entry: str,
        alignments: Mapping[str, int],
    ) -> None:
        self.lowered = lowered
        self.kernel = kernel
        self.machine = machine
        self.entry = entry
        self.alignments = alignments
        self.nibbles = frozenset(a.name for a in lowered.arrays if a.dtype.name == "s4")
        self.copies: list[str] = []

    def functions(self, parameters: tuple[Parameter, ...], ahead: Ahead | None) -> str:
        """Return the functions' text: copies, what prepares constants, what computes."""
        first = [] if ahead is None else self._ahead_functions(ahead)
        symbols = self.lowered.symbols
        space = self._workspace(self.lowered.body)
        size = _size_function(
            workspace_signature(self.entry, symbols), space, (*symbols,), self._env(symbols), True
        )
        taken = tuple(p for p in parameters if ahead is None or p.name not in ahead.only)
        head = exported(signature(self.entry, taken, symbols, ahead is not None))
        blocks = (space,) if ahead is None else (self._prepared(True), space)
        kernel = self._function(self.entry, head, self.lowered.body, taken, symbols, blocks)
        whole = [*self.copies, *first, size, f"{_comment(self.kernel)}\n{kernel}"]
        return "\n".join(whole)

    def local(
        self, parameters: tuple[Parameter, ...], sizes: Mapping[str, int], restrict: bool
    ) -> tuple[str, int]:
        """Return the text of a function that has its workspace on the stack, and its bytes."""
        symbols, space = self.lowered.symbols, self._workspace(self.lowered.body)
        room, inner = space.bytes(sizes), f"{self.entry}_at"
        head = f"static {signature(inner, parameters, symbols, restrict=restrict)}"
        body = self._function(inner, head, self.lowered.body, parameters, symbols, (space,))
        items = [pointer(p, False) for p in parameters]
        items += [f"int64_t {names.symbol(s)}" for s in symbols]
        given = [*(names.buffer(p.name) for p in parameters), *map(names.symbol, symbols)]
        lines = [f"char workspace[{room}];"] if room else []
        lines.append(f"{inner}({', '.join([*given, 'workspace' if room else 'NULL', '1'])});")
        outer = _function(
            wrapped(f"static void {self.entry}", items), [INDENT + line for line in lines]
        )
        return "\n".join([*self.copies, f"{_comment(self.kernel)}\n{body}", outer]), room

    def _ahead_functions(self, ahead: Ahead) -> list[str]:
        symbols, env = ahead.symbols, self._env(ahead.symbols)
        nodes = self.lowered.prepare
        kept, space = self._prepared(False), self._workspace(nodes)
        room = prepare_workspace_signature(self.entry, symbols)
        head = exported(prepare_signature(self.entry, ahead))
        return [
            _size_function(prepared_signature(self.entry, symbols), kept, symbols, env, False),
            _size_function(room, space, symbols, env, True),
            self._function(
                f"{self.entry}_prepare", head, nodes, ahead.parameters, symbols, (kept, space)
            ),
        ]

    def _env(self, symbols: tuple[str, ...]) -> Env:
        return Env(nibbles=self.nibbles).with_symbols(symbols)

    def _prepared(self, constant: bool) -> Block:
        return Block.of("prepared", self.lowered.prepared, self.alignments, constant)

    def _workspace(self, nodes: tuple[Node, ...]) -> Block:
        """Return where the locals of some nodes lie."""
        used = buffers_used(nodes)
        found = (a for a in self.lowered.arrays if a.role == "local" and a.name in used)
        return Block.of("workspace", found, self.alignments)

    def _function(
        self,
        name: str,
        head: str,
        nodes: tuple[Node, ...],
        parameters: tuple[Parameter, ...],
        symbols: tuple[str, ...],
        blocks: tuple[Block, ...],
    ) -> str:
        env = self._env(symbols)
        space = blocks[-1]
        own = frozenset(array.name for array in space.private)
        together = self._together(nodes, own)
        state = State.of(nodes, self.machine)
        checks = [*self._checks(symbols, env, blocks), *state.permit_lines()]
        is_shared = together is not None
        body = Body(self.lowered, nodes, self.machine, self.entry, env, self.copies, together)
        arguments = team.Arguments(parameters, symbols, [(b.base, b.constant) for b in blocks])
        tables = table_lines(self.lowered, nodes, self.alignments)
        if not is_shared:
            body.put(*tables, *checks)
        else:
            body.put(*tables)
        if not is_shared and space.has_private:
            body.put("if (threads < 1) threads = 1;")
        for block in blocks:
            body.put(*block.pointer_lines(env))
        thread = "(size_t)thread" if is_shared else "0"
        body.put(*space.private_lines(thread, buffers_used(nodes)))
        body.put(*state.enter_lines())
        body.write()
        body.put(*state.leave_lines())
        if not is_shared:
            body.put("return 0;")
            head = state.attributes + head
            return _function(head, _unused([*arguments.names, "threads"], body.out) + body.out)
        part = _unused([*arguments.names, "loops", "thread", "threads"], body.out) + body.out
        begin = [*checks, "if (threads < 1) threads = 1;"]
        begin += [*team.together_lines(name, arguments), "return 0;"]
        return "\n".join(
            [
                _function(state.attributes + team.part_head(name, arguments), part),
                team.share_text(name, arguments),
                _function(head, [INDENT + line for line in begin]),
            ]
        )

    def _together(self, nodes: tuple[Node, ...], own: frozenset[str]) -> Together | None:
        accelerator = self.machine.accelerator
        if accelerator.toolchain is not None and accelerator.toolchain.team:
            pads = frozenset(s.name for s in accelerator.scratchpads)
            return InStep.on(nodes, self.machine.entries, pads, self.lowered.arrays)
        return Together.of(nodes, self.machine.entries, own)

    def _checks(self, symbols: tuple[str, ...], env: Env, blocks: tuple[Block, ...]) -> list[str]:
        lines = [f"if ({name} < 1) return -1;" for name in map(names.symbol, symbols)]
        for number, requirement in enumerate(self.lowered.requires, 1):
            if requirement.names <= set(symbols):
                lines.append(f"if (!({condition(requirement, env)})) return {number};")
        missing = {"workspace": -2, "prepared": -3}
        lines += [f"if ({b.base} == NULL) return {missing[b.base]};" for b in blocks if b.arrays]
        return lines


def _size_function(
    head: str, block: Block, symbols: tuple[str, ...], env: Env, threads: bool
) -> str:
    """Return the function that tells how many bytes a block takes."""
    arguments = [*map(names.symbol, symbols), *(["threads"] if threads else [])]
    body = [INDENT + line for line in block.size_lines(env)]
    return _function(exported(head), _unused(arguments, body) + body)


def _comment(kernel: Kernel) -> str:
    """Return the kernel's own text as a comment."""
    lines = print_kernel(kernel).rstrip().splitlines()
    return "\n".join(["/*", *(f" * {names.comment(line)}".rstrip() for line in lines), " */"])


def _unused(arguments: list[str], body: list[str]) -> list[str]:
    """Return the statements that tell a compiler of arguments that ``body`` does not mention."""
    words = set(re.findall(r"\w+", "\n".join(body)))
    return [f"{INDENT}(void){name};" for name in arguments if name not in words]


def _function(head: str, body: list[str]) -> str:
    return "\n".join([head, "{", *body, "}"]) + "\n"
