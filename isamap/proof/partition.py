"""Every iteration is computed once: how a schedule cuts the range of each variable.

Where the last iterations begin earlier, some are computed twice, and claims say that this does no
harm.
"""

from collections.abc import Iterator
from functools import partial

from isamap.ir.index import Index
from isamap.ir.nodes import Kernel
from isamap.ir.statements import accesses
from isamap.mapping.matching import Mapping
from isamap.proof.claim import Claim, Decision
from isamap.schedule.schedule import Schedule, StatementSchedule
from isamap.solver.lemma import Lemma


def partition_lemmas(schedule: StatementSchedule) -> tuple[Lemma, ...]:
    """Return a claim for each variable and each step that its range is cut into.

    What is cut is a range of any length, the whole one or what an outer step left over, so these
    hold for all extents, and together say that the pieces cover the range once.
    """
    lemmas = []
    extents = {v.name: v.extent for v in schedule.mapping.matching.statement.variables}
    for name, steps in cuts(schedule).items():
        again = [x.step for x in schedule.levels if x.variable == name and x.overlap]
        lemmas += [_cut(name, extents[name], step) for step in steps if step not in again]
        tile = _tile(schedule.mapping, name)
        lemmas += [_overlapped(name, extents[name], step, tile) for step in again]
    return tuple(lemmas)


def repeated_claims(kernel: Kernel, schedule: Schedule, at: int, name: str) -> Iterator[Claim]:
    """Yield that statement ``at`` and what takes its results compute an iteration twice alike.

    ``kernel`` has its extents bound.  Only reading what the same loops write could tell.
    """
    own = schedule.statements[at]
    twice = sorted({level.variable for level in own.levels if level.overlap})
    if not twice:
        return
    statements = [kernel.statements[n] for n in (at, *schedule.followers(at))]
    written = {s.target.buffer for s in statements}
    before = {s.target.buffer for s in kernel.statements[:at]}
    roles = {b.name: b.role for b in kernel.buffers}
    bad = []
    for number, statement in enumerate(statements):
        # What takes results finds them in registers, where they are computed again.
        passed = {s.target.buffer for s in statements[:number]}
        read = {a.buffer for a in accesses(statement.value)} - passed
        for access in (statement.target, *accesses(statement.value)):
            read |= {r.buffer for index in access.indices for r in index.reads}
        bad += sorted(read & written)
        result = statement.target.buffer
        if statement.reduction != "=" and (roles[result] == "inout" or result in before):
            bad.append(result)
    target = statements[0].target
    inner = [n for n, level in enumerate(own.levels) if level.variable in target.names]
    if any(level.variable not in target.names for level in own.levels[: inner[-1]]):
        bad.append(target.buffer)
    text = f"computed twice, iterations of {', '.join(twice)} give the same: none reads a result"
    verdict: Decision = "refuted" if bad else "proved"
    yield Claim(name, "repeated", text, "checker", verdict, detail=", ".join(dict.fromkeys(bad)))


def cuts(schedule: StatementSchedule) -> dict[str, tuple[int, ...]]:
    """Return for each variable the steps into which its range is cut, its tile last."""
    variables = schedule.mapping.matching.statement.variables
    return {v.name: _steps(v.name, schedule) for v in variables}


def _steps(name: str, schedule: StatementSchedule) -> tuple[int, ...]:
    """Return the steps into which a variable's range is cut, outermost first."""
    levels = [level.step for level in schedule.levels if level.variable == name]
    return tuple(dict.fromkeys((*levels, _tile(schedule.mapping, name))))


def _tile(mapping: Mapping, name: str) -> int:
    return mapping.tile.get(name, 1)


def _within(x: str, step: int, piece: str) -> str:
    """Return the term that a whole step, by its number ``piece``, contains iteration ``x``."""
    start = f"(* {step} {piece})"
    there = f"(<= 0 {piece}) (< {piece} (div length {step}))"
    return f"(and {there} (<= {start} {x}) (< {x} (+ {start} {step})))"


def _cut(name: str, extent: Index, step: int) -> Lemma:
    """Return that whole steps and a tail contain each iteration once, and nothing else."""
    x = f"|{name}|"
    whole = f"(* {step} (div length {step}))"
    tail = f"(and (<= {whole} {x}) (< {x} (+ {whole} (mod length {step}))))"
    inside = f"(and (<= 0 {x}) (< {x} length))"

    within = partial(_within, x, step)
    own = within(f"(div {x} {step})")
    lines = [f"(declare-const {n} Int)" for n in ("length", x, "piece", "piece2")]
    lines += [
        "(assert (<= 0 length))",
        "(assert (or",
        f"  (and {inside} (not {own}) (not {tail}))",
        f"  (and {within('piece')} {within('piece2')} (not (= piece piece2)))",
        f"  (and {within('piece')} {tail})",
        f"  (and {within('piece')} (not {inside}))",
        f"  (and {tail} (not {inside}))))",
    ]
    script = "\n".join(lines)
    claim = f"steps of {step} and a tail contain each of the {extent} iterations of {name} once"
    return Lemma("coverage", claim, script)


def _overlapped(name: str, extent: Index, step: int, tile: int) -> Lemma:
    """Return that whole steps and a tail of whole tiles contain each iteration, and nothing else.

    The tail begins earlier, perhaps in what outer steps have cut off before this range.
    """
    x = f"|{name}|"
    whole, rest = f"(* {step} (div length {step}))", f"(mod length {step})"
    back = f"(mod (- {rest}) {tile})"
    tail = f"(and (<= (- {whole} {back}) {x}) (< {x} length))"

    within = partial(_within, x, step)
    lines = [f"(declare-const {n} Int)" for n in ("length", "before", x, "piece")]
    lines += [
        "(assert (<= 0 length))",
        f"(assert (<= {back} (+ before {whole})))",
        "(assert (<= 0 before))",
        "(assert (or",
        f"  (and (<= 0 {x}) (< {x} length) (not {within(f'(div {x} {step})')}) (not {tail}))",
        f"  (and {within('piece')} (not (and (<= 0 {x}) (< {x} length))))",
        f"  (and {tail} (not (and (<= (- before) {x}) (< {x} length))))",
        f"  (not (= 0 (mod (+ {rest} {back}) {tile})))))",
    ]
    claim = (
        f"steps of {step} and a tail that begins earlier, in whole tiles of {tile}, contain each "
        f"of the {extent} iterations of {name}"
    )
    return Lemma("coverage", claim, "\n".join(lines))
