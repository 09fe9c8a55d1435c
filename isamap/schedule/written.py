"""A schedule as it is written: words with their places, not yet looked up in any kernel.

Whatever a text leaves out is None here; see :mod:`isamap.schedule.reader` for the grammar.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from isamap.diagnostics import Source, Span

CLAUSES = (
    "instruction",
    "axes",
    "tile",
    "loops",
    "operands",
    "stream",
    "past",
    "prefetch",
    "buffers",
    "results",
    "within",
    "along",
)
"""What a statement's block may say, in the order in which it is printed."""


@dataclass(frozen=True, slots=True)
class Word:
    """A name, a number or an expression without its spaces, and where it stands."""

    text: str
    span: Span

    @property
    def number(self) -> int:
        """The number that it is."""
        return int(self.text)


@dataclass(frozen=True, slots=True)
class WrittenLevel:
    """``m/96 parallel``, ``m/32 overlap``."""

    variable: Word
    step: Word
    parallel: bool
    overlap: Word | None = None


@dataclass(frozen=True, slots=True)
class WrittenOperand:
    """``A packed inside 2``, ``X[h, w] as a direct``: how accesses of the body are treated.

    ``what`` is a buffer, which means all its accesses, or one of them; ``operand`` that of the
    instruction for which it is read; ``inside`` the number of loops inside which it is packed;
    ``pitch`` how many elements apart rows of a padded copy begin.
    """

    what: Word
    operand: Word | None
    treatment: Word
    inside: Word | None = None
    pitch: Word | None = None


@dataclass(frozen=True, slots=True)
class WrittenEarly:
    """``B 2 of k``, ``C``: what is prefetched, and how many iterations of which loop ahead.

    ``B next of n`` is ``shared`` by the passes over what is read now.
    """

    what: Word
    operand: Word | None = None
    count: Word | None = None
    variable: Word | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class WrittenBuffers:
    """``A 2``: in how many places in a scratchpad fragments lie in turn."""

    what: Word
    operand: Word | None
    count: Word


@dataclass(frozen=True, slots=True)
class WrittenLoads:
    """``B``, ``X[h, w] as a``: accesses whose loads go past the first cache."""

    what: Word
    operand: Word | None


@dataclass(frozen=True, slots=True)
class WrittenInstruction:
    """``vfmadd_f32(a = A[m, k], b = B[k, n]) way 2``: what computes a statement.

    ``bound`` says which parts of the body the operands stand for; ``way`` tells apart, from 1, what
    is alike in all that is written.
    """

    name: Word
    bound: tuple[tuple[Word, Word], ...] | None = None
    way: Word | None = None


@dataclass(frozen=True, slots=True)
class WrittenStatement:
    """What a text says about one statement; ``spans`` has the place of each of its clauses.

    ``by`` stands in the clause of ``within``.
    """

    name: Word
    instruction: WrittenInstruction | None = None
    axes: tuple[tuple[Word, tuple[Word, ...]], ...] | None = None
    tile: tuple[tuple[Word, Word], ...] | None = None
    loops: tuple[WrittenLevel, ...] | None = None
    operands: tuple[WrittenOperand, ...] | None = None
    stream: Word | None = None
    past: tuple[WrittenLoads, ...] | None = None
    prefetch: tuple[WrittenEarly, ...] | None = None
    buffers: tuple[WrittenBuffers, ...] | None = None
    results: tuple[Word, ...] | None = None
    within: Word | None = None
    by: Word | None = None
    along: Word | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False)

    @property
    def settled(self) -> bool:
        """Whether it says in which loops the statement is computed."""
        return any(part is not None for part in (self.loops, self.within, self.along))

    def span(self, *clauses: str) -> Span:
        """Return the place of the first of some clauses that there is, or of the name."""
        found = (self.spans[name] for name in clauses if name in self.spans)
        return next(found, self.name.span)


@dataclass(frozen=True, slots=True)
class WrittenRewriting:
    """``rewrite winograd of Y way 2``: the rule, the statement, and which of the ways (from 1)."""

    rule: Word
    statement: Word
    way: Word | None = None


@dataclass(frozen=True, slots=True)
class WrittenSchedule:
    """A text: the kernel and the machine that it is for, what becomes of the kernel's statements
    first, how the calls of all of them are ordered, and a block for each statement about which it
    says something.
    """

    source: Source
    kernel: Word
    machine: Word | None
    rewritings: tuple[WrittenRewriting, ...] = ()
    together: tuple[tuple[Word, ...], ...] = ()
    statements: tuple[WrittenStatement, ...] = ()
    calls: tuple[Word, ...] = ()
