"""The rule that reduces in lanes: partial results side by side, and the end of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Expr, Kernel, Op, Statement
from isamap.ir.operations import OPERATIONS, REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, names, substitute_expr
from isamap.rewrite.arithmetic import NoTermError
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.laws import laws, may_reorder, repeated
from isamap.rewrite.rule import Rewriting, Rule
from isamap.rewrite.shape import Shapes
from isamap.solver.lemma import Lemma

NAME = "split-reduction"

IN_FLIGHT = 4
"""Results of an instruction that are in flight where one row has to keep its units busy."""

FEWEST = 2
"""Steps of a reduction below which partial results save nothing."""


def splitting(shapes: Shapes) -> Rule:
    """Return the rule that splits a reduction into lanes, for a machine's instructions.

    ``S[r] += X[r, c]`` becomes, with as many lanes as an instruction adds side by side,

        S_parts[r, l] += X[r, 16*c + l]
        S_parts[r, l] += X[r, 992 + l]      # what is left over, if anything is
        S[r] += S_parts[r, l]

    so that the lanes of a register are reduced once for each result, not once for each of its
    instructions.  Where an instruction adds a group of neighbours to each of its results, so does
    each lane: ``S_parts[r, l] += X[r, 64*c + 4*l + g]``.  The same holds for every reduction whose
    operation is associative and commutative; sums and products of floats need the permission to
    reassociate.

    What is left over and fills no register is reduced by an instruction that does so, if the
    machine has one for as much, and not in a part of the lanes: whoever loads all of these would
    wait until the part is in memory.  Where a term may count twice, the last lanes overlap those
    before.
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        if not may_reorder(kernel, statement):
            return
        widths, reduced = _widths(shapes, statement), _reduced(shapes, statement)
        for name in _neighbouring(statement):
            extent = extents(statement)[name].constant
            for width, lanes in widths:
                if extent is not None and extent // lanes.terms >= FEWEST:
                    left = _left(statement, extent, width, lanes, reduced)
                    yield from _split(kernel, number, name, extent, lanes, left)

    return rule


@dataclass(frozen=True, slots=True, order=True)
class _Lanes:
    """So many partial results, to each of which one step adds a group of neighbouring terms."""

    count: int
    group: int = 1

    @property
    def terms(self) -> int:
        """How many terms one step adds."""
        return self.count * self.group


def _widths(shapes: Shapes, statement: Statement) -> tuple[tuple[int, _Lanes], ...]:
    """Return how many results the machine's instructions combine at once, each with the lanes that
    are tried for it: as many, and more in flight.
    """
    reduction = statement.reduction
    operation = REDUCTION_OPERATIONS[reduction]
    once = OPERATIONS[operation].idempotent
    found: set[tuple[int, int]] = set()
    for one in shapes.statements:
        root = one.value.op if isinstance(one.value, Op) and one.reduction == "=" else None
        combines = one.reduction == reduction or root == operation
        if combines and one.target.dtype == statement.target.dtype:
            width, group = _counts(one)
            found.add((width, 1))
            if one.reduction == reduction and not once and _bits(one, min) >= _bits(statement, max):
                found.add((width, group))
    wide = [own for own in found if own[0] > 1 and own[1] > 0]
    tried = {_Lanes(w * n, g): w for w, g in sorted(wide, reverse=True) for n in (1, IN_FLIGHT)}
    return tuple((tried[lanes], lanes) for lanes in sorted(tried, key=lambda own: own.terms))


def _bits(statement: Statement, of: Callable[[Iterable[int]], int]) -> int:
    """Return the bits of an element that a statement reads, those of the least or of the most."""
    return of([access.dtype.bits for access in accesses(statement.value)] or [0])


def _counts(statement: Statement) -> tuple[int, int]:
    """Return the results of an instruction, and the terms of each; 0 where a length is open."""
    kept = names(statement.target)
    results, terms = 1, 1
    for variable in statement.variables:
        size = variable.extent.constant or 0
        if variable.name in kept:
            results *= size
        else:
            terms *= size
    return results, terms


