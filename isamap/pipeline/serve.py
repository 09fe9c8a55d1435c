"""Instructions of one machine executed by another one: mapping at two levels.

A machine that is *served* has instructions and no C templates; its ``server`` has a compiler.  A
kernel is mapped on to the served machine as on to any other.  Then each distinct call in the code,
an instruction with the counts, pitches and immediates that it has there, is a kernel itself
(:mod:`isamap.pipeline.called`), for the meaning of an instruction is written in the language of
kernels.  It is mapped on to the server by the same path and becomes a C function, and the call's
template is a call of that function.  What is emitted is thus ordinary C of the server's.

One function for each distinct call, and not one with symbols for each instruction: a kernel has few
distinct calls (whole tiles, and those at the ends), and what is known of one, above all that a
count is 64, is what makes its code good.  Counts and pitches that are known only when the code runs
stay symbols.

Fragments in registers and scratchpads of the served machine become C variables, one for each, and
tokens and settings of states nothing: C is executed in order, and calls say what states do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from threading import RLock

from isamap.diagnostics import Diagnostic, HardwareError, NoMappingError, fail
from isamap.emit import literals, names
from isamap.emit.c import emit_c, local_text
from isamap.emit.source import CSource
from isamap.emit.state import State
from isamap.emit.templates import Machine
from isamap.hw.accelerator import Accelerator, Entry
from isamap.ir.dtype import DType
from isamap.ir.index import Index
from isamap.ir.nodes import Kernel, Permissions
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import (
    Call,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Operand,
    Register,
    Scope,
    Setting,
    Token,
)
from isamap.pipeline.arrange import Arranged, arrange
from isamap.pipeline.called import Called, UnservedError, called
from isamap.pipeline.options import Options, Tell, silent
from isamap.pipeline.sequences import Sequences
from isamap.pipeline.service import Service
from isamap.pipeline.sizes import TYPICAL_SIZE
from isamap.pipeline.unmapped import enumerate_each, nothing

STACK = 1 << 20
"""Bytes that a function may take for what it packs: it is called by threads, on their stacks."""

_REMEMBERED = 512
"""Mapped calls that are kept for other code."""

_ONE_AT_A_TIME = RLock()
"""Candidates of a search are emitted by several threads; mapping is not made for that."""


@dataclass(frozen=True, slots=True)
class Served:
    """The code of a kernel in instructions that have templates, and what they stand for."""

    lowered: LoweredKernel
    accelerator: Accelerator
    services: tuple[Service, ...]


@dataclass(frozen=True, slots=True)
class Emitted:
    """The C of a kernel, and the calls that are served in it."""

    source: CSource
    services: tuple[Service, ...] = ()


def emit(
    lowered: LoweredKernel, accelerator: Accelerator, kernel: Kernel, tell: Tell = silent
) -> Emitted:
    """Return the C of ``lowered``, for a served machine that of its server's.

    HardwareError if an instruction or a register cannot be written in C, NoMappingError if the
    server cannot compute a call.
    """
    if accelerator.server is None:
        return Emitted(emit_c(lowered, accelerator, kernel))
    served = serve(lowered, accelerator, kernel.permissions, tell)
    source = emit_c(served.lowered, served.accelerator, kernel)
    return Emitted(source, served.services)


def emitted(
    kernel: Kernel, hardware: Accelerator, lowered: LoweredKernel, tell: Tell = silent
) -> tuple[Emitted | None, str]:
    """Return the C, or None and the reason why there is none."""
    if hardware.toolchain is None:
        return None, f"the description of '{hardware.name}' names no toolchain"
    try:
        return emit(lowered, hardware, bind_extents(kernel), tell), ""
    except HardwareError as error:
        return None, error.diagnostics[0].message


def serve(
    lowered: LoweredKernel,
    accelerator: Accelerator,
    permissions: Permissions,
    tell: Tell = silent,
) -> Served:
    """Return what ``lowered`` is on the server of ``accelerator``; NoMappingError if nothing is."""
    with _ONE_AT_A_TIME:
        return _Serving(lowered, accelerator, permissions, tell).served()


class _Serving:
    """Serves the calls of one kernel."""

    def __init__(
        self, lowered: LoweredKernel, accelerator: Accelerator, permissions: Permissions, tell: Tell
    ) -> None:
        assert accelerator.server is not None, "only a machine that has a server is served"
        self.lowered = lowered
        self.accelerator = accelerator
        self.server = accelerator.server
        self.machine = Machine.of(self.server)
        self.entries = accelerator.by_name
        self.permissions = permissions
        self.tell = tell
        self.made: dict[object, Entry] = {}
        self.services: list[Service] = []
        self.texts: list[str] = []

    def served(self) -> Served:
        """Serve all calls and return the code that is left."""
        body = self._nodes(self.lowered.body)
        prepare = self._nodes(self.lowered.prepare)
        lowered = replace(self.lowered, body=body, prepare=prepare)
        kinds = _Variables.of(lowered.code)
        every = self.accelerator.storages
        storages = tuple(replace(s, types=kinds.types(s.name)) for s in every)
        toolchain = self.server.toolchain
        assert toolchain is not None, "only a machine that has a toolchain serves"
        prelude = "\n".join([toolchain.prelude.strip("\n"), *kinds.declarations, *self.texts])
        accelerator = replace(
            self.accelerator,
            storages=storages,
            entries=tuple(self.made.values()),
            queues=None,  # functions that are called are done when the next one is
            toolchain=replace(toolchain, prelude=prelude),
        )
        return Served(lowered, accelerator, tuple(self.services))

    # --- the code -------------------------------------------------------------------------------
    def _nodes(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(made for node in nodes for made in self._node(node))

    def _node(self, node: Node) -> Iterator[Node]:
        match node:
            case Call():
                entry = self._entry(node)
                places = tuple((name, _place(place)) for name, place in node.operands)
                yield replace(node, instruction=entry.name, operands=places, bypass=False)
            case Loop():
                yield replace(node, body=self._nodes(node.body))
            case Guard():
                body, otherwise = self._nodes(node.body), self._nodes(node.otherwise)
                yield replace(node, body=body, otherwise=otherwise)
            case Scope():
                registers = tuple(_variable(register) for register in node.registers)
                yield Scope(registers, self._nodes(node.body))
            case Token() | Setting():
                pass
            case _:
                yield node

    # --- the calls ------------------------------------------------------------------------------
    def _entry(self, call: Call) -> Entry:
        """Return an entry whose template calls the function that computes a call."""
        entry = self.entries[call.instruction]
        try:
            kernel = called(call, entry, dict(self.lowered.lent), self.permissions)
        except UnservedError as error:
            raise self._unserved(call, entry, str(error)) from None
        kinds = tuple((name, isinstance(place, Register)) for name, place in call.operands)
        key = (kernel, kinds)
        if key not in self.made:
            self.made[key] = self._served(call, entry, kernel)
        return self.made[key]

    def _served(self, call: Call, entry: Entry, made: Called) -> Entry:
        function = f"served_{names.mangle(entry.name)}_{len(self.made)}"
        self.tell(f"serving {entry.name} by {self.server.name}")
        ranges = {e.name: e.range for e in entry.instruction.extents if e.range is not None}
        most = {n: ranges[n][1] - 1 for n in made.symbols if n in ranges}
        typical = {n: most.get(n, TYPICAL_SIZE) for n in made.symbols}
        try:
            arranged = _arranged(made.kernel, self.server, typical)
        except NoMappingError as error:
            raise self._unserved(call, entry, "", error.diagnostics) from error
        choice = arranged.choice
        assert choice is not None, "nothing() raised"
        lowered = replace(choice.lowered, name=function)
        if lowered.requires:
            raise self._unserved(call, entry, f"its code needs {lowered.requires[0]} >= 0")
        sized = frozenset().union(*(a.size.names for a in lowered.arrays if a.role == "local"))
        if unknown := sorted(sized - most.keys()):
            raise self._unserved(call, entry, f"its workspace depends on {', '.join(unknown)}")
        text, stack = local_text(lowered, self.machine, arranged.kernel, most, made.apart)
        if stack > STACK:
            raise self._unserved(call, entry, f"its workspace takes {stack} bytes of a stack")
        self.texts.append(text)
        numbers = {name: index.constant for name, index in call.symbols}
        extents = tuple((e.name, numbers.get(e.name)) for e in entry.instruction.extents)
        mapped = arranged.kernel
        name = Sequences(mapped, self.server).name
        used = tuple(dict.fromkeys(name(own.mapping) for own in choice.schedule.statements))
        service = Service(function, entry.name, extents, made.kernel, mapped, choice, used, stack)
        self.services.append(service)
        return replace(
            entry,
            instruction=replace(entry.instruction, name=function),
            emit=_template(function, call, made),
            permits=State.of(lowered.body, self.machine).permits,
        )

    def _unserved(
        self, call: Call, entry: Entry, why: str, causes: tuple[Diagnostic, ...] = ()
    ) -> NoMappingError:
        """Return the error for a call that the server does not compute."""
        given = dict(call.symbols)
        known = (e.name for e in entry.instruction.extents if e.name in given)
        sizes = ", ".join(f"{name} = {given[name]}" for name in known)
        text = f"'{self.server.name}' does not serve {entry.name}"
        text += f" with {sizes}" if sizes else ""
        notes = [Diagnostic("", d.message, severity="note") for d in causes]
        notes += [note for cause in causes for note in cause.notes]
        hint = "another server may: portable_c has every operation"
        own = fail("E723", f"{text}: {why}" if why else text, entry.span, hint)
        return NoMappingError([replace(own, notes=tuple(notes))])


_MAPPED: dict[tuple[Kernel, str], Arranged] = {}
"""How kernels of calls were mapped to servers, told apart by their digests."""


def _arranged(kernel: Kernel, server: Accelerator, typical: Mapping[str, int]) -> Arranged:
    """Map the kernel of a call; NoMappingError.  The same call in other code is mapped once."""
    key = (kernel, server.digest)
    if key not in _MAPPED:
        found = enumerate_each(kernel, server)
        arranged = arrange(kernel, server, found, Options(), typical, silent)
        if arranged.choice is None:
            raise nothing(kernel, server, found, arranged.refused)
        if len(_MAPPED) >= _REMEMBERED:
            _MAPPED.clear()
        _MAPPED[key] = arranged
    return _MAPPED[key]


# --- what stands for fragments and calls ----------------------------------------------------------
def _place(place: Operand) -> Operand:
    return _variable(place) if isinstance(place, Register) else place


def _variable(register: Register) -> Register:
    """Return a fragment as a variable of its own."""
    return replace(register, number=None, places=1)


def _registers(nodes: tuple[Node, ...]) -> Iterator[Register]:
    for node in nodes:
        match node:
            case Scope():
                yield from node.registers
                yield from _registers(node.body)
            case Loop():
                yield from _registers(node.body)
            case Guard():
                yield from _registers((*node.body, *node.otherwise))
            case _:
                pass


@dataclass(frozen=True, slots=True)
class _Variables:
    """The C types of the fragments of a kernel: by storage and element type, as large as any."""

    elements: Mapping[tuple[str, str], int]
    dtypes: Mapping[str, DType]

    @classmethod
    def of(cls, nodes: tuple[Node, ...]) -> "_Variables":
        """Return the types of the fragments that some nodes declare."""
        elements: dict[tuple[str, str], int] = {}
        dtypes: dict[str, DType] = {}
        for register in _registers(nodes):
            key = (register.storage, register.dtype.name)
            elements[key] = max(elements.get(key, 0), prod(register.shape))
            dtypes[register.dtype.name] = register.dtype
        return cls(elements, dtypes)

    def types(self, storage: str) -> dict[str, str]:
        """Return the C type of each element type in a storage."""
        own = ((dtype, n) for (place, dtype), n in self.elements.items() if place == storage)
        return {dtype: f"isamap_{dtype}_{n}" for dtype, n in own}

    @property
    def declarations(self) -> list[str]:
        """The lines that declare the types."""
        kinds = dict.fromkeys((dtype, n) for (_, dtype), n in self.elements.items())
        return [
            f"typedef struct {{ {literals.memory_type(self.dtypes[dtype])} e[{n}]; }} "
            f"isamap_{dtype}_{n};"
            for dtype, n in kinds
        ]


def _template(function: str, call: Call, made: Called) -> str:
    """Return the C template of a call of a function."""
    places = dict(call.operands)
    given = [_argument(name, places[name]) for name in made.pointers]
    return f"{function}({', '.join([*given, *(f'{{{name}}}' for name in made.symbols)])});"


def _argument(name: str, place: Operand) -> str:
    match place:
        case Register():
            return f"{{{name}}}.e"
        case Index():
            return f"(const int64_t[1]){{{{{{{name}}}}}}}"
        case _:
            return f"{{{name}}}"
