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
