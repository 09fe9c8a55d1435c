"""What an explanation says: reasons with their places, changes that were tried, correspondences."""

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from isamap.diagnostics import Span
from isamap.hw.accelerator import Entry
from isamap.ir.nodes import Kernel, Statement
from isamap.mapping.matching import Mapping
from isamap.rewrite.rule import Rewriting

Kind: TypeAlias = OneOf[
    "reduction",
    "operation",
    "order",
    "type",
    "conversion",
    "literal",
    "operand",
    "values",
    "reading",
    "permission",
    "index",
    "law 1",
    "law 2",
    "law 4",
    "law 5",
    "extent",
    "part",
    "lowering",
    "limit",
]

Effect: TypeAlias = OneOf[
    "same", "trust", "values", "overflow", "rounding", "different", "layout", "size"
]
"""What a change does to the kernel's meaning: nothing; nothing as long as values are finite, as
long as callers keep to the declared values, or as long as no integer overflows; other rounding;
another result; callers must lay out a buffer otherwise; the kernel has another size."""

POOR = 0.5
"""A utilisation from which on downwards a change is looked for."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing in the way, with its places in the kernel's file and in the description."""

    kind: Kind
    text: str
    kernel: Span | None = None
    hardware: Span | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the kernel after which the instruction was found to match (better).

    ``lines`` are the lines that it removes ('-') and adds ('+') in the printed kernel.  ``kernel``
    is the changed kernel as it was read back and matched, ``statement`` the statement of it that
    the instruction now computes, ``used`` the utilisation.  ``reasons`` are those that it removes.
    ``rest`` says why the whole path still has no code for it on this machine, where that is so.
    """

    text: str
    effect: Effect
    lines: tuple[str, ...]
    kernel: Kernel
    statement: int
    used: float
    reasons: tuple[Reason, ...] = ()
    rest: str = ""


@dataclass(frozen=True, slots=True)
class AxisUse:
    """What lies on an axis of the instruction: ``used`` of ``extent`` positions.

    ``forms`` are the digits with the positions that each takes, outermost first; ``repeats`` that
    all of their variables lie on other axes, too, which do the work; ``why`` says why
    no more is used, where a quarter of the axis or more does no work.
    """

    name: str
    extent: int
    used: int
    forms: tuple[tuple[str, int], ...]
    repeats: bool = False
    why: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class OperandUse:
    """An operand of the instruction beside what it stands for in the kernel.

    ``dims`` gives for each dimension its index, its extent, and of how many positions, counted from
    the first, the last one used is.  ``storage`` is None of a table, which is built into the
    instruction.
    """

    name: str
    text: str
    storage: str | None
    dtype: str
    bound: str
    dims: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Correspondence:
    """A mapping taken apart: operands, axes, tile, how much of the instruction works.

    ``digits`` is the share of positions used on all axes together; ``banded`` that some forms move
    together, so that not every combination of positions is an iteration.
    """

    mapping: Mapping
    count: int
    complete: bool
    operands: tuple[OperandUse, ...]
    axes: tuple[AxisUse, ...]
    tails: tuple[Reason, ...]
    banded: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one instruction has to do with one statement.

    ``verdict``: it computes the statement (``matches``); it does, but no code can be made for it
    with this machine's other instructions (``unreachable``); it computes the statement after
    ``rewriting``, which is proved (``rewritten``); it computes a part of the statement,
    which other instructions use (``part``); it does not (``differs``); it only moves data
    (``moves``).  ``distance`` counts what is in the way.  ``alike`` are other instantiations of the
    same instruction with reasons of the same kind.  ``together`` names the kernel's statements that
    it computes, or differs from, as one.  ``entry`` may be a composition.
    """

    entry: Entry
    verdict: OneOf["matches", "unreachable", "rewritten", "part", "differs", "moves"]
    distance: int
    reasons: tuple[Reason, ...]
    correspondence: Correspondence | None = None
    changes: tuple[Change, ...] = ()
    alike: tuple[str, ...] = ()
    rewriting: tuple[Rewriting, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def is_poor(self) -> bool:
        """Whether it computes the statement, but does so little at once that changes were tried."""
        found = self.correspondence
        matches = self.verdict == "matches" and not self.together
        return matches and found is not None and found.mapping.utilisation <= POOR


@dataclass(frozen=True, slots=True)
class StatementExplanation:
    """All instructions that were looked at for one statement, the nearest first.

    ``left_out`` counts the instructions that compute or differ and are not shown.
    """

    name: str
    statement: Statement
    instructions: tuple[Explanation, ...]
    left_out: int = 0

    @property
    def maps(self) -> bool:
        """Whether some instruction that was looked at computes the statement."""
        return any(e.verdict in ("matches", "rewritten") for e in self.instructions)
