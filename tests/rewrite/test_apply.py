"""What the solver does not prove is not offered."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Access, Expr, Kernel, Literal, Op
from isamap.ir.printer import print_kernel
from isamap.rewrite.apply import rewritings
from isamap.rewrite.arithmetic import Model, equal
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma, prove
from isamap.text.load import parse_module


def _kernel(text: str) -> Kernel:
    (kernel,) = parse_module(text).kernels
    return kernel


def _sum() -> Kernel:
    return _kernel("kernel k { in X : s32[4, 5] out Y : s32[4] Y[i] += X[i, j] }")


def _times(factor: str) -> tuple[Literal, Op, Expr]:
    value = _sum().statements[0].value
    literal = Literal(factor, value.dtype)
    return literal, Op("*", (value, literal), value.dtype), value


@pytest.mark.parametrize(("factor", "offered"), [("1", True), ("2", False)])
def test_a_rule_with_a_wrong_lemma_is_refused(factor: str, offered: bool) -> None:
    _, product, value = _times(factor)

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        statement = replace(kernel.statements[number], value=product)
        changed = replace(kernel, statements=(statement,))
        lemma = equal("factor", f"x * {factor} = x", [(product, value)])
        yield Rewriting("factor", number, changed, (lemma,), "")

    found = rewritings(_sum(), 0, [("factor", rule)])
    assert len(found.proved) == offered
    assert [r.verdict.verdict for r in found.refused] == ([] if offered else ["refuted"])


def test_what_the_solver_leaves_open_is_refused() -> None:
    cubes = "(declare-const x Int) (declare-const y Int) (declare-const z Int)"
    hard = f"{cubes} (assert (= (+ (* x x x) (* y y y) (* z z z)) 114))"

    def rule(kernel: Kernel, number: int) -> Iterator[Rewriting]:
        yield Rewriting("hard", number, kernel, (Lemma("hard", "no cubes", hard),), "")

    found = rewritings(_sum(), 0, [("hard", rule)])
    assert found.proved == ()
    assert found.refused[0].verdict.verdict == "unknown"
    assert "not proved" in found.refused[0].text


@pytest.mark.parametrize("dtype", ["f16", "bf16", "s16", "u8"])
@pytest.mark.parametrize("model", ["bits", "reals"])
def test_laws_hold_in_the_models_in_which_they_hold(dtype: str, model: Model) -> None:
    own = DTYPES[dtype]
    x, y, z = (Access(name, (), own) for name in "xyz")

    def op(name: str, *args: Expr) -> Op:
        return Op(name, args, own)

    exact = not own.is_float
    commuted = equal("", "", [(op("*", x, y), op("*", y, x))], "reals")
    assert prove(commuted).verdict == "proved"
    if model == "reals" or exact:
        law = [(op("*", op("+", x, y), z), op("+", op("*", x, z), op("*", y, z)))]
        assert prove(equal("", "", law, model)).verdict == "proved"
    wrong = [(op("*", op("+", x, y), z), op("+", op("*", x, z), y))]
    # A busy machine may need longer than what users wait for.
    assert prove(equal("", "", wrong, model), 60_000).verdict == "refuted"


def test_infinities_and_nan_count_where_they_may_occur() -> None:
    x = Access("x", (), DTYPES["f32"])
    nothing = Literal("0.0", x.dtype)
    law = [(Op("*", (x, nothing), x.dtype), nothing)]
    assert prove(equal("", "", law, "reals", finite=True)).verdict == "proved"
    assert prove(equal("", "", law, "reals", finite=False)).verdict == "refuted"


def test_a_normal_kernel_parses_and_says_its_ranges() -> None:
    kernel = _kernel(
        "kernel k(N = 4) { in X : s32[N, 5] local T : s32[N] out Y : s32[3]\n"
        "for j in 1..5\nT[i] += X[i, j]\nY[i] = T[i + 1] }"
    )
    own = normal(kernel)
    (read,) = parse_module(print_kernel(own)).kernels
    assert read.statements == own.statements
    assert [r.name for r in own.ranges] == ["i", "j", "i2"]
