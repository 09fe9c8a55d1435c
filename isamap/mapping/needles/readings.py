"""The ways to read one instruction as one statement."""

from dataclasses import dataclass, replace

from isamap.hw.accelerator import Entry
from isamap.ir.index import Index, const, var
from isamap.ir.inline import ApartError, inline
from isamap.ir.nodes import (
    Access,
    Coordinate,
    Expr,
    Instruction,
    Literal,
    Op,
    Reduce,
    Reduction,
    Statement,
)
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses, reduces, substitute_expr
from isamap.mapping.axes.seen import seen_by
from isamap.mapping.matching import Axis, Needle
from isamap.mapping.needles.demands import is_restricted
from isamap.mapping.needles.neutral import Fixed, neutral_forms
from isamap.mapping.needles.twins import merge_twins

MOVES = "it only moves data"
"""The reason why a movement is no needle."""

POSITION = "it uses the position of an element as data, and no kernel is matched to that"
"""The reason why an instruction that computes with positions is no needle."""

CASTS = ("cast", "sat")
MEMORY_KINDS = ("memory", "cache")

REDUCTIONS: dict[str, Reduction] = {
    "+": "+=",
    "*": "*=",
    "max": "max=",
    "min": "min=",
    "|": "or=",
    "&": "and=",
    "^": "xor=",
}
"""The reduction that repeats an operation."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The needles of one entry, or the reason why it has none."""

    needles: tuple[Needle, ...]
    reason: str = ""

    @property
    def moves(self) -> bool:
        """Whether the entry is none because it only moves data."""
        return self.reason == MOVES


def written_like(statement: Statement, entry: Entry, readings: Readings) -> tuple[Needle, ...]:
    """Return the needles that are reductions, or none, as a statement is and the instruction is
    written; all of an instruction that is written otherwise.
    """
    reduction = statement.reduction
    alike = tuple(needle for needle in readings.needles if needle.reduction == reduction)
    written = entry.instruction.statements[-1].reduction == reduction
    return alike if written and alike else readings.needles


def read_entry(entry: Entry, kinds: dict[str, str]) -> Readings:
    """Read an entry; ``kinds`` says of what kind each storage is.

    ``c += a*b`` is a reduction and also the assignment ``c = c0 + a*b``; ``r = max(a, b)`` is also
    the reduction ``r max= b`` whose ``a`` is the register of the result.  A movement computes
    nothing and is no needle, except a store: it ends a statement that only copies.
    """
    instruction = entry.instruction
    if instruction.states:
        return Readings((), "it uses machine state")
    statement = instruction.statements[0]
    if not is_plain(instruction):
        try:
            statement = one_statement(instruction)
        except ApartError as apart:
            return Readings((), f"its statements are not one: {apart}")
    sizes = {}
    known = frozenset(e.name for e in instruction.extents if e.value is not None)
    for extent in instruction.extents:
        if extent.value is not None:
            sizes[extent.name] = const(extent.value)
        elif extent.range is not None:
            sizes[extent.name] = const(extent.range[1] - 1)
    open_ = {e.name: const(e.least) for e in instruction.extents if e.least is not None}
    axes: list[Axis] = []
    starts = {}
    for variable in statement.variables:
        extent_ = variable.extent.substitute(sizes)
        number = extent_.substitute(open_).constant
        if number is None:
            return Readings((), f"the extent of its axis {variable.name} is not known")
        if extent_.constant is not None:
            axes.append(Axis(variable.name, number))
        elif number < 2 or any(c < 0 for monomial, c in extent_.terms if monomial):
            return Readings((), f"its axis {variable.name} has no least extent of 2 or more")
        else:
            axes.append(Axis(variable.name, number, str(extent_)))
        starts[variable.name] = var(variable.name) + variable.lower.substitute(sizes)
    target = substitute_expr(statement.target, {**sizes, **starts})
    value = substitute_expr(statement.value, {**sizes, **starts})
    assert isinstance(target, Access)
    if reason := _obstacle(target, value, tuple(axes)):
        return Readings((), reason)
    value, places = _placed(value)
    constant = frozenset(v.name for v in statement.variables if not v.extent.names - known)
    if is_restricted(entry):
        constant = frozenset()  # what is demanded of an axis is not demanded of a part of one
    reader = _Reader(entry, kinds, target, value, tuple(axes), constant, places)
    if not is_plain(instruction):
        return reader.forms()
    return reader.assignment() if statement.reduction == "=" else reader.reduce(statement.reduction)


