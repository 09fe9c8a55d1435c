"""Equalities that identities and the order of arguments make are shown piece by piece."""

import re

import pytest

from isamap.ir.nodes import Expr
from isamap.ir.printer import print_expr
from isamap.rewrite.apply import prove_once
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.parted import parted
from isamap.solver.lemma import Lemma
from isamap.text.load import parse_module


def value(text: str) -> Expr:
    """Return an expression over floats a, b, c and integers m, n."""
    dtype = "s32" if set(text) & set("mn") else "f32"
    read = re.sub(r"\b[abcmn]\b", r"\g<0>[i]", text)
    (kernel,) = parse_module(
        f"""kernel k {{
          in a : f32[4]  in b : f32[4]  in c : f32[4]  in m : s32[4]  in n : s32[4]
          out y : {dtype}[4]
          y[i] = {read}
        }}"""
    ).kernels
    return kernel.statements[0].value


def texts(left: str, right: str, signed_zeros: bool = False) -> list[tuple[str, str]] | None:
    found = parted(value(left), value(right), signed_zeros)
    return None if found is None else [(print_expr(one), print_expr(other)) for one, other in found]


X, Y = "x:f32[]", "y:f32[]"


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("a", "a * 1.0", [(X, f"{X} * 1.0")]),
        ("a + b", "b * 1.0 + a", [(X, f"{X} * 1.0"), (f"{X} + {Y}", f"{Y} + {X}")]),
        ("a + b", "b + a", [(f"{X} + {Y}", f"{Y} + {X}")]),
        ("a * b - c", "a * b - (0.0 + c)", [(X, f"0.0 + {X}")]),
        ("(a + b) / c", "(a + b) * 1.0 / c", None),
        ("a + (b + c)", "(a + b) + c", None),
        ("a * b", "a * c", None),
        (
            "m + n",
            "n + m * 1",
            [("x:s32[]", "x:s32[] * 1"), ("x:s32[] + y:s32[]", "y:s32[] + x:s32[]")],
        ),
    ],
)
def test_pairs(left: str, right: str, pairs: list[tuple[str, str]] | None) -> None:
    assert texts(left, right) == pairs


def test_what_tells_zeros_apart_is_looked_into_where_they_are() -> None:
    assert texts("a / c", "a / (c + 0.0)") is None
    assert texts("a / c", "a / (c + 0.0)", signed_zeros=True) == [(X, f"{X} + 0.0")]


@pytest.mark.parametrize(
    ("left", "right", "holds"),
    [
        ("a + b", "b * 1.0 + a", True),
        ("abs(a)*(b - c)", "(b - c*1.0)*abs(a)", True),
        ("a + b", "b * 2.0 + a", False),
        ("a - b", "(a + 0.0) - b * 1.0", True),
    ],
)
def test_pairs_are_proved_where_the_whole_holds(left: str, right: str, holds: bool) -> None:
    pairs = parted(value(left), value(right), False)
    assert pairs
    verdict = prove_once(equal("test", "", pairs))
    assert verdict.verdict == ("proved" if holds else "refuted")


def test_names_do_not_matter_but_to_counterexamples() -> None:
    def lemma(name: str) -> Lemma:
        script = (
            f"(declare-const |{name}| Int)\n(assert (not (= |{name}| 7)))\n(assert (= 3 |{name}|))"
        )
        return Lemma("test", name, script)

    for name in ("T1[i, j]", "0", "other"):
        assert prove_once(lemma(name)).counterexample == ((name, "3"),)
