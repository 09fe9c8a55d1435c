"""The syntax of a file: what its text says before names, types and sizes are looked at.

Nodes have offsets into the text of their source.  Expressions also know how deep they are and
whether they are made of literals only, which take their type from what is around them.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Word:
    """A name or a keyword where it stands."""

    text: str
    start: int
    end: int


# --- expressions ----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Broken:
    """An expression with an error that is already reported."""

    start: int
    end: int
    depth: int = 0
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A number, ``inf``, ``nan``, ``true`` or ``false``; ``text`` may begin with a minus sign.

    ``enclosed`` in parentheses, a number takes no further sign.
    """

    text: str
    start: int
    end: int
    enclosed: bool = False
    depth: int = 0
    loose: bool = True


@dataclass(frozen=True, slots=True)
class Named:
    """A bare name: a variable or an extent."""

    name: str
    start: int
    end: int
    depth: int = 0
    loose: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """``buffer[indices]``."""

    buffer: Word
    indices: tuple["Expression", ...]
    start: int
    end: int
    depth: int
    loose: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """An operation on arguments, written as an operator or a function."""

    op: str
    args: tuple["Expression", ...]
    start: int
    end: int
    depth: int
    loose: bool


@dataclass(frozen=True, slots=True, eq=False)
class Convert:
    """A cast or, if ``saturate``, ``sat[type](arg)``.

    ``others`` counts further arguments, where there must be none.
    """

    dtype: Word
    arg: "Expression"
    saturate: bool
    start: int
    end: int
    depth: int
    others: int = 0
    loose: bool = False


Expression: TypeAlias = Broken | Number | Named | Element | Apply | Convert


# --- items ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ExtentItem:
    """``name``, ``name = value``, ``name in lower..upper`` or ``name >= least kind``."""

    name: Word
    value: Expression | None = None
    lower: Expression | None = None
    upper: Expression | None = None
    least: Expression | None = None
    kind: Word | None = None


@dataclass(frozen=True, slots=True)
class PermitItem:
    """A permission given or, if ``denied``, taken; ``bound`` is that of ``approximate``."""

    name: Word
    denied: bool
    bound: Number | Broken | None


@dataclass(frozen=True, slots=True)
class AttributeItem:
    """``pad x``, ``values a .. b``, ``strides [...]`` or ``order name``."""

    kind: str
    args: tuple[Expression, ...]
    word: Word | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a table holds: a number, or rows of as many elements as the dimension has."""

    rows: tuple["Contents | Number | Broken", ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BufferItem:
    """A declaration of a buffer."""

    role: Word
    name: Word
    dtype: Word
    shape: tuple[Expression, ...]
    storage: Word | None
    attributes: tuple[AttributeItem, ...]
    start: int
    end: int
    contents: Contents | Number | Broken | None = None


@dataclass(frozen=True, slots=True)
class RangeItem:
    """``for name in lower..upper``."""

    name: Word
    lower: Expression
    upper: Expression
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StateItem:
    """``state role name : type``."""

    role: Word
    name: Word
    dtype: Word
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StatementItem:
    """``target reduction value``."""

    target: Element | Broken
    reduction: Word
    value: Expression
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CallItem:
    """``kernel(buffers)`` in a program."""

    kernel: Word
    arguments: tuple[Word, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LoopItem:
    """``for name in lower..upper { ... }`` in a program."""

    name: Word
    lower: Expression
    upper: Expression
    body: tuple["BufferItem | CallItem | LoopItem", ...]
    start: int
    end: int
    depth: int


BlockItem: TypeAlias = BufferItem | RangeItem | StateItem | StatementItem | CallItem | LoopItem


@dataclass(frozen=True, slots=True)
class TypeParameter:
    """``name = types``: the types that it is bound to, one after the other."""

    name: Word
    dtypes: tuple[Word, ...]


Damage: TypeAlias = Literal["", "statements", "declarations"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel, an instruction or a program.

    ``damaged`` says what errors of syntax lie within: none, in statements only, or in declarations.
    """

    kind: str
    name: Word
    parameters: tuple[TypeParameter, ...]
    extents: tuple[ExtentItem, ...]
    permits: tuple[PermitItem, ...]
    items: tuple[BlockItem, ...]
    start: int
    end: int
    damaged: Damage = ""


@dataclass(frozen=True, slots=True)
class Include:
    """``include "path"``."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class File:
    """What a text holds, in order; ``version`` None if it is not said."""

    version: Word | None = None
    includes: tuple[Include, ...] = ()
    definitions: tuple[Definition, ...] = ()
    damaged: bool = field(default=False)
