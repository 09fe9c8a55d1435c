"""The rule that reads from memory what a value takes from the place of its iteration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, const, total, var
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Buffer, Coordinate, Expr, Kernel, Literal, Op, Statement
from isamap.ir.printer import print_expr
from isamap.ir.smt import term
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.once import instead_of, rare
from isamap.rewrite.polynomial import integer, literal
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma

NAME = "positions-from-memory"

_COMPARED = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "=", "!=": "distinct"}
"""Comparisons, as SMT-LIB has them."""


def positions_from_memory(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement with positions in buffers, in each type that holds them.

    ``Y[i, j] = select(j <= i, X[i, j], 0)`` becomes

        j_s32[j] = s32(j)
        i_s32[i] = s32(i)
        Y[i, j] = select(j_s32[j] <= i_s32[i], X[i, j], 0)

    so that vectors compare, which have no variables.  What is compared has the terms of one
    variable on one side, and all others on the other.
    """
    statement = kernel.statements[number]
    found = tuple(dict.fromkeys(_positions(statement.value)))
    if not found or any(v.extent.constant is None for v in statement.variables):
        return
    for dtype in _types():
        made = _Made(kernel, statement, dtype)
        changed: dict[Expr, Expr] = {old: new for old in found if (new := made.of(old)) is not None}
        # Where another type makes the same of them, it is yielded once.
        if changed and (made.narrowed or dtype == _types()[0]):
            yield _rewritten(kernel, number, made, changed)


def _types() -> tuple[DType, ...]:
    """Return the types that are tried: signed, the likelier ones first."""
    return tuple(DTYPES[name] for name in ("s32", "s64", "s16", "s8"))


def _rewritten(
    kernel: Kernel, number: int, made: "_Made", changed: Mapping[Expr, Expr]
) -> Rewriting:
    statement = kernel.statements[number]
    drafts = [*made.drafts]
    drafts.append(
        Draft(
            statement.target,
            statement.reduction,
            instead_of(statement.value, changed),
            extents(statement),
        )
    )
    after = replaced(kernel, number, drafts, made.buffers)
    said = " and ".join(f"{print_expr(old)} as {print_expr(new)}" for old, new in changed.items())
    note = f"{said}: positions are read from memory, where they were written before"
    return Rewriting(NAME, number, after, tuple(made.lemmas), note)


def _positions(expr: Expr) -> Iterator[Op]:
    """Yield comparisons and conversions of nothing but positions and literals."""
    if not isinstance(expr, Op):
        return
    placed = any(isinstance(arg, Coordinate) for arg in expr.args)
    alone = placed and all(_index(arg) is not None for arg in expr.args)
    if alone and (expr.op in _COMPARED or expr.op in ("cast", "sat")):
        yield expr
        return
    for arg in expr.args:
        yield from _positions(arg)


def _index(expr: Expr) -> Index | None:
    """Return a position, or a whole number that it meets, as an index expression."""
    match expr:
        case Coordinate(index, _):
            return index if not index.reads else None
        case Literal(_, dtype) if dtype.is_integer:
            return const(int(value(expr)))
        case _:
            return None


