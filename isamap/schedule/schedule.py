"""A schedule: everything that fixes the order, place and movement around the mappings."""

from dataclasses import dataclass, replace
from typing import Literal

from isamap.mapping.matching import Mapping

Treatment = Literal["direct", "padded", "bordered", "packed", "repeated"]
"""How an access reaches its instruction: ``bordered`` is direct, but for fragments that the border
of the buffer cuts, which are copied aside one by one; ``packed`` fragments hold each element once,
``repeated`` ones as often as the instruction takes it."""


@dataclass(frozen=True, slots=True)
class Level:
    """One loop: ``variable`` advances by ``step`` iterations; outer levels have larger steps.

    A variable's smallest step is the extent of its register block; within it the tiles are
    unrolled.  Where its iterations do not fill whole tiles, the last ones of an ``overlap`` begin
    so much earlier that they do, and compute some results again.
    """

    variable: str
    step: int
    parallel: bool = False
    overlap: bool = False


@dataclass(frozen=True, slots=True)
class Early:
    """What is brought near before it is needed.

    ``access`` is the position of an input among the body's accesses, of which each block asks for
    what the block ``count`` iterations of the innermost loop over ``variable`` later will read.
    None is the place of the results, for which is asked before they are computed: by the block
    whose they are, or, with a variable, by one so many iterations before.

    A ``shared`` one asks for all that the next iteration of that loop reads: the loops inside it
    which do not move the input pass over it several times, and each pass asks for a part.
    """

    access: int | None
    count: int = 0
    variable: str | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class StatementSchedule:
    """How one statement runs.

    ``levels`` are outermost first; steps of one variable decrease and divide.  ``operands`` says
    how each input access of the body (by its position among the body's accesses) reaches the
    instructions: straight from its buffer, from a copy that holds the padding values too, or from
    packed fragments, see :data:`Treatment`.  ``stream`` is the access whose fragments order the
    calls of a block; without it, it is the one that has most.  ``early`` are the lines that are
    prefetched.  With ``bypass`` results go to memory past the caches, where an instruction does
    that: their lines are not read before, and take no room; None leaves it to the rule.  ``past``
    are the accesses whose loads leave nothing in the first cache.

    ``pitches`` are, for each of these accesses, the elements from one row of its padded copy to the
    next, 0 where rows follow each other.

    ``buffers`` are, for each of these accesses and after them for the results, in how many places
    of a scratchpad fragments lie in turn, 1 where it leaves one out.

    ``inside`` says for each of these accesses inside how many of the levels, counted from the
    outermost, its packed fragments are made: those of the iterations that are left there.  Accesses
    that it leaves out, all if it is empty, are packed before all loops.

    With ``later`` a block takes its results out of the accumulators only; what other statements
    make of them is done while the next block of the innermost loop over results is computed.

    ``within`` is the number of an earlier statement whose results this one takes from its registers
    as soon as they are complete; it has no loops of its own then.  ``by`` is the instruction, or
    the sequence ``a + b``, that is to compute it there; None leaves it to what does so best.

    ``along`` is the number of an earlier statement whose outermost loop is this one's, too: all its
    loops are inside, and each round does as many iterations of both variables.
    """

    mapping: Mapping
    levels: tuple[Level, ...]
    operands: tuple[Treatment, ...]
    stream: int | None = None
    within: int | None = None
    along: int | None = None
    inside: tuple[int, ...] = ()
    early: tuple[Early, ...] = ()
    bypass: bool | None = None
    pitches: tuple[int, ...] = ()
    buffers: tuple[int, ...] = ()
    later: bool = False
    by: str | None = None
    past: tuple[int, ...] = ()

    def places(self, access: int | None) -> int:
        """Return in how many places fragments of an access, or of the results, lie in turn."""
        at = len(self.operands) if access is None else access
        return self.buffers[at] if at < len(self.buffers) else 1

    def pitch(self, access: int) -> int:
        """Return how many elements apart rows of a padded copy begin; 0 if they are not."""
        return self.pitches[access] if access < len(self.pitches) else 0

    def copied_inside(self, access: int) -> int:
        """Return the number of levels inside which an access is packed; 0 if that comes first."""
        return self.inside[access] if access < len(self.inside) else 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule per statement, in the kernel's order, and how the calls of all are ordered.

    With ``abreast`` the calls of a block that do not depend on each other are put where the queues
    that they are for would wait; without it, False, they follow each other as they are computed.
    What does not change in a loop is brought ``once``, in its first iteration, or again in each,
    False.  None leaves it to the rule: the former wherever storages have room for it.  What is
    demanded does without that: the schedule does not fit then.
    """

    statements: tuple[StatementSchedule, ...]
    abreast: bool | None = None
    once: bool | None = None

    def with_statement(self, number: int, own: StatementSchedule) -> "Schedule":
        """Return a schedule that differs in that of one statement."""
        others = self.statements
        return replace(self, statements=(*others[:number], own, *others[number + 1 :]))

    def with_results_later(self, number: int) -> "Schedule":
        """Return a schedule that finishes a statement's results later."""
        return self.with_statement(number, replace(self.statements[number], later=True))

    @property
    def fused(self) -> dict[int, int]:
        """The statements that take their input from registers, and from whose."""
        return {n: own.within for n, own in enumerate(self.statements) if own.within is not None}

    @property
    def rounds(self) -> dict[int, tuple[int, ...]]:
        """The statements with whose outermost loop others go along, and these."""
        firsts = dict.fromkeys(own.along for own in self.statements if own.along is not None)
        return {first: self.companions(first) for first in firsts}

    def companions(self, first: int) -> tuple[int, ...]:
        """Return the numbers of the statements whose outermost loop is that of ``first``."""
        return tuple(n for n, own in enumerate(self.statements) if own.along == first)

    def followers(self, root: int) -> tuple[int, ...]:
        """Return the numbers of the statements that take their input from ``root``'s registers."""
        return tuple(n for n, own in enumerate(self.statements) if own.within == root)
