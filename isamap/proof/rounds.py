"""Statements with one outermost loop: what they share comes in the order of the statements.

This reads statements and schedules as data; it shares no code with the lowering that joins the
loops.  As written, all of one statement comes before all of the next.  In rounds, an iteration of
the earlier one comes after one of the later one if its round is a later one, so whatever two
iterations share must not lie in rounds of that order.
"""

from collections.abc import Iterator

from isamap.ir.index import Index, var
from isamap.ir.nodes import Kernel, Statement
from isamap.proof.claim import Claim, Obligation, Open
from isamap.proof.fusion import domain, meets, members_of
from isamap.proof.walk import Terms, conjunction, disjunction
from isamap.schedule.schedule import Schedule
from isamap.solver.lemma import Lemma


def round_obligations(kernel: Kernel, schedule: Schedule, number: int) -> Iterator[Obligation]:
    """Yield what is claimed of statement ``number``, whose outermost loop is another one's.

    ``kernel`` has its extents bound.
    """
    first = schedule.statements[number].along
    assert first is not None
    name = kernel.statements[number].target.buffer
    source = kernel.statements[first].target.buffer
    group = [n for n in (first, *schedule.companions(first)) if n < number]
    alike = _is_alike(schedule, first, number)
    text = f"{name} has as many rounds as {source}"
    yield Claim(name, "coverage", text, "checker", "proved" if alike else "refuted")
    own = in_rounds(kernel, schedule, number)
    step = schedule.statements[number].levels[0].step if alike else 1
    before = [(in_rounds(kernel, schedule, n), n) for n in group]
    claim = f"what {name} shares with earlier statements of its rounds comes in their order"
    if own is None or any(one is None for one, _ in before):
        yield Claim(name, "order", claim, "checker", "refuted")
        return
    terms = Terms(kernel.symbols, kernel)
    cases = []
    for earlier, n in before:
        length = schedule.statements[n].levels[0].step
        for one, there in earlier or ():
            for other, here in own:
                meeting = meets(terms, one, other)
                if meeting != "false":
                    late = f"(> {terms.term(there // length)} {terms.term(here // step)})"
                    inside = [*domain(terms, one), *domain(terms, other), meeting, late]
                    cases.append(conjunction(inside))
    yield Open(name, Lemma("order", claim, terms.script(disjunction(cases), ())))


def _is_alike(schedule: Schedule, first: int, number: int) -> bool:
    """Return whether the outermost loops of two statements go round as often.

    They do not where one has whole rounds only and the other has two more, or where one has part
    of a round and another one comes after that: what is left over is done once, after the loop.
    """
    loops: list[tuple[int, Index]] = []
    for n in (first, number):
        own = schedule.statements[n]
        if (
            not own.levels
            or own.levels[0].parallel != schedule.statements[first].levels[0].parallel
        ):
            return False
        level = own.levels[0]
        variables = own.mapping.matching.statement.variables
        extent = next(v.extent for v in variables if v.name == level.variable)
        loops.append((level.step, extent))
    (step, extent), (other, length) = loops
    if extent.constant is None or length.constant is None:
        return step == other and extent == length
    whole = min(extent.constant // step, length.constant // other)
    return all(e <= (whole + 1) * s for s, e in ((step, extent.constant), (other, length.constant)))


def in_rounds(
    kernel: Kernel, schedule: Schedule, root: int
) -> list[tuple[Statement, Index]] | None:
    """Return a statement and those in its registers, each with what tells its round.

    None if that is not known.
    """
    levels = schedule.statements[root].levels
    if not levels:
        return None
    found = members_of(kernel, [root, *schedule.followers(root)])
    name = f"{levels[0].variable} {root}"
    if len(found) == 1:
        return [(found[0].statement, var(name))]
    points = [member.point for member in found]
    at = next((d for d, i in enumerate(points[0] or ()) if i.name == name), None)
    if at is None or any(point is None for point in points):
        return None
    return [(m.statement, m.point[at]) for m in found if m.point is not None]