@dataclass(slots=True)
class _Made:
    """Buffers of positions in one type, and what is read from them.

    ``narrowed`` says whether something depends on that type.
    """

    kernel: Kernel
    statement: Statement
    dtype: DType
    narrowed: bool = False
    buffers: list[Buffer] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    lemmas: list[Lemma] = field(default_factory=list)
    known: dict[Expr, Access] = field(default_factory=dict)

    def of(self, expr: Op) -> Expr | None:
        """Return an expression that reads positions from memory; None where that is no gain."""
        indices = [index for arg in expr.args if (index := _index(arg)) is not None]
        if expr.op in _COMPARED:
            return self._compared(expr, indices[0], indices[1])
        return self._converted(expr, indices[0])

    def _compared(self, expr: Op, left: Index, right: Index) -> Expr | None:
        for own in self._own(left - right):
            rest = own - (left - right)
            if self._is_rare(rest) or not (self._fits(own) and self._fits(rest)):
                continue
            a, b = self._read(own), self._read(rest)
            found = Op(expr.op, (a, b), expr.dtype)
            relation = _COMPARED[expr.op]
            before = f"({relation} {term(left)} {term(right)})"
            same = f"(= {before} ({relation} {term(own)} {term(rest)}))"
            claim = f"{print_expr(expr)} = {print_expr(found)}, whose sides are in {self.dtype}"
            self._claim(claim, [same, *self._inside(own), *self._inside(rest)])
            self.narrowed = True
            return found
        return None

    def _converted(self, expr: Op, index: Index) -> Expr | None:
        if not index.names:
            return None
        if not self._is_rare(index):
            return self._kept(expr, index)
        for own in self._own(index):
            rest = own - index
            # One of them must fit, their difference, and both sides.
            fits = map(self._fits, (own, rest, index))
            if not rest.names or self._is_rare(rest) or not all(fits):
                continue
            a, b = self._read(own), self._read(rest)
            apart = Op("-", (a, b), self.dtype)
            found = apart if self._is_same(expr) else Op(expr.op, (apart,), expr.dtype)
            same = f"(= {term(index)} (- {term(own)} {term(rest)}))"
            claim = f"{print_expr(apart)} is what {print_expr(expr)} converts, in {self.dtype}"
            inside = [part for side in (own, rest, index) for part in self._inside(side)]
            self._claim(claim, [same, *inside])
            self.narrowed = True
            return found
        return None

    def _is_same(self, expr: Op) -> bool:
        return expr.dtype == self.dtype

    def _own(self, index: Index) -> Iterator[Index]:
        """Yield the terms of each variable alone, those of the innermost first."""
        for variable in reversed(self.statement.variables):
            terms = [Index((pair,)) for pair in index.terms]
            own = total(one for one in terms if variable.name in one.names)
            if own.names == {variable.name} and variable.name not in (index - own).names:
                yield own

    def _is_rare(self, index: Index) -> bool:
        """Return whether a buffer of a position is worth it: of one variable it always is."""
        sizes = extents(self.statement)
        shape = tuple(sizes[name] for name in sizes if name in index.names)
        return len(shape) > 1 and rare(self.statement, shape)

    def _fits(self, index: Index) -> bool:
        ends = index.bounds(_ranges(self.statement))
        return ends is not None and self.dtype.lowest <= ends[0] and ends[1] <= self.dtype.highest

    def _read(self, index: Index) -> Expr:
        """Return a position in the type, read from its buffer; a literal where it is one."""
        number = index.constant
        if number is not None:
            return literal(number, self.dtype)
        place = Coordinate(index, DTYPES["s64"])
        own = place if self.dtype == place.dtype else Op("cast", (place,), self.dtype)
        return self._kept(own, index)

    def _kept(self, expr: Op | Coordinate, index: Index) -> Access:
        """Return an expression of a position, read from a buffer of it."""
        if expr not in self.known:
            sizes = {v: n for v, n in extents(self.statement).items() if v in index.names}
            taken = [buffer.name for buffer in self.buffers]
            name = fresh(self.kernel, f"{'_'.join(sizes)}_{expr.dtype}", taken)
            place = Access(name, tuple(map(var, sizes)), expr.dtype)
            self.buffers.append(local(name, expr.dtype, tuple(sizes.values())))
            self.drafts.append(Draft(place, "=", expr, sizes))
            self.known[expr] = place
        return self.known[expr]

    def _inside(self, index: Index) -> tuple[str, str]:
        """Return the claims that a position is in the type."""
        low, high = integer(self.dtype.lowest), integer(self.dtype.highest)
        return f"(<= {low} {term(index)})", f"(<= {term(index)} {high})"

    def _claim(self, claim: str, parts: Sequence[str]) -> None:
        lines: list[str] = []
        for name, (low, high) in _ranges(self.statement).items():
            lines.append(f"(declare-const |{name}| Int)")
            lines.append(f"(assert (<= {low} |{name}| {high}))")
        lines.append(f"(assert (not (and {' '.join(parts)})))")
        self.lemmas.append(Lemma(NAME, claim, "\n".join(lines) + "\n"))


def _ranges(statement: Statement) -> dict[str, tuple[int, int]]:
    """Return the values of variables, which start at 0."""
    return {v.name: (0, int(v.extent.evaluate({})) - 1) for v in statement.variables}
