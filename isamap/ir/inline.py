"""Several statements as one: what a run of them leaves in the last one's target.

A statement's result that later ones read is replaced by the expression that computes it, a
reduction by a :class:`~isamap.ir.nodes.Reduce`.  What results is one assignment.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Buffer, Expr, Op, Reduce, Statement, Variable
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.statements import accesses, operations, reduces, substitute_expr, zero_based

MOST_OPERATIONS = 64
"""Operations of an expression beyond which statements stay apart."""


class ApartError(ValueError):
    """Statements are not one; the message says why."""


def inline(
    statements: Sequence[Statement],
    buffers: Mapping[str, Buffer],
    begun: AbstractSet[str] = frozenset(),
) -> Statement:
    """Return what a run of statements leaves in the target of the last one, as an assignment.

    ``c = b`` and ``c += x*y`` are ``c = b + (+= over k: x*y)``: that a sum of floats is taken apart
    from ``b`` needs the permission to reassociate where the reduction has more than one step.

    ``begun`` are the buffers that have content before the run besides inputs and ``inout``.
    ApartError if that is no single expression with at most one reduction in it.
    """
    run = _Run(buffers, begun)
    for statement in statements:
        run.add(zero_based(statement))
    return run.left_by(zero_based(statements[-1]))


def inline_each(
    statements: Sequence[Statement], buffers: Mapping[str, Buffer]
) -> Iterator[Statement]:
    """Yield what :func:`inline` makes of the first statement, of the first two, and so on."""
    run = _Run(buffers, frozenset())
    for statement in map(zero_based, statements):
        run.add(statement)
        yield run.left_by(statement)


@dataclass(frozen=True, slots=True)
class _Made:
    """What a statement leaves: ``target = value``; whole if ``target`` is every element once."""

    target: Access
    value: Expr
    variables: tuple[Variable, ...]
    is_whole: bool


@dataclass(slots=True)
class _Run:
    buffers: Mapping[str, Buffer]
    begun: AbstractSet[str]
    made: dict[str, _Made] = field(default_factory=dict)

    def add(self, statement: Statement) -> None:
        """Take the next statement."""
        target = statement.target
        names = {v.name for v in statement.variables}
        value, variables = self._read(statement.value, names)
        variables = (*statement.variables, *variables)
        used = target.names
        over = tuple(v for v in statement.variables if v.name not in used)
        if statement.reduction == "=":
            once = {v.name: 0 for v in over if v.extent == const(1)}
            if len(once) < len(over):
                raise ApartError(f"{target.buffer} is assigned more than once")
            value = substitute_expr(value, once)
            over = ()
        elif over:
            if reduces(value):
                raise ApartError(f"{target.buffer} reduces what is itself a reduction")
            names_ = tuple(v.name for v in over)
            value = Reduce(statement.reduction, names_, value, target.dtype, value.span)
        if statement.reduction != "=" and (before := self._before(target)) is not None:
            first, more = before
            op = REDUCTION_OPERATIONS[statement.reduction]
            value = Op(op, (first, value), target.dtype)
            variables = (*variables, *more)
        kept = frozenset(n for r in reduces(value) for n in r.variables) | used
        variables = tuple(v for v in dict.fromkeys(variables) if v.name in kept)
        if len(reduces(value)) > 1:
            raise ApartError(f"{target.buffer} depends on two reductions")
        if operations(value) > MOST_OPERATIONS:
            raise ApartError(f"{target.buffer} is a long expression")
        whole = is_whole(target, variables, self.buffers[target.buffer])
        self.made[target.buffer] = _Made(target, value, variables, whole)

    def left_by(self, last: Statement) -> Statement:
        """Return what the run has left in the target of its last statement, as an assignment."""
        made = self.made[last.target.buffer]
        if last.reduction != "=" and not made.is_whole:
            raise ApartError(f"{last.target.buffer} is written in parts")
        own = [a for a in accesses(made.value) if a.buffer == last.target.buffer]
        if any(a.indices != made.target.indices for a in own):
            raise ApartError(f"other elements of {last.target.buffer} are read")
        return Statement(made.target, "=", made.value, made.variables, last.span)

    def _before(self, target: Access) -> tuple[Expr, tuple[Variable, ...]] | None:
        """Return what is in the target's element before the statement; None if its identity."""
        if target.buffer in self.made:
            taken = target.names
            return self._instance(target, set(taken))
        fresh = self.buffers[target.buffer].role in ("out", "local")
        return None if fresh and target.buffer not in self.begun else (target, ())

    def _read(self, expr: Expr, taken: set[str]) -> tuple[Expr, tuple[Variable, ...]]:
        """Return an expression with what the run has computed put in, and the variables of that."""
        match expr:
            case Access(buffer, indices, _):
                if any(r.buffer in self.made for index in indices for r in index.reads):
                    raise ApartError("an index is read from what is computed here")
                return self._instance(expr, taken) if buffer in self.made else (expr, ())
            case Op(_, args, _):
                parts = [self._read(arg, taken) for arg in args]
                variables = tuple(v for _, own in parts for v in own)
                return replace(expr, args=tuple(part for part, _ in parts)), variables
            case _:
                return expr, ()

    def _instance(self, access: Access, taken: set[str]) -> tuple[Expr, tuple[Variable, ...]]:
        """Return what an element holds that the run has computed."""
        made, buffer = self.made[access.buffer], self.buffers[access.buffer]
        if not made.is_whole:
            raise ApartError(f"{access.buffer} is written in parts")
        if buffer.pad is not None:
            raise ApartError(f"{access.buffer} has a padding value")
        values: dict[str, Index | int] = {}
        for index, at in zip(made.target.indices, access.indices, strict=True):
            if (name := index.name) is not None:
                values[name] = at
        fresh: dict[str, str] = {}
        own: list[Variable] = []
        for variable in made.variables:
            if variable.name in values:
                continue
            name = _unused(variable.name, taken)
            taken.add(name)
            fresh[variable.name] = name
            own.append(replace(variable, name=name))
        whole = substitute_expr(made.value, {**values, **{n: var(m) for n, m in fresh.items()}})
        return _renamed(whole, fresh), tuple(own)


def _renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression whose reductions call their variables by other names."""
    match expr:
        case Reduce(_, variables, body, _):
            own = tuple(names.get(v, v) for v in variables)
            return replace(expr, variables=own, body=_renamed(body, names))
        case Op(_, args, _):
            return replace(expr, args=tuple(_renamed(arg, names) for arg in args))
        case _:
            return expr


def _unused(name: str, taken: AbstractSet[str]) -> str:
    count, found = 1, name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def is_whole(target: Access, variables: Sequence[Variable], buffer: Buffer) -> bool:
    """Return whether a statement from zero writes every element of its target.

    Variables that the target does not use may make it do so several times.
    """
    extents = {v.name: v.extent for v in variables}
    seen: set[str] = set()
    for index, extent in zip(target.indices, buffer.shape, strict=True):
        if index == const(0) and extent == const(1):
            continue
        name = index.name
        if name is None or name in seen or extents.get(name) != extent:
            return False
        seen.add(name)
    return True
