"""Element copies as C functions of their own: packing, padding, filling.

The innermost loop is the one that compilers must do well.  Conditions that are linear in its
counter become the ends of an interval, the others are tested as far out as they are known, so that
what remains is a plain loop or a call of ``memcpy``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from isamap.emit import literals, names
from isamap.emit.expressions import Env, conjunction, loop_head, text
from isamap.emit.header import wrapped
from isamap.emit.turns import turning
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const, var
from isamap.lower.nodes import Array, Copy
from isamap.lower.peeled import outermost, worst
from isamap.lower.turns import Turn, turn_of

# Without predictive commoning, which writes back what another thread may have changed, and without
# the vectoriser of straight-line code: descriptions have these as flags (docs/running.md).
ATTRIBUTE = """\
#if defined(__GNUC__) && !defined(__clang__)
#define ISAMAP_COPY static __attribute__((noinline, \\
    optimize("O3", "no-predictive-commoning", "no-tree-slp-vectorize")))
#else
#define ISAMAP_COPY static
#endif
"""

# A call would make the compiler save registers that are in use around it, wherever the call is.
ASIDE_ATTRIBUTE = """\
#if defined(__GNUC__)
#define ISAMAP_ASIDE static inline __attribute__((always_inline))
#else
#define ISAMAP_ASIDE static inline
#endif
"""

Loops: TypeAlias = tuple[tuple[str, Index], ...]

_ZEROS = ("0", "0.0", "false")
"""Literals of which all bits are 0."""

_INLINE = 128
"""Bytes that compilers set to 0 without a call, at most."""

_PARTS = 8
"""Parts at most that loops are written in, so as not to look at conditions where they hold."""

_SHORT = 16
"""Rows of fewer elements are copied by a loop: a call of memcpy costs more."""


def is_aside(functions: str) -> bool:
    """Return whether there are copies aside among the functions."""
    return "ISAMAP_ASIDE" in functions


@dataclass(frozen=True, slots=True)
class CopyFunction:
    """The text of a copy's function and of the statement that calls it."""

    definition: str
    call: str


def copy_function(copy: Copy, name: str, arrays: dict[str, Array], env: Env) -> CopyFunction:
    """Return the function called ``name`` that does ``copy``; ``env`` is that of the caller."""
    free = _free_names(copy, env)
    buffers = _buffers(copy)
    parameters = [_pointer(arrays[b], written=b == copy.target) for b in buffers]
    parameters += [f"{env.kind(n)} {env.integers[n]}" for n in free]
    arguments = [names.buffer(b) for b in buffers] + [env.integers[n] for n in free]
    body = _Body(copy, arrays[copy.target].dtype).lines(env)
    definition = [
        wrapped(f"{'ISAMAP_ASIDE' if copy.aside else 'ISAMAP_COPY'} void {name}", parameters),
        "{",
        *(f"    {line}" if line else "" for line in body),
        "}",
    ]
    return CopyFunction("\n".join(definition) + "\n", f"{name}({', '.join(arguments)});")


def _pointer(array: Array, written: bool) -> str:
    const = "" if written else "const "
    return f"{const}{literals.memory_type(array.dtype)} *restrict {names.buffer(array.name)}"


def _expressions(copy: Copy) -> tuple[Index, ...]:
    counts = tuple(count for _, count in copy.counters)
    source = (copy.source_offset,) if copy.source is not None else ()
    return (*counts, copy.target_offset, *source, *copy.conditions)


def _free_names(copy: Copy, env: Env) -> tuple[str, ...]:
    bound: set[str] = set()
    used: set[str] = set()
    for name, count in copy.counters:
        used |= count.names - bound
        bound.add(name)
    for index in _expressions(copy)[len(copy.counters) :]:
        used |= index.names - bound
    return tuple(n for n in env.integers if n in used)


def _buffers(copy: Copy) -> tuple[str, ...]:
    found = [copy.target] + ([copy.source] if copy.source is not None else [])
    for index in _expressions(copy):
        found += [read.buffer for read in index.reads]
    return tuple(dict.fromkeys(found))


