"""The rule that lays the rows that a window slides over end to end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Buffer, Expr, Kernel, Statement
from isamap.ir.printer import print_expr
from isamap.ir.smt import term
from isamap.ir.statements import accesses, read_indices, reduction_variables, used_names
from isamap.rewrite.build import Draft, extents, fresh, is_sole_writer, local, replaced
from isamap.rewrite.copies import place_names
from isamap.rewrite.laws import laws, may_reorder
from isamap.rewrite.once import instead_of, is_plain
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "join-rows"


def join_rows(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with two variables of its target as one, in which windows slide.

    ``S[p, q, k] += X[p + r, q + s, c] * F[r, s, c, k]`` over 7 by 7 places, whose windows reach
    over 9 by 9, becomes

        X_rows[9*i + j, c] = X[i, j, c]
        S_rows[p_q, k] += X_rows[p_q + 9*r + s, c] * F[r, s, c, k]

    with 61 places of ``p_q``, and what reads ``S[p, q, k]`` reads ``S_rows[9*p + q, k]``: the rows
    of the data follow each other evenly, so that an axis of an instruction goes on from one to the
    next.  At the end of each row there are places that nobody reads.  Where the target is not the
    kernel's own, it is copied from ``S_rows``.
    """
    statement = kernel.statements[number]
    sizes = {v.name: v.extent.constant for v in statement.variables}
    if not is_sole_writer(kernel, number) or not is_plain(statement.value):
        return
    if any(index.reads for part in _parts(statement) for index in read_indices(part)):
        return
    known = {name: size for name, size in sizes.items() if size is not None}
    for at, pair in enumerate(pairwise(index.name for index in statement.target.indices)):
        first, second = pair
        if first is None or second is None or first == second:
            continue
        # A variable that is in the target once more has no place of its own.
        others = [i for n, i in enumerate(statement.target.indices) if n not in (at, at + 1)]
        if {first, second} <= known.keys() and not {first, second} & _names(others):
            rows = _rows(kernel, statement, (first, second), known)
            if rows is not None:
                yield from _rewritten(kernel, number, at, rows)


@dataclass(frozen=True, slots=True)
class _Data:
    """A buffer whose rows are laid end to end.

    Its dimension ``row`` is read at the first variable and more, from ``above`` on, ``height``
    elements in all, and its dimension ``column`` likewise at the second one, from ``left`` on.
    ``copy`` is the name of what the rows are copied to, and ``pad`` says whether that is read
    outside.
    """

    buffer: Buffer
    copy: str
    row: int
    column: int
    above: int
    left: int
    height: int
    pad: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """Two variables and their sizes, and the buffers that are read at both of them.

    A row has ``pitch`` elements there.
    """

    first: str
    second: str
    sizes: Mapping[str, int]
    pitch: int
    data: tuple[_Data, ...]

    @property
    def places(self) -> int:
        """How many places the joined variable has."""
        return (self.sizes[self.first] - 1) * self.pitch + self.sizes[self.second]

    def of(self, access: Access) -> _Data | None:
        """Return the buffer that is read; None if it is not read at the variables."""
        alike = (one for one in self.data if one.buffer.name == access.buffer)
        return next(alike, None) if {self.first, self.second} & access.names else None


def _rows(
    kernel: Kernel, statement: Statement, pair: tuple[str, str], sizes: Mapping[str, int]
) -> _Rows | None:
    """Return how rows are laid end to end; None where nothing slides along them, or not so."""
    first, second = pair
    read = [a for a in accesses(statement.value) if set(pair) & a.names]
    around = {v: (0, size - 1) for v, size in sizes.items() if v not in pair}
    found: dict[str, tuple[int, int, int, int, int, int]] = {}
    for access in read:
        down, along = (_slide(access.indices, v, pair, around) for v in pair)
        if down is None or along is None:
            return None
        (row, top, bottom), (column, left, right) = down, along
        before = found.get(access.buffer, (row, column, top, bottom, left, right))
        if before[:2] != (row, column):
            return None
        found[access.buffer] = (
            row,
            column,
            min(before[2], top),
            max(before[3], bottom),
            min(before[4], left),
            max(before[5], right),
        )
    wide = max((right - left for *_, left, right in found.values()), default=0)
    pitch = sizes[second] + wide
    if not 0 < wide < sizes[second] or sizes[first] == 1:
        return None  # rows follow each other as they are, or most places would not be used
    if any(column < row for row, column, *_ in found.values()):
        return None
    data: list[_Data] = []
    for name, (row, column, top, bottom, left, right) in found.items():
        source = kernel.buffer(name)
        if source.pad is None and right - left < wide:
            return None
        padded = source.pad is not None and not all(
            _is_inside(index, size, around)
            for access in read
            if access.buffer == name
            for n, (index, size) in enumerate(zip(access.indices, source.shape, strict=True))
            if n not in (row, column)
        )
        height = sizes[first] + bottom - top
        copy = fresh(kernel, f"{name}_rows", [one.copy for one in data])
        data.append(_Data(source, copy, row, column, top, left, height, padded))
    return _Rows(first, second, sizes, pitch, tuple(data))


