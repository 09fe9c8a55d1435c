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
    for name, extent in extents.items():
        for step in _steps(name, schedule):
            lemmas.append(_cut(name, extent, step))
    return tuple(lemmas)


def _steps(name: str, schedule: StatementSchedule) -> tuple[int, ...]:
    """Return the steps into which a variable's range is cut, outermost first."""
    levels = [level.step for level in schedule.levels if level.variable == name]
    return tuple(dict.fromkeys((*levels, _tile(schedule.mapping, name))))


def _tile(mapping: Mapping, name: str) -> int:
    return mapping.tile.get(name, 1)


def _cut(name: str, extent: Index, step: int) -> Lemma:
    """Return that whole steps and a tail contain each iteration once, and nothing else."""
    script = f"""\
(declare-const length Int)
(declare-const |{name}| Int)
(declare-const piece Int)
(declare-const piece2 Int)
(assert (<= 0 length))
(define-fun within ((p Int) (x Int)) Bool
  (and (<= 0 p) (< p (div length {step})) (<= (* {step} p) x) (< x (+ (* {step} p) {step}))))
(define-fun tail ((x Int)) Bool
  (and (<= (* {step} (div length {step})) x)
       (< x (+ (* {step} (div length {step})) (mod length {step})))))
(define-fun inside ((x Int)) Bool (and (<= 0 x) (< x length)))
(assert (or
  (and (inside |{name}|) (not (within (div |{name}| {step}) |{name}|)) (not (tail |{name}|)))
  (and (within piece |{name}|) (within piece2 |{name}|) (not (= piece piece2)))
  (and (within piece |{name}|) (tail |{name}|))
  (and (within piece |{name}|) (not (inside |{name}|)))
  (and (tail |{name}|) (not (inside |{name}|)))))"""
    claim = f"steps of {step} and a tail contain each of the {extent} iterations of {name} once"
    return Lemma("coverage", claim, script)