def _reduced(shapes: Shapes, statement: Statement) -> int:
    """Return how many terms the machine's instructions reduce to one result at once, at most."""
    most = 0
    for one in shapes.statements:
        if one.reduction == statement.reduction and one.target.dtype == statement.target.dtype:
            most = max(most, _counts(one)[1])
    return most


@dataclass(frozen=True, slots=True)
class _Left:
    """So many neighbouring terms that are left over; whether they go into the lanes, in groups."""

    start: int
    count: int
    in_lanes: bool
    group: int = 1


def _left(
    statement: Statement, extent: int, width: int, lanes: _Lanes, reduced: int
) -> tuple[_Left, ...]:
    """Return what is left over of a reduction, where instructions combine ``width`` results."""
    rest = extent % lanes.terms
    if not rest:
        return ()
    if OPERATIONS[REDUCTION_OPERATIONS[statement.reduction]].idempotent:
        count = -(-rest // width) * width
        return (_Left(extent - count, count, True),)
    tail = rest % (width * lanes.group)
    if tail > reduced:
        tail = rest % lanes.group
    first = _Left(extent - rest, rest - tail, True, lanes.group)
    last = _Left(extent - tail, tail, False)
    return tuple(one for one in (first, last) if one.count)


def _neighbouring(statement: Statement) -> Iterator[str]:
    """Yield the reduced variables along which neighbours are next to each other in some buffer."""
    kept = names(statement.target)
    last = [access.indices[-1] for access in accesses(statement.value) if access.indices]
    for variable in statement.variables:
        if variable.name in kept:
            continue
        if any(index.coefficient(variable.name) == const(1) for index in last):
            yield variable.name


def _split(
    kernel: Kernel, number: int, name: str, extent: int, lanes: _Lanes, left: Sequence[_Left]
) -> Iterator[Rewriting]:
    statement = kernel.statements[number]
    target, reduction = statement.target, statement.reduction
    steps, rest = divmod(extent, lanes.terms)
    sizes = extents(statement)
    buffer = fresh(kernel, f"{target.buffer}_parts")
    lane, step, group = _names(kernel, statement, name)
    kept = [v.name for v in statement.variables if v.name in names(target)]
    parts = Access(buffer, (*map(var, kept), var(lane)), target.dtype)

    def terms(start: Index, count: int, group_size: int, onto: Access) -> Draft:
        """Return the statement that adds so many groups from a place on, one to each lane."""
        place, added = var(lane) * group_size + start, {lane: const(count)}
        if group_size > 1:
            place, added = place + var(group), added | {group: const(group_size)}
        if start.names:
            added[step] = const(steps)
        return _part(statement, onto, name, place, added)

    drafts = [terms(var(step) * lanes.terms, lanes.count, lanes.group, parts)]
    ends: list[Draft] = []
    for one in left:
        own, onto = (drafts, parts) if one.in_lanes else (ends, target)
        own.append(terms(const(one.start), one.count // one.group, one.group, onto))
    inner = {v: sizes[v] for v in kept} | {lane: const(lanes.count)}
    drafts += [Draft(target, reduction, parts, inner), *ends]
    shape = (*(sizes[v] for v in kept), const(lanes.count))
    with suppress(NoTermError):
        overlap = any(one.start < steps * lanes.terms for one in left)
        lemmas = laws(kernel, statement)
        lemmas += (repeated(kernel, statement),) if overlap else ()
        lemmas += (_positions(name, extent, lanes, left, once=not overlap),)
        more = f" and {rest} more" if rest else ""
        groups = f" groups of {lanes.group}" if lanes.group > 1 else ""
        why = (
            "the kernel permits to reassociate"
            if target.dtype.is_float and reduction in ("+=", "*=")
            else "the same value in any order"
        )
        note = (
            f"{lanes.count} partial results of {print_expr(target)}, each over {steps}{groups} of "
            f"the {extent} values of {name}{more}: {why}"
        )
        local_ = local(buffer, target.dtype, shape)
        yield Rewriting(NAME, number, replaced(kernel, number, drafts, [local_]), lemmas, note)


def _names(kernel: Kernel, statement: Statement, name: str) -> tuple[str, str, str]:
    """Return names for lanes, steps and groups: those of other statements that are split, too."""
    own = {v.name for v in statement.variables} | {e.name for e in kernel.extents}
    taken = own | {b.name for b in kernel.buffers}
    wanted = f"{name}_lane", f"{name}_step", f"{name}_group"
    lane, step, group = (fresh(kernel, w) if w in taken else w for w in wanted)
    return lane, step, group


def _part(
    statement: Statement, parts: Access, name: str, place: Index, added: Mapping[str, Index]
) -> Draft:
    """Return the statement that updates the partial results with the terms at ``place``."""
    value: Expr = substitute_expr(statement.value, {name: place})
    own = {v: e for v, e in extents(statement).items() if v != name}
    return Draft(parts, statement.reduction, value, {**own, **added})


def _positions(name: str, extent: int, lanes: _Lanes, left: Sequence[_Left], once: bool) -> Lemma:
    """Return the lemma that each value of the split variable is one term of one lane of one step,
    or left over.

    The one that the lanes and steps say: no two of them are the same value, and none is outside.
    What is ``left`` over comes ``once``, too, or may be among them.
    """
    steps, rest = divmod(extent, lanes.terms)
    parts = [_Terms(0, steps, lanes.count, lanes.group)]
    parts += [_Terms(one.start, 1, one.count // one.group, one.group) for one in left]
    numbers = ("p", "l", "o", "g", "l2", "o2", "g2")
    lines = [f"(declare-const {n} Int)" for n in numbers]
    found = " ".join(part.inside(*part.of("p")) for part in parts)
    wrong = [f"(and (<= 0 p) (< p {extent}) (not (or {found})))"]
    one, other = ("o", "l", "g"), ("o2", "l2", "g2")
    same = "(and (= l l2) (= o o2) (= g g2))"
    for n, part in enumerate(parts):
        own, place = part.inside(*one), part.place(*one)
        again = f"{own} {part.inside(*other)} (= {place} {part.place(*other)})"
        wrong.append(f"(and {again} (not {same}))")
        wrong.append(f"(and {own} (or (< {place} 0) (>= {place} {extent})))")
        if once:
            wrong += [
                f"(and {own} {before.inside(*other)} (= {place} {before.place(*other)}))"
                for before in parts[:n]
            ]
    lines.append(f"(assert (or {' '.join(wrong)}))")
    more = f", or one of the {rest} after them" if once else f", or one of the last {left[0].count}"
    end = more if rest else ""
    in_groups = f", in groups of {lanes.group}" if lanes.group > 1 else ""
    claim = f"each {name} below {extent} is one of {lanes.count} lanes of one of {steps} steps"
    return Lemma("positions", f"{claim}{in_groups}{end}", "\n".join(lines) + "\n")


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms from ``start`` on: steps of lanes of groups of neighbours, in SMT-LIB."""

    start: int
    steps: int
    lanes: int
    group: int

    def inside(self, step: str, lane: str, term: str) -> str:
        """Return that there are such a step, lane and term of a group."""
        ends = ((step, self.steps), (lane, self.lanes), (term, self.group))
        return f"(and {' '.join(f'(<= 0 {n}) (< {n} {end})' for n, end in ends)})"

    def place(self, step: str, lane: str, term: str) -> str:
        """Return the value of the variable that they are."""
        each = self.lanes * self.group
        return f"(+ {self.start} (* {each} {step}) (* {self.group} {lane}) {term})"

    def of(self, value: str) -> tuple[str, str, str]:
        """Return the step, lane and term of a group that a value is."""
        each, own = self.lanes * self.group, f"(- {value} {self.start})"
        lane = f"(div (mod {own} {each}) {self.group})"
        return f"(div {own} {each})", lane, f"(mod {own} {self.group})"