def _slide(
    indices: Sequence[Index],
    name: str,
    pair: tuple[str, str],
    around: Mapping[str, tuple[int, int]],
) -> tuple[int, int, int] | None:
    """Return the one dimension that is read at a variable, and the least and most beside it."""
    found = [n for n, index in enumerate(indices) if name in index.names]
    if len(found) != 1:
        return None
    rest = indices[found[0]] - var(name)
    ends = rest.bounds(around)
    return None if ends is None or set(pair) & rest.names else (found[0], *ends)


def _is_inside(index: Index, size: Index, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether an index is known to be within a dimension."""
    ends, most = index.bounds(ranges), size.constant
    return ends is not None and most is not None and ends[0] >= 0 and ends[1] < most


def _rewritten(kernel: Kernel, number: int, at: int, rows: _Rows) -> Iterator[Rewriting]:
    statement = kernel.statements[number]
    target = statement.target
    joined = fresh(kernel, f"{rows.first}_{rows.second}")
    name = fresh(kernel, f"{target.buffer}_rows", [one.copy for one in rows.data])
    changed: dict[Expr, Expr] = {}
    lemmas: list[Lemma] = []
    for access in dict.fromkeys(accesses(statement.value)):
        one = rows.of(access)
        if one is not None:
            there = _joined(access, one, rows, var(joined))
            changed[access] = there
            lemmas.append(_same(access, there, one, rows, joined))
    lemmas += [_once(one, rows) for one in rows.data]
    place = Access(name, _flat(target.indices, at, var(joined)), target.dtype)
    value = instead_of(statement.value, changed)
    reduced = tuple(v for v in used_names(place, value) if v not in place.names)
    if reduced != reduction_variables(statement):
        if not may_reorder(kernel, statement):
            return
        lemmas += laws(kernel, statement)
    sizes = {v: e for v, e in extents(statement).items() if v not in (rows.first, rows.second)}
    drafts = [_copy(kernel, one, rows) for one in rows.data]
    drafts.append(Draft(place, statement.reduction, value, {**sizes, joined: const(rows.places)}))
    shape = _flat(kernel.buffer(target.buffer).shape, at, const(rows.places))
    buffers = [_buffer(one, rows) for one in rows.data]
    result = local(name, target.dtype, shape)
    after = _read_there(kernel, number, at, rows, result)
    if after is None:
        after = kernel
        buffers.append(result)
        there = replace(place, indices=_flat(target.indices, at, _place(rows)))
        outside = {v: e for v, e in extents(statement).items() if v in target.names}
        drafts.append(Draft(target, "=", there, outside))
    unused = rows.places - rows.sizes[rows.first] * rows.sizes[rows.second]
    note = (
        f"{rows.first} and {rows.second} as {joined} = {_place(rows)}: rows of "
        f"{' and '.join(one.buffer.name for one in rows.data)} lie end to end, and "
        f"{unused} of {rows.places} places are not used"
    )
    yield Rewriting(NAME, number, replaced(after, number, drafts, buffers), tuple(lemmas), note)


def _place(rows: _Rows) -> Index:
    """Return the joined variable, of both."""
    return var(rows.first) * rows.pitch + var(rows.second)


def _flat(dimensions: Sequence[Index], at: int, joined: Index) -> tuple[Index, ...]:
    """Return dimensions with one in the place of two."""
    return (*dimensions[:at], joined, *dimensions[at + 2 :])


def _without_row(dimensions: Sequence[Index], one: _Data, column: Index) -> tuple[Index, ...]:
    """Return the dimensions of a buffer as its copy has them."""
    return tuple(
        column if n == one.column else index for n, index in enumerate(dimensions) if n != one.row
    )


def _joined(access: Access, one: _Data, rows: _Rows, joined: Index) -> Access:
    """Return where the copy has what an access reads."""
    down = access.indices[one.row] - var(rows.first) - one.above
    along = access.indices[one.column] - var(rows.second) - one.left
    index = joined + down * rows.pitch + along
    return Access(one.copy, _without_row(access.indices, one, index), access.dtype)


def _buffer(one: _Data, rows: _Rows) -> Buffer:
    shape = _without_row(one.buffer.shape, one, const(one.height * rows.pitch))
    made = local(one.copy, one.buffer.dtype, shape)
    return replace(made, pad=one.buffer.pad) if one.pad else made


def _copy(kernel: Kernel, one: _Data, rows: _Rows) -> Draft:
    """Return the statement that lays the rows of a buffer end to end."""
    taken = place_names(kernel, one.buffer, one.copy)
    sizes = dict(zip(taken, one.buffer.shape, strict=True))
    i, j = taken[one.row], taken[one.column]
    sizes |= {i: const(one.height), j: const(rows.pitch)}
    source = list(map(var, taken))
    there = _without_row(source, one, var(i) * rows.pitch + var(j))
    source[one.row] = var(i) + one.above
    source[one.column] = var(j) + one.left
    dtype = one.buffer.dtype
    return Draft(
        Access(one.copy, there, dtype), "=", Access(one.buffer.name, tuple(source), dtype), sizes
    )


def _read_there(kernel: Kernel, number: int, at: int, rows: _Rows, result: Buffer) -> Kernel | None:
    """Return the kernel whose other statements read the joined result; None where not all can.

    They can read a local buffer of no other elements, at places of their own, in the same order.
    """
    old = kernel.buffer(kernel.statements[number].target.buffer)
    whole = (old.shape[at].constant, old.shape[at + 1].constant)
    if old.role != "local" or old.pad is not None:
        return None
    if whole != (rows.sizes[rows.first], rows.sizes[rows.second]):
        return None
    statements = []
    for other in kernel.statements:
        if other is kernel.statements[number]:
            statements.append(other)
            continue
        indices = [index for part in _parts(other) for index in read_indices(part)]
        if any(r.buffer == old.name for index in indices for r in index.reads):
            return None
        changed: dict[Expr, Expr] = {
            a: Access(
                result.name,
                _flat(a.indices, at, a.indices[at] * rows.pitch + a.indices[at + 1]),
                a.dtype,
            )
            for a in accesses(other.value)
            if a.buffer == old.name
        }
        value = instead_of(other.value, changed)
        if used_names(other.target, value) != used_names(other.target, other.value):
            return None
        statements.append(replace(other, value=value))
    buffers = tuple(result if b.name == old.name else b for b in kernel.buffers)
    return replace(kernel, buffers=buffers, statements=tuple(statements))


def _same(access: Access, there: Access, one: _Data, rows: _Rows, joined: str) -> Lemma:
    """Return the lemma that an access is read where the copy has it, for all values."""
    lines = _declared(rows.sizes)
    y = term(access.indices[one.row] - one.above)
    x = term(access.indices[one.column] - one.left)
    column = one.column - (one.row < one.column)
    index = there.indices[column].substitute({joined: _place(rows)})
    place = term(_place(rows))
    parts = [
        f"(= {term(index)} (+ (* {rows.pitch} {y}) {x}))",
        f"(<= 0 {y}) (< {y} {one.height})",
        f"(<= 0 {x}) (< {x} {rows.pitch})",
        f"(<= 0 {place}) (< {place} {rows.places})",
    ]
    lines.append(f"(assert (not (and {' '.join(parts)})))")
    claim = f"{print_expr(access)} is {print_expr(there)} where {joined} = {_place(rows)}"
    return Lemma(NAME, claim, "\n".join(lines) + "\n")


def _once(one: _Data, rows: _Rows) -> Lemma:
    """Return the lemma that two elements of rows have two places, within what is laid out."""
    ends = {"i": one.height, "j": rows.pitch}
    lines = _declared({f"{v}{mark}": size for v, size in ends.items() for mark in ("", "'")})
    place, other = (f"(+ (* {rows.pitch} |i{mark}|) |j{mark}|)" for mark in ("", "'"))
    apart = "(or (distinct |i| |i'|) (distinct |j| |j'|))"
    outside = f"(not (and (<= 0 {place}) (< {place} {one.height * rows.pitch})))"
    lines.append(f"(assert (or {outside} (and {apart} (= {place} {other}))))")
    claim = f"rows of {rows.pitch} elements in {one.copy} lie apart from each other"
    return Lemma(NAME, claim, "\n".join(lines) + "\n")


def _declared(sizes: Mapping[str, int]) -> list[str]:
    """Return variables and their ranges, as SMT-LIB has them."""
    lines = [f"(declare-const |{name}| Int)" for name in sizes]
    lines += [f"(assert (and (<= 0 |{v}|) (< |{v}| {size})))" for v, size in sizes.items()]
    return lines


def _parts(statement: Statement) -> tuple[Expr, Expr]:
    return statement.target, statement.value


def _names(indices: Sequence[Index]) -> frozenset[str]:
    return frozenset().union(*(index.names for index in indices))
