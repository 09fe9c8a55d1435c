"""The rule that reduces in lanes: partial results side by side, and the end of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

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
    instructions.  The same holds for every reduction whose operation is associative and
    commutative; sums and products of floats need the permission to reassociate.

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
                if extent is not None and extent // lanes >= FEWEST:
                    left = _left(statement, extent, width, lanes, reduced)
                    yield from _split(kernel, number, name, extent, lanes, left)

    return rule


def _widths(shapes: Shapes, statement: Statement) -> tuple[tuple[int, int], ...]:
    """Return how many results the machine's instructions combine at once, each with the lanes that
    are tried for it: as many, and more in flight.
    """
    operation = REDUCTION_OPERATIONS[statement.reduction]
    found: set[int] = set()
    for one in shapes.statements:
        root = one.value.op if isinstance(one.value, Op) and one.reduction == "=" else None
        combines = one.reduction == statement.reduction or root == operation
        if combines and one.target.dtype == statement.target.dtype:
            kept = names(one.target)
            sizes = [v.extent.constant for v in one.variables if v.name in kept]
            found.add(prod(size or 0 for size in sizes))
    tried = {w * n: w for w in sorted(found, reverse=True) if w > 1 for n in (1, IN_FLIGHT)}
    return tuple((tried[lanes], lanes) for lanes in sorted(tried))


def _reduced(shapes: Shapes, statement: Statement) -> int:
    """Return how many terms the machine's instructions reduce to one result at once, at most."""
    most = 0
    for one in shapes.statements:
        if one.reduction == statement.reduction and one.target.dtype == statement.target.dtype:
            kept = names(one.target)
            sizes = [v.extent.constant for v in one.variables if v.name not in kept]
            most = max(most, prod(size or 0 for size in sizes))
    return most


@dataclass(frozen=True, slots=True)
class _Left:
    """So many neighbouring terms that are left over, and whether they go into the lanes."""

    start: int
    count: int
    in_lanes: bool


def _left(
    statement: Statement, extent: int, width: int, lanes: int, reduced: int
) -> tuple[_Left, ...]:
    """Return what is left over of a reduction, where instructions combine ``width`` results."""
    rest = extent % lanes
    if not rest:
        return ()
    if OPERATIONS[REDUCTION_OPERATIONS[statement.reduction]].idempotent:
        count = -(-rest // width) * width
        return (_Left(extent - count, count, True),)
    tail = rest % width
    if not tail or tail > reduced:
        return (_Left(extent - rest, rest, True),)
    last = _Left(extent - tail, tail, False)
    return (_Left(extent - rest, rest - tail, True), last) if tail < rest else (last,)


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
    kernel: Kernel, number: int, name: str, extent: int, lanes: int, left: Sequence[_Left]
) -> Iterator[Rewriting]:
    statement = kernel.statements[number]
    target, reduction = statement.target, statement.reduction
    steps, rest = divmod(extent, lanes)
    sizes = extents(statement)
    buffer = fresh(kernel, f"{target.buffer}_parts")
    lane, step = _names(kernel, statement, name)
    kept = [v.name for v in statement.variables if v.name in names(target)]
    parts = Access(buffer, (*map(var, kept), var(lane)), target.dtype)
    place = var(step) * lanes + var(lane)
    drafts = [_part(statement, parts, name, place, {lane: const(lanes), step: const(steps)})]
    ends: list[Draft] = []
    for one in left:
        at, added = var(lane) + one.start, {lane: const(one.count)}
        own = drafts if one.in_lanes else ends
        own.append(_part(statement, parts if one.in_lanes else target, name, at, added))
    inner = {v: sizes[v] for v in kept} | {lane: const(lanes)}
    drafts += [Draft(target, reduction, parts, inner), *ends]
    shape = (*(sizes[v] for v in kept), const(lanes))
    with suppress(NoTermError):
        overlap = any(one.start < steps * lanes for one in left)
        lemmas = laws(kernel, statement)
        lemmas += (repeated(kernel, statement),) if overlap else ()
        lemmas += (_positions(name, extent, lanes, left, once=not overlap),)
        more = f" and {rest} more" if rest else ""
        why = (
            "the kernel permits to reassociate"
            if target.dtype.is_float and reduction in ("+=", "*=")
            else "the same value in any order"
        )
        note = (
            f"{lanes} partial results of {print_expr(target)}, each over {steps} of the {extent} "
            f"values of {name}{more}: {why}"
        )
        local_ = local(buffer, target.dtype, shape)
        yield Rewriting(NAME, number, replaced(kernel, number, drafts, [local_]), lemmas, note)


def _names(kernel: Kernel, statement: Statement, name: str) -> tuple[str, str]:
    """Return names for the lanes and the steps: those of other statements that are split, too."""
    own = {v.name for v in statement.variables} | {e.name for e in kernel.extents}
    taken = own | {b.name for b in kernel.buffers}
    wanted = f"{name}_lane", f"{name}_step"
    lane, step = (fresh(kernel, w) if w in taken else w for w in wanted)
    return lane, step


def _part(
    statement: Statement, parts: Access, name: str, place: Index, added: Mapping[str, Index]
) -> Draft:
    """Return the statement that updates the partial results with the terms at ``place``."""
    value: Expr = substitute_expr(statement.value, {name: place})
    own = {v: e for v, e in extents(statement).items() if v != name}
    return Draft(parts, statement.reduction, value, {**own, **added})


def _positions(name: str, extent: int, lanes: int, left: Sequence[_Left], once: bool) -> Lemma:
    """Return the lemma that each value of the split variable is one lane of one step, or left over.

    The one that the lanes and steps say: no two of them are the same value, and none is outside.
    What is ``left`` over comes ``once``, too, or may be among them.
    """
    steps, rest = divmod(extent, lanes)
    whole = steps * lanes
    lines = [f"(declare-const {n} Int)" for n in ("p", "l", "o", "l2", "o2", "m")]

    def inside(lane: str, step: str) -> str:
        return f"(and (<= 0 {lane}) (< {lane} {lanes}) (<= 0 {step}) (< {step} {steps}))"

    def place(lane: str, step: str) -> str:
        return f"(+ (* {lanes} {step}) {lane})"

    def among(value: str, one: _Left) -> str:
        return f"(and (<= {one.start} {value}) (< {value} {one.start + one.count}))"

    of_p = f"(mod p {lanes})", f"(div p {lanes})"
    later = [among("p", one) for one in left]
    found = " ".join([inside(*of_p), *later])
    missed = f"(and (<= 0 p) (< p {extent}) (not (or {found})))"
    both = f"{inside('l', 'o')} {inside('l2', 'o2')} (= {place('l', 'o')} {place('l2', 'o2')})"
    twice = [f"(and {both} (not (and (= l l2) (= o o2))))"]
    if once:
        twice += [f"(and {among('p', one)} (< p {whole}))" for one in left]
        twice += [f"(and {a} {b})" for n, a in enumerate(later) for b in later[:n]]
    beyond = [
        f"(and {inside('l', 'o')} (or (< {place('l', 'o')} 0) (>= {place('l', 'o')} {whole})))"
    ]
    beyond += [f"(and {among('m', one)} (or (< m 0) (>= m {extent})))" for one in left]
    lines.append(f"(assert (or {' '.join((missed, *twice, *beyond))}))")
    more = f", or one of the {rest} after them" if once else f", or one of the last {left[0].count}"
    end = more if rest else ""
    claim = f"each {name} below {extent} is one of {lanes} lanes of one of {steps} steps{end}"
    return Lemma("positions", claim, "\n".join(lines) + "\n")
