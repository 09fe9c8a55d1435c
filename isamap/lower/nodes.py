"""The lowered kernel: loops, guards, scopes, instruction calls and element copies.

A movement is a call of an instruction that copies; a constant in a register is a call of an
instruction that copies an immediate.  Arrays are flat: every offset counts elements, and a
data-dependent index (:class:`isamap.ir.index.Read`) has one index, the flat offset.  Nothing here
knows C.
"""

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from isamap.ir.dtype import DType
from isamap.ir.index import Index
from isamap.ir.nodes import Contents, Literal, Role

ArrayRole: TypeAlias = Role | OneOf["prepared"]
"""What an array is for; ``prepared`` ones are written once and read by all calls."""


@dataclass(frozen=True, slots=True)
class Register:
    """A fragment in a storage of the machine: one C variable, or one tile of a scratchpad.

    In a storage of numbered registers it has the ``number`` of one that holds it as long as it is
    needed, the first of several where it takes several; in a scratchpad that of the row of
    ``alignment`` bytes at which it begins.  There it may have several ``places``, one after the
    other, and takes the next one, in turn, each time that its scope begins.
    """

    name: str
    storage: str
    dtype: DType
    shape: tuple[int, ...]
    number: int | None = None
    places: int = 1


@dataclass(frozen=True, slots=True)
class Window:
    """An operand in memory: it begins at element ``offset`` of a buffer; the instruction's operand
    declaration (with ``symbols`` bound) says which elements follow."""

    buffer: str
    offset: Index


Operand: TypeAlias = Register | Window | Literal | Index
"""A place; an Index is an immediate operand that holds the value of an index expression (s64)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One instruction.

    ``operands`` gives every operand its place.  An ``inout`` operand's register is read and
    written; a needle that ties an input to the output has the same register in both.  ``symbols``
    are the instruction's extents and free pitches.  With ``bypass`` it is a load past
    the first cache, or a store past the caches:
    what it writes is the same.
    """

    instruction: str
    operands: tuple[tuple[str, Operand], ...]
    symbols: tuple[tuple[str, Index], ...] = ()
    bypass: bool = False

    def operand(self, name: str) -> Operand:
        """Return the place of an operand."""
        return dict(self.operands)[name]


@dataclass(frozen=True, slots=True)
class Loop:
    """``for counter in 0..count``, step 1; ``parallel`` iterations are independent."""

    counter: str
    count: Index
    body: tuple["Node", ...]
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """``if every condition >= 0 then body else otherwise``."""

    conditions: tuple[Index, ...]
    body: tuple["Node", ...]
    otherwise: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Registers that live here only."""

    registers: tuple[Register, ...]
    body: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Element-wise copy over a box, ``for each point: target[target_offset] =
    source[source_offset]``.

    ``counters`` are ``(name, count)``, outermost first.  A point at which some condition is
    negative copies ``fill`` if there is one and is skipped otherwise.  ``source`` None writes
    ``fill`` everywhere.  No point reads what another writes.  One ``aside`` is small, seldom done,
    and done amid computations in registers.
    """

    counters: tuple[tuple[str, Index], ...]
    target: str
    target_offset: Index
    source: str | None
    source_offset: Index
    conditions: tuple[Index, ...] = ()
    fill: Literal | None = None
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The line of memory at element ``offset`` of a buffer is wanted in a cache soon.

    It reads and writes nothing, and so the place may lie outside the buffer; its offset is not held
    in an array.
    """

    storage: str
    buffer: str
    offset: Index


@dataclass(frozen=True, slots=True)
class Token:
    """A unit posts to a channel, or ``waits`` for what was posted there.

    What a unit posts counts as posted when all that it was given before is done.  One that waits
    starts nothing more until all was posted that has been given to it so far, but for the last
    ``behind`` posts.
    """

    unit: str
    channel: str
    waits: bool = False
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """A state of the machine gets a value, which holds until it gets another one.

    Of a state that holds several values it is that number ``slot``.
    """

    state: str
    value: Index | Literal
    slot: int = 0


Node: TypeAlias = Call | Loop | Guard | Scope | Copy | Prefetch | Token | Setting


@dataclass(frozen=True, slots=True)
class Array:
    """A flat array in memory of a lowered kernel, ``size`` elements.

    ``role`` is the kernel buffer's, or ``local`` for what lies in the workspace (locals, packed
    operands, staged fragments), or ``prepared`` for what the code makes of constants and keeps.
    ``private`` arrays exist once per thread.  ``contents`` are those of a table, which is a part of
    the code.
    """

    name: str
    role: ArrayRole
    dtype: DType
    size: Index
    private: bool = False
    contents: Contents | None = None


@dataclass(frozen=True, slots=True)
class InRegisters:
    """A statement of the kernel that is computed where results of an earlier one are in registers.

    ``statement`` and ``within`` are names (:func:`~isamap.ir.statements.statement_names`).  ``by``
    are the instructions that do so, in the order in which they run: those that compute a part of it
    there, or take it to memory where nothing is left to compute.  None of them computes what nobody
    needs, or what is a result as it stands.
    """

    statement: str
    within: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """Everything that a code generator or an interpreter needs.

    ``symbols`` are the extents that are known at run time only; a run-time check of the form
    ``condition >= 0`` precedes the body for each of ``requires``.  ``prepare`` is executed once for
    given constants and given symbols, ``body`` in each call after it.  Of what ``prepare`` writes
    the ``prepared`` arrays last; its locals, like those of a call, end with it.  Of ``lent`` pairs
    the first one is a local buffer of the kernel that lies where the second one, an output, does
    until that is written.

    ``abreast`` and ``once`` say how its calls are ordered, in the words of a
    :class:`~isamap.schedule.schedule.Schedule`; None where that makes no difference.
    ``in_registers`` are the statements without loops of their own, and what computes them.
    """

    name: str
    symbols: tuple[str, ...]
    arrays: tuple[Array, ...]
    body: tuple[Node, ...]
    requires: tuple[Index, ...] = ()
    prepare: tuple[Node, ...] = ()
    lent: tuple[tuple[str, str], ...] = ()
    abreast: bool | None = field(default=None, compare=False)
    once: bool | None = field(default=None, compare=False)
    in_registers: tuple[InRegisters, ...] = field(default=(), compare=False)

    @property
    def code(self) -> tuple[Node, ...]:
        """All nodes, in the order in which they are first executed."""
        return (*self.prepare, *self.body)

    @property
    def prepared(self) -> tuple[Array, ...]:
        """The arrays that ``prepare`` leaves to the body."""
        return tuple(a for a in self.arrays if a.role == "prepared")

    def array(self, name: str) -> Array:
        """Return the array called ``name``."""
        return next(a for a in self.arrays if a.name == name)
