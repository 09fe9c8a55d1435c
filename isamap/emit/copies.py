"""Element copies as C functions of their own: packing, padding, filling.

The innermost loop is the one that compilers must do well.  Conditions that are linear in its
counter become the ends of an interval, the others are tested as far out as they are known, so that
what remains is a plain loop or a call of ``memcpy``.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from isamap.emit import literals, names
from isamap.emit.expressions import Env, conjunction, text
from isamap.emit.header import wrapped
from isamap.ir.dtype import DType
from isamap.ir.index import Index, var
from isamap.lower.nodes import Array, Copy

ATTRIBUTE = """\
#if defined(__GNUC__) && !defined(__clang__)
#define ISAMAP_COPY static __attribute__((noinline, optimize("O3")))
#else
#define ISAMAP_COPY static
#endif
"""

Loops: TypeAlias = tuple[tuple[str, Index], ...]

_SHORT = 16
"""Rows of fewer elements are copied by a loop: a call of memcpy costs more."""


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
    parameters += [f"int64_t {env.integers[n]}" for n in free]
    arguments = [names.buffer(b) for b in buffers] + [env.integers[n] for n in free]
    body = _Body(copy, arrays[copy.target].dtype).lines(env)
    definition = [
        wrapped(f"ISAMAP_COPY void {name}", parameters),
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
        self.size = f"sizeof({literals.memory_type(dtype)})"
        self.out: list[str] = []
        self.depth = 0

    def lines(self, env: Env) -> list[str]:
        """Return the function's body."""
        # Without a source every point is filled, whatever the conditions say.
        conditions = self.copy.conditions if self.copy.source is not None else ()
        self._level(self.copy.counters, conditions, "", env)
        while self.depth:
            self._close()
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

    def _level(self, loops: Loops, pending: tuple[Index, ...], gate: str, env: Env) -> None:
        """Write the remaining loops; ``gate`` is a C variable that says 'inside so far'."""
        later = {name for name, _ in loops}
        ready = tuple(c for c in pending if not c.names & later)
        pending = tuple(c for c in pending if c.names & later)
        if ready and self.fill is None:
            self._open(f"if ({conjunction(ready, env)})")
        elif ready:
            inside = f"inside{len(loops)}"
            test = conjunction(ready, env)
            self._put(f"const int {inside} = {f'{gate} && ' if gate else ''}{test};")
            gate = inside
        match loops:
            case ():
                self._put(self._element(gate, env))
            case ((name, count),):
                self._row(name, count, pending, gate, env)
            case ((name, count), *rest):
                self._open(f"for ({_header(name, '0', text(count, env))})")
                self._level(tuple(rest), pending, gate, env.with_counter(name, count))

    def _row(
        self, name: str, count: Index, pending: tuple[Index, ...], gate: str, env: Env
    ) -> None:
        ends = [c for c in pending if _is_end(c, name) and _cuts(c, name, count) is not False]
        tests = tuple(c for c in pending if not _is_end(c, name))
        inner = env.with_counter(name, count)
        end = text(count, env)
        if not ends and not gate:
            self._span(name, "0", end, count, tests, inner)
            return
        is_raised = any(_factor(c, name) > 0 for c in ends)
        first = "first" if is_raised else "0"
        if is_raised:
            self._put("int64_t first = 0;")
        self._put(f"int64_t past = {f'{gate} ? {end} : 0' if gate else end};")
        for condition in ends:
            self._put(_clip(condition, name, env))
        # Most rows are whole: with a length that the compiler knows they take a few instructions.
        is_fixed = count.constant is not None and not any(_cuts(c, name, count) for c in ends)
        if is_fixed:
            self._open(f"if (past{' - first' if is_raised else ''} == {end})")
            self._span(name, "0", end, count, tests, inner)
            self._close("} else {")
        self._clipped(name, first, end, tests, inner)
        if is_fixed:
            self._close()

    def _clipped(self, name: str, first: str, end: str, tests: tuple[Index, ...], env: Env) -> None:
        """Write the copy of ``first .. past`` and the filling of the rest of ``0 .. end``."""
        if self.fill is None:
            self._span(name, first, "past", None, tests, env)
            return
        fill = f"{self._target(env)} = {self.fill};"
        self._put("past = isamap_max(past, 0);")
        if first != "0":
            self._put("first = isamap_min(first, past);")
            self._loop(name, "0", first, fill)
        self._span(name, first, "past", None, tests, env)
        self._loop(name, "past", end, fill)

    def _span(
        self,
        name: str,
        first: str,
        past: str,
        count: Index | None,
        tests: tuple[Index, ...],
        env: Env,
    ) -> None:
        """Write the copy of ``first .. past``; ``count`` is the length if that is no variable."""
        if self._is_row_of_bytes(name, count, tests):
            start = replace(env, integers={**env.integers, name: first})
            source = self._address(self.copy.source, self.copy.source_offset, name, start)
            target = self._address(self.copy.target, self.copy.target_offset, name, start)
            length = past if first == "0" else f"{past} - {first}"
            length = length if length.isidentifier() or length.isdigit() else f"({length})"
            if count is None:
                self._put(f"if ({past} > {first})")
            indent = "    " if count is None else ""
            self._put(f"{indent}memcpy({target}, {source},")
            self._put(f"{indent}       (size_t){length} * {self.size});")
            return
        if tests and self.fill is None:
            line = f"if ({conjunction(tests, env)}) {self._element('', env)}"
        else:
            line = self._element(conjunction(tests, env) if tests else "", env)
        self._loop(name, first, past, line)

    def _is_row_of_bytes(self, name: str, count: Index | None, tests: tuple[Index, ...]) -> bool:
        if self.copy.source is None or tests:
            return False
        short = count is not None and count.constant is not None and count.constant < _SHORT
        return not short and all(
            offset.is_linear_in([name]) and offset.coefficient(name).constant == 1
            for offset in (self.copy.target_offset, self.copy.source_offset)
        )

    def _loop(self, name: str, first: str, past: str, line: str) -> None:
        self._put(f"for ({_header(name, first, past)})")
        self._put(f"    {line}")

    def _element(self, inside: str, env: Env) -> str:
        if self.copy.source is None:
            assert self.fill is not None, "a copy has a source or a fill"
            return f"{self._target(env)} = {self.fill};"
        source = f"{names.buffer(self.copy.source)}[{text(self.copy.source_offset, env)}]"
        if inside:
            return f"{self._target(env)} = ({inside}) ? {source} : {self.fill};"
        return f"{self._target(env)} = {source};"

    def _target(self, env: Env) -> str:
        return f"{names.buffer(self.copy.target)}[{text(self.copy.target_offset, env)}]"

    def _address(self, buffer: str | None, offset: Index, name: str, env: Env) -> str:
        assert buffer is not None
        start = offset.substitute({name: 0}) if env.integers[name] == "0" else offset
        pointer = names.buffer(buffer)
        return f"{pointer} + {text(start, env)}" if start.terms else pointer


def _header(name: str, first: str, past: str) -> str:
    variable = names.counter(name)
    return f"int64_t {variable} = {first}; {variable} < {past}; ++{variable}"


def _is_end(condition: Index, name: str) -> bool:
    return condition.is_linear_in([name]) and condition.coefficient(name).constant is not None


def _cuts(condition: Index, name: str, count: Index) -> bool | None:
    """Return whether the condition leaves out a point of every row; None if rows differ."""
    if condition.names != {name} or count.constant is None:
        return None
    bounds = condition.bounds({name: (0, count.constant - 1)})
    return bounds is None or bounds[0] < 0


def _clip(condition: Index, name: str, env: Env) -> str:
    """Return the statement that narrows ``first .. past`` to where ``condition >= 0``."""
    factor = _factor(condition, name)
    rest = condition - factor * var(name)
    if factor > 0:
        return f"first = isamap_max(first, {text(-(rest // factor), env)});"
    return f"past = isamap_min(past, {text(rest // -factor + 1, env)});"


def _factor(condition: Index, name: str) -> int:
    factor = condition.coefficient(name).constant
    assert factor, "the condition is linear in the counter"
    return factor
