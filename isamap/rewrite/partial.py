"""The rule that reduces in lanes: partial results side by side, and the end of them."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import prod

from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Expr, Kernel, Op, Statement
from isamap.ir.operations import REDUCTION_OPERATIONS
from isamap.ir.printer import print_expr
from isamap.ir.statements import accesses, names, substitute_expr
from isamap.rewrite.arithmetic import NoTermError
from isamap.rewrite.build import Draft, extents, fresh, local, replaced
from isamap.rewrite.laws import laws, may_reorder
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
    """

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = kernel.statements[number]
        if not may_reorder(kernel, statement):
            return
        widths = _widths(shapes, statement)
        for name in _neighbouring(statement):
            extent = extents(statement)[name].constant
            for lanes in widths:
                if extent is not None and extent // lanes >= FEWEST:
                    yield from _split(kernel, number, name, extent, lanes)

    return rule


def _widths(shapes: Shapes, statement: Statement) -> tuple[int, ...]:
    """Return how many results the machine's instructions combine at once, and more in flight."""
    operation = REDUCTION_OPERATIONS[statement.reduction]
    found: set[int] = set()
    for one in shapes.statements:
        root = one.value.op if isinstance(one.value, Op) and one.reduction == "=" else None
        combines = one.reduction == statement.reduction or root == operation
        if combines and one.target.dtype == statement.target.dtype:
            kept = names(one.target)
            sizes = [v.extent.constant for v in one.variables if v.name in kept]
            found.add(prod(size or 0 for size in sizes))
    return tuple(sorted({w * n for w in found if w > 1 for n in (1, IN_FLIGHT)}))


def _neighbouring(statement: Statement) -> Iterator[str]:
    """Yield the reduced variables along which neighbours are next to each other in some buffer."""
    kept = names(statement.target)
    last = [access.indices[-1] for access in accesses(statement.value) if access.indices]
    for variable in statement.variables:
        if variable.name in kept:
            continue
        if any(index.coefficient(variable.name) == const(1) for index in last):
            yield variable.name


def _split(kernel: Kernel, number: int, name: str, extent: int, lanes: int) -> Iterator[Rewriting]:
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
    if rest:
        left = var(lane) + steps * lanes
        drafts.append(_part(statement, parts, name, left, {lane: const(rest)}))
    inner = {v: sizes[v] for v in kept} | {lane: const(lanes)}
    drafts.append(Draft(target, reduction, parts, inner))
    shape = (*(sizes[v] for v in kept), const(lanes))
    with suppress(NoTermError):
        lemmas = (*laws(kernel, statement), _positions(name, extent, lanes))
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


def _positions(name: str, extent: int, lanes: int) -> Lemma:
    """Return the lemma that each value of the split variable is one lane of one step, or left over.

    The one that the lanes and steps say: no two of them are the same value, and none is outside.
    """
    steps, rest = divmod(extent, lanes)
    whole = steps * lanes
    lines = [f"(declare-const {n} Int)" for n in ("p", "l", "o", "l2", "o2", "m")]

    def inside(lane: str, step: str) -> str:
        return f"(and (<= 0 {lane}) (< {lane} {lanes}) (<= 0 {step}) (< {step} {steps}))"

    def place(lane: str, step: str) -> str:
        return f"(+ (* {lanes} {step}) {lane})"

    of_p = f"(mod p {lanes})", f"(div p {lanes})"
    later = f"(and (<= {whole} p) (< p {whole + rest}))"
    missed = f"(and (<= 0 p) (< p {extent}) (not (or {inside(*of_p)} {later})))"
    both = f"{inside('l', 'o')} {inside('l2', 'o2')} (= {place('l', 'o')} {place('l2', 'o2')})"
    twice = f"(and {both} (not (and (= l l2) (= o o2))))"
    beyond = f"(and {inside('l', 'o')} (or (< {place('l', 'o')} 0) (>= {place('l', 'o')} {whole})))"
    left = f"(and (<= 0 m) (< m {rest}) (>= (+ {whole} m) {extent}))"
    lines.append(f"(assert (or {missed} {twice} {beyond} {left}))")
    more = f", or one of the {rest} after them" if rest else ""
    claim = f"each {name} below {extent} is one of {lanes} lanes of one of {steps} steps{more}"
    return Lemma("positions", claim, "\n".join(lines) + "\n")
