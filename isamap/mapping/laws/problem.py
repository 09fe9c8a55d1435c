"""What the four laws look at: rows, forms and axes of one statement, one needle, one binding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isamap.ir.index import Index
from isamap.ir.nodes import Expr, Literal, Permissions, Statement
from isamap.ir.statements import accesses, read_indices, reduces
from isamap.mapping.axes.linear import Vector, in_span, primitive
from isamap.mapping.axes.rows import as_form, entangled, row, split
from isamap.mapping.axes.seen import Seen, determines, renumbered, seen_by
from isamap.mapping.laws.killing import Filling, best_fillings
from isamap.mapping.laws.places import Register, is_torn, registers
from isamap.mapping.matching import Needle, Placement
from isamap.mapping.needles.needles import operand_accesses


@dataclass(frozen=True, slots=True)
class Local:
    """The laws' data over some variables; operand 0 is the target.

    ``rows`` are the index expressions of each operand of the kernel, ``sees`` the axes that fix an
    element of each operand of the instruction, ``forms`` what may be placed.  A stray iteration is
    harmless if it is harmless to the operands of each of ``witnesses`` (sets of operands, the
    target always among them).  ``barred`` are (form, axis) pairs that the kernel does not permit.

    A family of matchings adds ``outside``, the pairs that are not in it; ``once``, which keeps each
    form to one axis; and drops law 2 where ``owned`` is False.
    Where some operand sees axes only in a sum, or is read at several places, ``seen`` has what each
    operand sees; else nothing.  ``registers`` are the operands that are read at several places;
    where there are any, ``extents`` are those of the variables, None if they are symbols.
    """

    size: int
    rows: tuple[tuple[Vector, ...], ...]
    sees: tuple[frozenset[int], ...]
    forms: tuple[Vector, ...]
    axes: int
    witnesses: tuple[frozenset[int], ...]
    barred: frozenset[tuple[int, int]] = frozenset()
    outside: frozenset[tuple[int, int]] = frozenset()
    once: bool = False
    owned: bool = True
    seen: tuple[Seen, ...] = ()
    registers: tuple[Register, ...] = ()
    extents: tuple[int | None, ...] = ()

    @property
    def owning(self) -> frozenset[int]:
        """The axes whose position an element of the target fixes."""
        return self.seen[0].alone if self.seen else self.sees[0]


@dataclass(frozen=True, slots=True)
class Problem:
    """A statement, a needle and a binding, as vectors over the variables that may be placed.

    There is one filling for each useful choice of constants in unused elements; a matching
    is legal if it is legal under one of them.
    """

    variables: tuple[str, ...]
    operands: tuple[str, ...]
    axes: tuple[str, ...]
    extents: tuple[int | None, ...]
    rows: tuple[tuple[Vector, ...], ...]
    sees: tuple[frozenset[int], ...]
    forms: tuple[Vector, ...]
    fillings: tuple[Filling, ...]
    barred: frozenset[tuple[int, int]]
    indices: tuple[Index, ...]
    """The forms as index expressions."""
    splittable: bool
    """Whether partial results may be combined in any order."""
    seen: tuple[Seen, ...] = ()
    """What each operand sees, where some sees axes only in a sum or is read at several places."""
    registers: tuple[Register, ...] = ()
    """The operands that the instruction reads at several places."""

    def placed(self, placements: Sequence[Placement]) -> frozenset[tuple[int, int]] | None:
        """Return placements as (form, axis) pairs; None if one is outside the form set."""
        numbers = {index: n for n, index in enumerate(self.indices)}
        pairs = set()
        for placement in placements:
            if placement.form not in numbers or placement.axis not in self.axes:
                return None
            pairs.add((numbers[placement.form], self.axes.index(placement.axis)))
        return frozenset(pairs)

    def placements(self, placed: frozenset[tuple[int, int]]) -> tuple[Placement, ...]:
        """Return (form, axis) pairs as placements, in order of the axes and of the forms."""
        ordered = sorted((axis, form) for form, axis in placed)
        return tuple(Placement(self.indices[f], self.axes[axis]) for axis, f in ordered)

    def witnesses(self, filling: Filling) -> tuple[frozenset[int], ...]:
        """Return the sets of operands to each of which strays must be harmless."""
        numbers = {name: n for n, name in enumerate(self.operands)}
        chosen: set[frozenset[int]] = {frozenset((0,))}
        for killing in filling.sets:
            chosen = {w | {numbers[name]} for w in chosen for name in killing}
        # A smaller set of operands is the stronger demand.
        least = {w for w in chosen if not any(other < w for other in chosen)}
        return tuple(sorted(least, key=sorted))

    def local(self, filling: Filling) -> Local:
        """Return the whole problem under one choice of constants."""
        return Local(
            len(self.variables),
            self.rows,
            self.sees,
            self.forms,
            len(self.axes),
            self.witnesses(filling),
            self.barred,
            seen=self.seen,
            registers=self.registers,
            extents=self.extents if self.registers else (),
        )

    @property
    def torn(self) -> Register | None:
        """An operand that would have to hold two elements in one place, whatever is placed."""
        return next((register for register in self.registers if is_torn(register)), None)

    def alone(self, operand: int) -> frozenset[int]:
        """Return the axes whose position an element of an operand fixes."""
        return self.seen[operand].alone if self.seen else self.sees[operand]

    def is_fixed(self, operand: int) -> bool:
        """Return whether an element of the target determines the operand's."""
        if self.seen:
            return self.seen[operand].is_fixed_by(self.seen[0], len(self.axes))
        return self.sees[operand] <= self.sees[0]

    def is_open(self, filling: Filling) -> bool:
        """Return whether padding an axis can be harmless at all.

        An axis that neither the target nor some witness sees repeats live work when it is padded.
        """
        if self.torn is not None:
            return False
        if self.seen:
            return all(
                determines((self.seen[t] for t in witness), len(self.axes))
                for witness in self.witnesses(filling)
            )
        return all(
            any(axis in self.sees[t] for t in witness)
            for witness in self.witnesses(filling)
            for axis in range(len(self.axes))
        )


