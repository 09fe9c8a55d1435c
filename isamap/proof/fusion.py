"""Statements that are computed in another one's registers: no conflict changes its order.

This reads statements and schedules as data; it shares no code with the lowering that fuses them.
As written, all of one statement comes before all of the next.  Fused, the *point* of an iteration,
which is the element of the root's result that it belongs to, comes first, in an order of which
nothing is known, and the statements follow each other at each point.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from isamap.ir.index import Index, var
from isamap.ir.nodes import Access, Kernel, Statement
from isamap.ir.statements import accesses, substitute, zero_based
from isamap.proof.claim import Claim, Obligation, Open
from isamap.proof.walk import Terms, conjunction, disjunction
from isamap.schedule.schedule import Schedule
from isamap.solver.lemma import Lemma

Point = tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    """A statement of a fused group, and the point of each of its iterations.

    ``point`` is None if the statement uses results of several points, or if which is not plain.
    """

    number: int
    statement: Statement
    point: Point | None


def fusion_obligations(kernel: Kernel, schedule: Schedule, number: int) -> Iterator[Obligation]:
    """Yield what is claimed of statement ``number``, which is computed in another one's registers.

    ``kernel`` has its extents bound.
    """
    root = schedule.statements[number].within
    assert root is not None
    group = [n for n in (root, *schedule.followers(root)) if n <= number]
    members = members_of(kernel, group)
    name = kernel.statements[number].target.buffer
    source = kernel.statements[root].target.buffer
    own = members[-1]
    text = f"the iterations of {name} are the elements of {source}, each belongs to its own"
    once = own.point is not None and _is_one_to_one(members[0].statement, own)
    yield Claim(name, "coverage", text, "checker", "proved" if once else "refuted")
    if not once:
        return
    text = f"each result of {source} is complete before it leaves its register"
    whole = _is_complete(schedule, root)
    yield Claim(name, "coverage", text, "checker", "proved" if whole else "refuted")
    yield Open(name, _order(kernel, members, root))


def members_of(kernel: Kernel, group: list[int]) -> list[_Member]:
    """Return the statements of a group with their points, each in names of its own."""
    members: list[_Member] = []
    for number in group:
        statement = _renamed(zero_based(kernel.statements[number]), number)
        point = statement.target.indices if not members else _point(statement, members)
        members.append(_Member(number, statement, point))
    return members


def _renamed(statement: Statement, number: int) -> Statement:
    names = {v.name: var(f"{v.name} {number}") for v in statement.variables}
    moved = substitute(statement, names)
    variables = tuple(replace(v, name=f"{v.name} {number}") for v in statement.variables)
    return Statement(moved.target, moved.reduction, moved.value, variables, statement.span)


def _point(statement: Statement, before: list[_Member]) -> Point | None:
    """Return the point whose results a statement uses, None if it is not one."""
    found: set[Point] = set()
    for access in accesses(statement.value):
        makers = [m for m in before if m.statement.target.buffer == access.buffer]
        if not makers:
            continue
        maker = makers[-1]
        values = {
            index.name: at
            for index, at in zip(maker.statement.target.indices, access.indices, strict=True)
            if index.name is not None
        }
        used = frozenset().union(*(index.names for index in maker.point or ()))
        if maker.point is None or not used <= values.keys():
            return None
        found.add(tuple(index.substitute(values) for index in maker.point))
    return found.pop() if len(found) == 1 else None


def _is_complete(schedule: Schedule, root: int) -> bool:
    """Return whether no loop over a reduction is outside a loop over the root's results."""
    own = schedule.statements[root]
    target = own.mapping.matching.statement.target
    used = frozenset().union(*(index.names for index in target.indices))
    inside = [level.variable in used for level in own.levels]
    return inside == sorted(inside, reverse=True)


# --- the order ----------------------------------------------------------------------------------
def _is_one_to_one(root: Statement, own: _Member) -> bool:
    """Return whether the iterations of a statement are the elements of the root's result."""
    ends = {v.name: v.extent for v in root.variables}
    left = {v.name: v.extent for v in own.statement.variables}
    for index, at in zip(root.target.indices, own.point or (), strict=True):
        if not index.names and index == at:
            continue
        if index.name is None or at.name is None:
            return False
        if left.pop(at.name, None) != ends[index.name]:
            return False
    return not left


def _order(kernel: Kernel, members: list[_Member], root: int) -> Lemma:
    """Return that nothing which conflicts with the last member comes before it now, or after it.

    Two iterations conflict if one writes what the other reads or writes.
    """
    *before, own = members
    terms = Terms(kernel.symbols, kernel)
    group = {member.number for member in members}
    between = [
        _Member(n, _renamed(zero_based(kernel.statements[n]), n), None)
        for n in range(root + 1, own.number)
        if n not in group
    ]
    cases = []
    for other in (*before, *between):
        meeting = meets(terms, other.statement, own.statement)
        if meeting == "false":
            continue
        inside = [*domain(terms, other.statement), *domain(terms, own.statement), meeting]
        if other.point is not None and own.point is not None:
            pairs = zip(other.point, own.point, strict=True)
            same = [f"(= {terms.term(one)} {terms.term(two)})" for one, two in pairs]
            inside.append(f"(not {conjunction(same)})")
        cases.append(conjunction(inside))
    name = own.statement.target.buffer
    claim = f"whatever {name} reads and writes comes in the order of the statements"
    return Lemma("order", claim, terms.script(disjunction(cases), ()))


def domain(terms: Terms, statement: Statement) -> list[str]:
    """Return the ranges of a statement's variables."""
    terms.names.update(dict.fromkeys(v.name for v in statement.variables))
    return [
        f"(and (<= 0 |{v.name}|) (< |{v.name}| {terms.term(v.extent)}))"
        for v in statement.variables
    ]


def meets(terms: Terms, one: Statement, other: Statement) -> str:
    """Return that two iterations touch one element, which one of them writes."""
    cases = []
    for (first, writes), (second, too) in product(_touches(one), _touches(other)):
        if first.buffer == second.buffer and (writes or too):
            pairs = zip(first.indices, second.indices, strict=True)
            cases.append(conjunction([f"(= {terms.term(i)} {terms.term(j)})" for i, j in pairs]))
    return disjunction(cases)


def _touches(statement: Statement) -> Iterator[tuple[Access, bool]]:
    """Yield the elements that an iteration reads, and the one that it writes."""
    yield statement.target, True
    for access in (statement.target, *accesses(statement.value)):
        if access is not statement.target:
            yield access, False
        for index in access.indices:
            for read in index.reads:
                yield Access(read.buffer, read.indices, access.dtype), False
