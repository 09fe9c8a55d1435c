"""Every iteration is computed once: how a schedule cuts the range of each variable."""

from isamap.ir.index import Index
from isamap.mapping.matching import Mapping
from isamap.schedule.schedule import StatementSchedule
from isamap.solver.lemma import Lemma


def partition_lemmas(schedule: StatementSchedule) -> tuple[Lemma, ...]:
    """Return a claim for each variable and each step that its range is cut into.

    What is cut is a range of any length, the whole one or what an outer step left over, so these
    hold for all extents, and together say that the pieces cover the range once.
    """
    lemmas = []
    extents = {v.name: v.extent for v in schedule.mapping.matching.statement.variables}
    for name, steps in cuts(schedule).items():
        lemmas += [_cut(name, extents[name], step) for step in steps]
    return tuple(lemmas)


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


def _cut(name: str, extent: Index, step: int) -> Lemma:
    """Return that whole steps and a tail contain each iteration once, and nothing else."""
    x = f"|{name}|"
    whole = f"(* {step} (div length {step}))"
    tail = f"(and (<= {whole} {x}) (< {x} (+ {whole} (mod length {step}))))"
    inside = f"(and (<= 0 {x}) (< {x} length))"

    def within(piece: str) -> str:
        start = f"(* {step} {piece})"
        there = f"(<= 0 {piece}) (< {piece} (div length {step}))"
        return f"(and {there} (<= {start} {x}) (< {x} (+ {start} {step})))"

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
