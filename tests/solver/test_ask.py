"""Questions to the solver have three answers."""

import subprocess
import sys

from isamap.solver.ask import ask


def test_a_model_names_its_values() -> None:
    answer = ask(["a b", "c"], ["(= (* |a b| |c|) 35)", "(< 1 |a b| |c|)"])
    assert (answer.verdict, answer.values) == ("sat", {"a b": 5, "c": 7})


def test_no_model() -> None:
    assert ask(["a"], ["(< |a| 3)", "(> |a| 2)"]).verdict == "unsat"


def test_division_rounds_down() -> None:
    answer = ask(["a", "b"], ["(= |a| (div (- 7) 2))", "(= |b| (mod (- 7) 2))"])
    assert answer.values == {"a": -4, "b": 1}


def test_an_unanswered_question_is_unknown_and_says_why() -> None:
    cubes = "(= (+ (* |a| |a| |a|) (* |b| |b| |b|) (* |c| |c| |c|)) 114)"
    answer = ask(["a", "b", "c"], [cubes], milliseconds=100)
    assert answer.verdict == "unknown"
    assert answer.reason


def test_reading_simple_kernels_imports_neither_z3_nor_lark() -> None:
    program = (
        "import sys\nfrom isamap.text.load import parse_module\n"
        "parse_module('kernel k(N) { in X : f32[N]  out Y : f32[N]\\n Y[i] = X[i] * 2 }')\n"
        "assert not {'z3', 'lark'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