class _Body:
    """Writes the loops of one copy, line by line."""

    def __init__(self, copy: Copy, dtype: DType) -> None:
        self.copy = copy
        self.fill = literals.memory_text(copy.fill) if copy.fill is not None else None
        self.bytes = dtype.bytes
        self.size = f"sizeof({literals.memory_type(dtype)})"
        self.turn = turn_of(copy, dtype.bytes)
        self.parts = 1  # innermost loops
        self.out: list[str] = []
        self.depth = 0

    def lines(self, env: Env) -> list[str]:
        """Return the function's body."""
        if self.copy.source is None:
            self._filled(self.copy.counters, env)
        elif self.turn is not None:
            self._copied((*self.turn.outer, *self.turn.inner), self.turn.conditions, env)
        else:
            self._copied(_repeats_first(self.copy), self.copy.conditions, env)
        return self.out

    def _put(self, line: str) -> None:
        self.out.append("    " * self.depth + line)

    def _open(self, line: str) -> None:
        self._put(f"{line} {{")
        self.depth += 1

    def _close(self, line: str = "}") -> None:
        self.depth -= 1
        self._put(line)
        self.depth += line.endswith("{")

    def _filled(self, loops: Loops, env: Env) -> None:
        """Write the loops that fill what is left of the box, if there is something to fill."""
        if self.fill is None:
            return
        match loops:
            case ():
                self._put(f"{self._target(env)} = {self.fill};")
            case ((name, count), *rest):
                inner = env.with_counter(name, count)
                self._open(loop_head(name, "0", text(count, env), inner))
                self._filled(tuple(rest), inner)
                self._close()

    def _copied(self, loops: Loops, pending: tuple[Index, ...], env: Env) -> None:
        """Write the loops that copy where no condition of ``pending`` is negative."""
        later = {name for name, _ in loops}
        ready = tuple(c for c in pending if not c.names & later)
        if not ready:
            self._level(loops, pending, env)
            return
        self._open(f"if ({conjunction(ready, env)})")
        self._level(loops, tuple(c for c in pending if c not in ready), env)
        if self.fill is not None:
            self._close("} else {")
            self._filled(loops, env)
        self._close()

    def _level(self, loops: Loops, pending: tuple[Index, ...], env: Env) -> None:
        """Write the remaining loops; each condition has a counter of theirs."""
        if not loops:
            self._put(f"{self._target(env)} = {self._source(env)};")
            return
        if self.turn is not None and loops == self.turn.inner:
            self._turned(self.turn, pending, env)
            return
        (name, count), rest = loops[0], loops[1:]
        inner = {n for n, _ in rest}
        ends = [c for c in pending if not c.names & inner and _is_end(c, name)]
        other = tuple(c for c in pending if c not in ends)
        ends = [c for c in ends if _cuts(c, name, count) is not False]
        end = text(count, env)
        if ends and not rest and self.copy.aside:
            # A call of memcpy would make the compiler save what is in registers.
            inside = env.with_counter(name, count)
            self._open(loop_head(name, "0", end, inside))
            self._open(f"if ({conjunction(pending, inside)})")
            self._put(f"{self._target(inside)} = {self._source(inside)};")
            if self.fill is not None:
                self._close("} else {")
                self._put(f"{self._target(inside)} = {self.fill};")
            self._close()
            self._close()
            return
        if not ends:
            if not self._peel(loops, other, env):
                self._span(loops, "0", end, count, other, env)
            return
        if (known := _known_range(ends, name, count)) is not None:
            begin, beyond = known
            self._part(loops, "0", str(begin), env)
            self._span(loops, str(begin), str(beyond), const(beyond - begin), other, env)
            self._part(loops, str(beyond), end, env)
            return
        first, past = self._clipped(tuple(ends), name, count, env)
        # Most rows are whole: with a length that the compiler knows they take a few instructions.
        is_often_whole = count.constant is not None and not any(_cuts(c, name, count) for c in ends)
        if is_often_whole:
            length = past if first == "0" else f"{past} - {first}"
            self._open(f"if ({length} == {end})")
            self._span(loops, "0", end, count, other, env)
            self._close("} else {")
        self._part(loops, "0", first, env)
        self._span(loops, first, past, None, other, env)
        self._part(loops, past, end, env)
        if is_often_whole:
            self._close()

    def _peel(self, loops: Loops, pending: tuple[Index, ...], env: Env) -> bool:
        """Write a loop in parts, if conditions hold in all of one of them, inner loops included;
        return whether it was.

        What is turned is cut once for all of its call, where columns are counted in another way.
        """
        if self.turn is not None or self.copy.aside or self.parts >= _PARTS:
            return False
        (name, count), rest = loops[0], loops[1:]
        held: dict[Index, Index] = {}
        for condition in pending:
            least = worst(condition, rest) if outermost(condition, loops) == name else None
            if least is not None and _is_end(least, name):
                held[condition] = least
        known = _known_range(tuple(held.values()), name, count)
        if not held or known is None:
            return False
        begin, beyond = known
        others = [(0, begin), (beyond, count.constant or 0)]
        others = [(first, past) for first, past in others if first < past]
        self.parts += len(others)
        inside = tuple(condition for condition in pending if condition not in held)
        self._span(loops, str(begin), str(beyond), const(beyond - begin), inside, env)
        for first, past in others:
            left = pending
            if past - first == 1:
                left = tuple(condition.substitute({name: first}) for condition in pending)
            self._span(loops, str(first), str(past), const(past - first), left, env)
        return True

    def _turned(self, turn: Turn, pending: tuple[Index, ...], env: Env) -> None:
        """Write the call that turns rows into columns, where the conditions hold."""
        (row, rows), (column, columns) = turn.row, (turn.columns[-1][0], turn.across)
        first, past = self._clipped(pending, row, rows, env)
        self._part(turn.inner, "0", first, env)
        self._part(turn.inner, past, text(rows, env), env)
        left, right = self._clipped(pending, column, columns, env)
        panel, *within = turn.columns
        order = (panel, turn.row, *within, *([turn.unit] if turn.unit is not None else []))
        self._part(order, "0", left, env)
        beyond = f"{right} / {turn.piece}" if within else right
        if right != text(columns, env):
            # What a piece has is turned after all of it was filled.
            self._part(order, beyond, text(panel[1], env), env)
        at = env.with_counter(row, rows).with_counter(column, columns)
        at = replace(at, integers={**at.integers, row: first, column: left})
        begun = {name for name, start in ((row, first), (column, left)) if start != "0"}
        zero = [name for name, _ in turn.inner if name not in begun]
        copy = self.copy
        target, source = copy.target_offset, copy.source_offset
        apart = [const(0)]
        for name, count in reversed(within):
            step = self.bytes * target.coefficient(name)
            apart = [n * step + inner for n in range(count.constant or 1) for inner in apart]
        lines = turning(
            turn.bytes,
            self._address(copy.target, target, zero, at),
            text(self.bytes * target.coefficient(panel[0]), env),
            [text(place, env) for place in apart],
            self._address(copy.source, source, zero, at),
            text(self.bytes * source.coefficient(row), env),
            past if first == "0" else f"{past} - {first}",
            right if left == "0" else f"{right} - {left}",
        )
        for line in lines:
            self._put(line)

    def _clipped(
        self, pending: tuple[Index, ...], name: str, count: Index, env: Env
    ) -> tuple[str, str]:
        """Return from where to where conditions of a counter hold, after declaring both."""
        end = text(count, env)
        ends = [condition for condition in pending if name in condition.names]
        if not ends:
            return "0", end
        raised = any(_factor(condition, name) > 0 for condition in ends)
        past = f"past_{names.mangle(name)}"
        first = f"first_{names.mangle(name)}" if raised else "0"
        self._bounds(ends, name, first, past, end, env)
        return first, past

    def _bounds(
        self, ends: list[Index], name: str, first: str, past: str, end: str, env: Env
    ) -> None:
        """Declare ``first`` and ``past``: the conditions ``ends`` hold from one to the other."""
        if first != "0":
            self._put(f"int64_t {first} = 0;")
        self._put(f"int64_t {past} = {end};")
        for condition in ends:
            self._put(_clip(condition, name, first, past, env))
        self._put(f"{past} = isamap_max({past}, 0);")
        if first != "0":
            self._put(f"{first} = isamap_min({first}, {past});")

    def _part(self, loops: Loops, first: str, past: str, env: Env) -> None:
        """Fill the rows ``first .. past`` of the outermost loop."""
        if self.fill is None or first == past:
            return
        (name, count), rest = loops[0], loops[1:]
        inner = env.with_counter(name, count)
        piece = self._cleared(loops) if first.isdigit() and past.isdigit() else None
        # A call of memset would make the compiler save what is in registers.
        if piece is not None and rest and self.copy.aside:
            size = (int(past) - int(first)) * piece * self.bytes
            piece = piece if size <= _INLINE else None
        if piece is not None:
            start = replace(inner, integers={**inner.integers, name: first})
            zero = [n for n, _ in rest]
            target = self._address(self.copy.target, self.copy.target_offset, zero, start)
            times = "" if piece == 1 else f" * {piece}"
            self._put(f"memset({target}, 0, {int(past) - int(first)}{times} * {self.size});")
            return
        self._open(loop_head(name, first, past, inner))
        self._filled(rest, inner)
        self._close()

    def _cleared(self, loops: Loops) -> int | None:
        """Return the elements that an iteration of the outermost loop sets to 0, if they follow
        each other and the next iteration's follow them; None if they do not, or are not 0."""
        if self.copy.fill is None or self.copy.fill.text not in _ZEROS:
            return None
        return _follow(loops, (self.copy.target_offset,))

    def _span(
        self,
        loops: Loops,
        first: str,
        past: str,
        count: Index | None,
        pending: tuple[Index, ...],
        env: Env,
    ) -> None:
        """Copy the rows ``first .. past``; ``count`` is their number if it is no variable."""
        (name, extent), rest = loops[0], loops[1:]
        inner = env.with_counter(name, extent)
        piece = None if pending else self._run(loops)
        if piece is not None and not _is_short(count, piece):
            start = replace(inner, integers={**inner.integers, name: first})
            zero = [n for n, _ in loops if n != name or first == "0"]
            source = self._address(self.copy.source, self.copy.source_offset, zero, start)
            target = self._address(self.copy.target, self.copy.target_offset, zero, start)
            length = past if first == "0" else f"{past} - {first}"
            if count is not None and count.constant is not None and first.isdigit():
                length = str(count.constant)
            length = length if length.isidentifier() or length.isdigit() else f"({length})"
            times = "" if piece == 1 else f" * {piece}"
            self._put(f"memcpy({target}, {source},")
            self._put(f"       (size_t){length}{times} * {self.size});")
            return
        self._open(loop_head(name, first, past, inner))
        self._copied(rest, pending, inner)
        self._close()

    def _run(self, loops: Loops) -> int | None:
        """Return the elements that an iteration of the outermost loop copies, if they follow each
        other and the next iteration's follow them, there and here; None if they do not."""
        return _follow(loops, (self.copy.target_offset, self.copy.source_offset))

    def _source(self, env: Env) -> str:
        assert self.copy.source is not None
        return f"{names.buffer(self.copy.source)}[{text(self.copy.source_offset, env)}]"

    def _target(self, env: Env) -> str:
        return f"{names.buffer(self.copy.target)}[{text(self.copy.target_offset, env)}]"

    def _address(self, buffer: str | None, offset: Index, zero: Sequence[str], env: Env) -> str:
        assert buffer is not None
        start = offset.substitute(dict.fromkeys(zero, 0))
        pointer = names.buffer(buffer)
        return f"{pointer} + {text(start, env)}" if start.terms else pointer


