"""The whole IR on one page: what a kernel, an instruction and a program are made of.

Nodes are frozen data.  Every node that comes from text has a ``span``, which equality ignores.
The order below is that of the grammar.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

from isamap.diagnostics import Span
from isamap.ir.dtype import DType
from isamap.ir.hashed import Asked, Hashed
from isamap.ir.index import Index

Role: TypeAlias = OneOf["in", "const", "table", "out", "inout", "local"]
"""What a buffer is for; a ``table`` is written ``const ... = ...``: nobody gives or changes it."""

Reduction: TypeAlias = OneOf["=", "+=", "*=", "max=", "min=", "or=", "and=", "xor="]


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a type; ``text`` is its exact decimal, ``inf``, ``-inf``, ``nan`` or
    ``true``."""

    text: str
    dtype: DType
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Contents:
    """The elements of a table, in row-major order, and its shape in numbers."""

    shape: tuple[int, ...]
    elements: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Access(Hashed):
    """An element of a buffer; ``indices`` has one expression per dimension.

    ``contents`` are those of a table.
    """

    buffer: str
    indices: tuple[Index, ...]
    dtype: DType
    span: Span | None = _span()
    contents: Contents | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The variables and symbols that its indices use."""
        return frozenset().union(*(index.names for index in self.indices))

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._keep(hash((self.buffer, self.indices, self.dtype)))


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The value of an index expression, used as data (``select(i < n, ...)``)."""

    index: Index
    dtype: DType
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Op(Asked):
    """An operation of :data:`isamap.ir.operations.OPERATIONS` on typed arguments."""

    op: str
    args: tuple["Expr", ...]
    dtype: DType
    span: Span | None = _span()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._keep(hash((self.op, self.args, self.dtype)))


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction within an expression: of ``body``, over all values of ``variables``.

    It begins with the reduction's identity.  No text is read as one: it stands for a statement
    whose result only the expression uses, and whose variables are those of the statement around it
    (:mod:`isamap.ir.inline`).
    """

    reduction: Reduction
    variables: tuple[str, ...]
    body: "Expr"
    dtype: DType
    span: Span | None = _span()


Expr: TypeAlias = Literal | Access | Coordinate | Op | Reduce


@dataclass(frozen=True, slots=True)
class Variable:
    """An iteration variable: ``lower <= name < lower + extent``."""

    name: str
    lower: Index
    extent: Index


@dataclass(frozen=True, slots=True)
class Statement:
    """A perfect loop nest: ``target reduction value`` for every point of the variables' box.

    ``variables`` are in order of first appearance, the target's first; reduction steps are taken in
    lexicographic order of the variables that the target does not use.
    """

    target: Access
    reduction: Reduction
    value: Expr
    variables: tuple[Variable, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A typed array.

    ``storage`` is where an instruction's operand lives (None in kernels: memory).  ``pad`` is the
    value read outside the shape; without one, reading outside is an error.  ``values`` are the
    least and largest element (both included).  ``strides`` are pitches in elements of an
    instruction's memory operand (None: dense row-major); a name that is no extent stands for any
    pitch.  ``order`` is the order of the bytes of an element in memory (reserved: only little).
    ``contents`` are those of a table.
    """

    name: str
    role: Role
    dtype: DType
    shape: tuple[Index, ...]
    storage: str | None = None
    pad: Literal | None = None
    values: tuple[Literal, Literal] | None = None
    strides: tuple[Index, ...] | None = None
    span: Span | None = _span()
    order: OneOf["little", "big"] = "little"
    contents: Contents | None = None


@dataclass(frozen=True, slots=True)
class Extent:
    """A named size.

    ``value`` is its number; None for a symbol that is known when the code runs.  An instruction's
    extent may have a range instead (``n in 1..17`` is 1 to 16): each use chooses a value of it.
    Or it is *open* (``V >= 4``, ``V >= 4 pow2``): the machine has one value for it, ``least`` or
    more and with ``power`` a power of two, which the description does not say.
    """

    name: str
    value: int | None = None
    range: tuple[int, int] | None = None
    span: Span | None = _span()
    least: int | None = None
    power: bool = False


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a mapping may do to the arithmetic of a kernel."""

    reassociate: bool = True
    finite: bool = True
    distribute: bool = False
    approximate: Fraction | None = None
    spans: tuple[tuple[str, Span], ...] = field(default=(), compare=False, repr=False)
    """Where the text says so, by name: ``reassociate`` for ``no reassociate``."""


@dataclass(frozen=True, slots=True)
class Range:
    """An explicit range of a variable, ``for name in lower..upper``; it replaces inference."""

    name: str
    lower: Index
    upper: Index
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Kernel:
    """Statements over buffers, in order."""

    name: str
    extents: tuple[Extent, ...]
    permissions: Permissions
    buffers: tuple[Buffer, ...]
    ranges: tuple[Range, ...]
    statements: tuple[Statement, ...]
    span: Span | None = _span()

    def buffer(self, name: str) -> Buffer:
        """Return the buffer called ``name``."""
        return next(b for b in self.buffers if b.name == name)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Extents without a value: known when the code runs."""
        return tuple(e.name for e in self.extents if e.value is None)


@dataclass(frozen=True, slots=True)
class State:
    """Machine state that an instruction reads or writes (reserved: tile configuration, masks)."""

    name: str
    role: Role
    dtype: DType
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine operation: statements over operands, each placed in a storage.

    ``name`` is unique in its description; ``generic`` is the name before its type parameters were
    bound, and ``types`` what they were bound to (``{'T': f32}``).
    """

    name: str
    extents: tuple[Extent, ...]
    operands: tuple[Buffer, ...]
    states: tuple[State, ...]
    ranges: tuple[Range, ...]
    statements: tuple[Statement, ...]
    types: tuple[tuple[str, DType], ...] = ()
    generic: str = ""
    span: Span | None = _span()

    def operand(self, name: str) -> Buffer:
        """Return the operand called ``name``."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(name)

    @property
    def places(self) -> tuple[Buffer, ...]:
        """The operands that a use of the instruction gives a place: no locals and no tables."""
        return tuple(o for o in self.operands if o.role not in ("local", "table"))


@dataclass(frozen=True, slots=True)
class Invocation:
    """A kernel called from a program: ``name(buffer, ...)``."""

    kernel: str
    arguments: tuple[str, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class TimeLoop:
    """Calls repeated in order: ``for name in lower..upper { ... }``."""

    name: str
    lower: Index
    upper: Index
    body: tuple["Invocation | TimeLoop", ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Program:
    """Kernels composed by name over buffers of their own."""

    name: str
    extents: tuple[Extent, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Invocation | TimeLoop, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Module:
    """What one file holds, its includes resolved; ``version`` is the format's."""

    version: int
    kernels: tuple[Kernel, ...]
    instructions: tuple[Instruction, ...]
    programs: tuple[Program, ...]