def is_plain(instruction: Instruction) -> bool:
    """Return whether an instruction's statement is read as it stands.

    Several statements are put into one, and so is a reduction that begins with its identity.
    """
    statement = instruction.statements[0]
    role = instruction.operand(statement.target.buffer).role
    return len(instruction.statements) == 1 and (statement.reduction == "=" or role == "inout")


def one_statement(instruction: Instruction) -> Statement:
    """Return what an instruction leaves in the operand that it writes; ApartError if it cannot."""
    written = dict.fromkeys(
        s.target.buffer
        for s in instruction.statements
        if instruction.operand(s.target.buffer).role != "local"
    )
    if len(written) > 1:
        raise ApartError(f"it writes {' and '.join(written)}")
    (result,) = written
    last = max(n for n, s in enumerate(instruction.statements) if s.target.buffer == result)
    buffers = {operand.name: operand for operand in instruction.operands}
    return inline(instruction.statements[: last + 1], buffers)


def _obstacle(target: Access, value: Expr, axes: tuple[Axis, ...]) -> str:
    """Return why a statement cannot be a needle, or nothing."""
    for access in (target, *accesses(value)):
        if access.buffer == target.buffer and access.indices != target.indices:
            return f"it reads its result {access.buffer} at another place than it writes"
        if seen_by(access, axes) is None:
            return f"an index of its operand {access.buffer} is not linear in its axes"
    if _has_coordinate(value):
        return POSITION
    return ""


def _placed(value: Expr) -> tuple[Expr, tuple[tuple[str, str], ...]]:
    """Return a body in which each place of an operand has a name of its own, and these names.

    No operand has a prime in its name, so that ``a'`` is free.
    """
    known: dict[str, dict[tuple[Index, ...], str]] = {}

    def named(expr: Expr) -> Expr:
        match expr:
            case Access(buffer, indices, _):
                own = known.setdefault(buffer, {})
                return replace(expr, buffer=own.setdefault(indices, buffer + "'" * len(own)))
            case Op(_, args, _):
                return replace(expr, args=tuple(named(arg) for arg in args))
            case Reduce(_, _, body, _):
                return replace(expr, body=named(body))
            case Literal() | Coordinate():
                return expr

    result = named(value)
    names = ((name, owner) for owner, own in known.items() for name in own.values())
    return result, tuple((name, owner) for name, owner in names if name != owner)