def _repeats_first(copy: Copy) -> Loops:
    """Return the loops of a copy: what is read several times is read by passes of their own.

    Where rows lie a variable pitch apart, and a row's elements are stored several times, GCC 12's
    vectoriser takes as many rows at a time as fill a vector, and reads behind the last one.
    """
    names = {name for name, _ in copy.counters}
    pitches = [copy.source_offset.coefficient(name) for name in names]
    if copy.aside or all(pitch.constant is not None for pitch in pitches):
        return copy.counters
    used = copy.source_offset.names.union(*(count.names for _, count in copy.counters))
    passes = tuple(
        loop for loop in copy.counters if loop[0] not in used and loop[1].constant is not None
    )
    return (*passes, *(loop for loop in copy.counters if loop not in passes))


def _follow(loops: Loops, offsets: Sequence[Index]) -> int | None:
    """Return the elements of an iteration of the outermost of some loops, if they follow each other
    by these offsets and the next iteration's follow them; None if they do not."""
    piece = 1
    for n, (name, count) in enumerate(reversed(loops)):
        for offset in offsets:
            if not (offset.is_linear_in([name]) and offset.coefficient(name).constant == piece):
                return None
        if n == len(loops) - 1:
            return piece
        if count.constant is None:
            return None
        piece *= count.constant
    return None


