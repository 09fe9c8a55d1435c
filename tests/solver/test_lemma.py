import pytest
import z3

from isamap.solver.lemma import Lemma, Verdict, prove

PREAMBLE = "(declare-const x Int)(declare-const y Int)"


def test_what_holds_is_proved() -> None:
    lemma = Lemma("square", "x*x >= 0", f"{PREAMBLE}(assert (< (* x x) 0))")
    assert prove(lemma) == Verdict("proved")


def test_what_does_not_hold_has_a_counterexample() -> None:
    lemma = Lemma("order", "x >= y if x = 1, y = 2", f"{PREAMBLE}(assert (= x 1))(assert (= y 2))")
    assert prove(lemma) == Verdict("refuted", (("x", "1"), ("y", "2")))


def test_what_takes_too_long_is_unknown() -> None:
    cubes = "(= (+ (* x x x) (* y y y)) (+ 33 (* z z z)))"
    lemma = Lemma("cubes", "no cubes", f"{PREAMBLE}(declare-const z Int)(assert {cubes})")
    verdict = prove(lemma, 200)
    assert verdict.verdict == "unknown"
    assert verdict.reason


def test_a_seed_that_finds_no_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver begins again: of ``6*K*ceil(N/6)``, three of a hundred seeds prove nothing."""
    last = "(* 6 |K| (div (+ |N| 5) 6))"
    names = "".join(f"(declare-const |{name}| Int)" for name in "KNkn")
    ranges = "(assert (<= 1 |N|))(assert (<= 1 |K|))(assert (<= 0 |n|))(assert (<= 0 |k|))"
    inside = "(assert (< |n| (div (+ |N| 5) 6)))(assert (< |k| |K|))"
    past = f"(assert (>= (+ (* 6 |n| |K|) (* 6 |k|) 5) {last}))"
    lemma = Lemma("bounds", "within", names + ranges + inside + past)
    asked: list[int] = []

    def never_at_first(solver: z3.Solver) -> z3.CheckSatResult:
        asked.append(len(asked))
        return z3.unknown if len(asked) < 3 else solver.check()

    monkeypatch.setattr("isamap.solver.lemma.check", never_at_first)
    assert prove(lemma) == Verdict("proved")
    assert len(asked) == 3