def problem(
    statement: Statement,
    needle: Needle,
    operands: Sequence[tuple[str, Expr]],
    permissions: Permissions = Permissions(),  # noqa: B008  (frozen)
) -> Problem:
    """Return the vectors that the laws speak about."""
    bound = dict(operands)
    names = (needle.target.buffer, *bound)
    indices = (statement.target.indices, *(read_indices(expr) for expr in bound.values()))
    variables = _placeable(statement)
    known = {v.name: v.extent.constant for v in statement.variables}
    extents = tuple(known[name] for name in variables)
    rows = tuple(
        tuple(dict.fromkeys(r for i in group for r in split(row(i, variables), extents)))
        for group in indices
    )
    live = [n for n, axis in enumerate(needle.axes) if axis.extent > 1]
    read = operand_accesses(needle)
    found = []
    for access in (needle.target, *(read[name] for name in bound)):
        own = seen_by(access, needle.axes)
        assert own is not None, "needles have linear accesses"
        found.append(renumbered(own, live))
    sees = tuple(own.axes for own in found)
    # An operand of which every element is fixed by the output's never has an unused element that
    # matters; one that is bound to a literal has the literal everywhere; a table cannot be filled.
    built_in = {name for name in bound if needle.operand(name).contents is not None}
    fillable = tuple(
        name
        for name, own in zip(names[1:], found[1:], strict=True)
        if not own.is_fixed_by(found[0], len(live)) and name not in built_in
    )
    fixed = tuple(
        (name, expr)
        for name, expr in bound.items()
        if isinstance(expr, Literal) and name not in built_in
    )
    forms = _forms(rows, len(variables))
    shared = registers(needle, operands, variables, [needle.axes[n] for n in live])
    reduction, body = needle.repeated
    fillings = best_fillings(
        body, reduction, fillable, fixed, permissions.finite, shared=needle.places
    )
    # Where every element of a table is used, no stray meets an unused one: as if it killed.
    for name in bound:
        if name in built_in:
            own_set = frozenset((name,))
            fillings += tuple(replace(f, sets=(*f.sets, own_set)) for f in fillings)
    return Problem(
        variables,
        names,
        tuple(needle.axes[n].name for n in live),
        extents,
        rows,
        sees,
        forms,
        fillings,
        _barred(statement, variables, forms, found[0].alone, len(live), permissions),
        tuple(as_form(form, variables) for form in forms),
        statement.reduction != "=" and not _is_ordered(statement, permissions),
        tuple(found) if any(own.sums for own in found) or shared else (),
        shared,
    )


def _placeable(statement: Statement) -> tuple[str, ...]:
    """Return the variables that may be inner: more than one iteration, linear everywhere."""
    names = frozenset(v.name for v in statement.variables)
    own = [a for a in accesses(statement.value) if a.buffer == statement.target.buffer]
    if own:
        if statement.reduction != "=" or any(a.indices != statement.target.indices for a in own):
            return ()  # An element may depend on one that another iteration writes.
        names &= frozenset(n for i in statement.target.indices for n in i.names)
    stuck: set[str] = set()
    for index in (*statement.target.indices, *read_indices(statement.value)):
        if any(r.buffer == statement.target.buffer for r in index.reads):
            return ()
        stuck |= entangled(index, names)
    return tuple(
        v.name
        for v in statement.variables
        if v.name in names and v.name not in stuck and v.extent.constant != 1
    )


def _forms(rows: Sequence[Sequence[Vector]], size: int) -> tuple[Vector, ...]:
    """Return the single variables and the composite rows, without factors and signs."""
    singles = [tuple(int(n == v) for n in range(size)) for v in range(size)]
    composites = [primitive(r) for group in rows for r in group if sum(map(bool, r)) > 1]
    used = [s for s in singles if any(r[s.index(1)] for group in rows for r in group)]
    return tuple(dict.fromkeys((*used, *composites)))


def _barred(
    statement: Statement,
    variables: Sequence[str],
    forms: Sequence[Vector],
    seen_by_target: frozenset[int],
    axes: int,
    permissions: Permissions,
) -> frozenset[tuple[int, int]]:
    """Return the placements that would change the order of a reduction that must keep it."""
    if not _is_ordered(statement, permissions):
        return frozenset()
    fixed = [row(index, variables) for index in statement.target.indices]
    return frozenset(
        (f, axis)
        for f, form in enumerate(forms)
        if not in_span(fixed, form)
        for axis in range(axes)
        if axis not in seen_by_target
    )


def _is_ordered(statement: Statement, permissions: Permissions) -> bool:
    """Return whether the order of a reduction's steps shows and must be kept."""
    found = [(r.reduction, r.dtype) for r in reduces(statement.value)]
    found.append((statement.reduction, statement.target.dtype))
    rounds = any(reduction in ("+=", "*=") and dtype.is_float for reduction, dtype in found)
    return rounds and not permissions.reassociate