def _is_short(count: Index | None, piece: int) -> bool:
    """Return whether so many pieces are fewer elements than a call is worth."""
    return count is not None and count.constant is not None and count.constant * piece < _SHORT


def _is_end(condition: Index, name: str) -> bool:
    return condition.is_linear_in([name]) and condition.coefficient(name).constant is not None


def _cuts(condition: Index, name: str, count: Index) -> bool | None:
    """Return whether the condition leaves out a point of every row; None if rows differ."""
    if condition.names != {name} or count.constant is None:
        return None
    bounds = condition.bounds({name: (0, count.constant - 1)})
    return bounds is None or bounds[0] < 0


def _known_range(ends: Sequence[Index], name: str, count: Index) -> tuple[int, int] | None:
    """Return from where to where conditions hold that depend on the counter alone; None if others
    do, or if they hold nowhere."""
    if count.constant is None or any(c.names != {name} for c in ends):
        return None
    first, past = 0, count.constant
    for condition in ends:
        factor = _factor(condition, name)
        if factor > 0:
            first = max(first, -(condition.offset // factor))
        else:
            past = min(past, condition.offset // -factor + 1)
    return (first, past) if first < past else None


def _clip(condition: Index, name: str, first: str, past: str, env: Env) -> str:
    """Return the statement that narrows ``first .. past`` to where ``condition >= 0``."""
    factor = _factor(condition, name)
    rest = condition - factor * var(name)
    if factor > 0:
        return f"{first} = isamap_max({first}, {text(-(rest // factor), env)});"
    return f"{past} = isamap_min({past}, {text(rest // -factor + 1, env)});"


def _factor(condition: Index, name: str) -> int:
    factor = condition.coefficient(name).constant
    assert factor, "the condition is linear in the counter"
    return factor