def _has_coordinate(value: Expr) -> bool:
    match value:
        case Coordinate():
            return True
        case Op(_, args, _):
            return any(_has_coordinate(arg) for arg in args)
        case Reduce(_, _, body, _):
            return _has_coordinate(body)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Reader:
    entry: Entry
    kinds: dict[str, str]
    target: Access
    value: Expr
    axes: tuple[Axis, ...]
    constant: frozenset[str]
    places: tuple[tuple[str, str], ...] = ()
    fixed: Fixed = ()

    def reduce(self, reduction: Reduction) -> Readings:
        """Read ``c += value``."""
        name = self.target.buffer
        if self._reads_target(self.value):
            return Readings((), f"it reads its operand {name} while it accumulates into it")
        if self.entry.instruction.operand(name).role != "inout":
            return Readings((), "it does not add to what is there")
        op = REDUCTION_OPERATIONS[reduction]
        whole = Op(op, (self.target, self.value), self.target.dtype)
        found = [self._needle(reduction, self.value, name)]
        # An axis that the target does not have would be reduced by the assignment, too.
        if self._covers_axes():
            found.append(self._needle("=", whole, name))
        return Readings(tuple(found))

    def forms(self) -> Readings:
        """Read ``r = value``, and what is left of it where operands are neutral."""
        found: list[Needle] = []
        reason = ""
        for value, fixed in neutral_forms(self.value):
            if any(self._is_shared(access.buffer) for access, _ in fixed):
                continue  # what is neutral at one of its places need not be at another
            readings = replace(self, value=value, fixed=fixed).assignment()
            found += readings.needles
            reason = reason or readings.reason
        return Readings(tuple(found), "" if found else reason)

    def assignment(self) -> Readings:
        """Read ``r = value``."""
        if not self._covers_axes():
            return Readings((), "it assigns an element more than once")
        tied = self.target.buffer if self._reads_target(self.value) else self.entry.overwritten
        if tied is not None and not self._overwrites(tied):
            return Readings((), f"it overwrites its operand {tied} before it is read everywhere")
        if self._is_movement():
            if self._kind(self.target.buffer) not in MEMORY_KINDS or tied:
                return Readings((), MOVES)
            return Readings((self._needle("=", self.value, None),))
        return Readings((self._needle("=", self.value, tied), *self._as_reduction(tied)))

    def _as_reduction(self, tied: str | None) -> tuple[Needle, ...]:
        """Read ``r = max(a, b)`` as ``r max= b``, ``a`` being the register of the result."""
        if not isinstance(self.value, Op) or self.value.op not in REDUCTIONS:
            return ()
        found: dict[object, Needle] = {}
        first, second = self.value.args
        for own, other in ((first, second), (second, first)):
            if not isinstance(own, Access) or own.indices != self.target.indices:
                continue
            if self._is_shared(own.buffer) or own.buffer in {a.buffer for a in accesses(other)}:
                continue
            if tied not in (None, own.buffer) or not self._can_share(own):
                continue
            reduction = REDUCTIONS[self.value.op]
            if isinstance(other, Reduce):
                if other.reduction != reduction:
                    continue
                other = other.body
            needle = self._needle(reduction, other, own.buffer)
            # Of two readings that differ only by exchanging like operands, the first is enough.
            key = (other.indices, self._place(other)) if isinstance(other, Access) else other
            found.setdefault(key, needle)
        return tuple(found.values())

    def _needle(self, reduction: Reduction, value: Expr, tied: str | None) -> Needle:
        held = tuple(access for access, _ in self.fixed)
        read = {access.buffer for access in accesses(value)}
        places = tuple(pair for pair in self.places if pair[0] in read)
        # Positions along an operand that several places share must be those of its own axes.
        apart = {
            name
            for access in accesses(value)
            if self._is_shared(access.buffer)
            for index in access.indices
            for name in index.names
        }
        axes = merge_twins(self.target, value, self.axes, self.constant - apart, held)
        return Needle(self.entry, self.target, reduction, value, axes, tied, self.fixed, places)

    def _covers_axes(self) -> bool:
        seen = seen_by(self.target, self.axes)
        assert seen is not None
        within = {name for found in reduces(self.value) for name in found.variables}
        return all(
            axis.extent == 1 or n in seen.alone or axis.name in within
            for n, axis in enumerate(self.axes)
        )

    def _overwrites(self, tied: str) -> bool:
        """Return whether each element of a shared register is read where it is written."""
        if self._is_shared(tied):
            return False
        own = [access for access in accesses(self.value) if access.buffer == tied]
        return bool(own) and all(access.indices == self.target.indices for access in own)

    def _is_movement(self) -> bool:
        match self.value:
            case Access() | Op("cast" | "sat", (Access(),), _):
                return True
        return False

    def _reads_target(self, value: Expr) -> bool:
        return any(access.buffer == self.target.buffer for access in accesses(value))

    def _is_shared(self, name: str) -> bool:
        """Return whether an operand is read at several places."""
        return any(name in pair for pair in self.places)

    def _can_share(self, own: Access) -> bool:
        return self._place(own) == self._place(self.target)

    def _place(self, access: Access) -> object:
        operand = self.entry.instruction.operand(access.buffer)
        return operand.storage, operand.dtype, operand.shape, operand.strides

    def _kind(self, operand: str) -> str:
        return self.kinds[self.entry.storage(operand)]
