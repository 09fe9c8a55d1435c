"""Float steps are listed, and the bound of a sum holds for sums in any order."""

import random
from fractions import Fraction

import numpy as np
import pytest

from isamap.ir.dtype import DTYPES
from isamap.ir.index import const
from isamap.proof.roundings import rounding_steps, sum_bound
from tests.proof.samples import kernel


def listed(value: str, result: str = "f32") -> list[str]:
    found = kernel(f"""kernel k(N = 8) {{
      in A : bf16[N]  in B : bf16[N]  in F : f32[N]  in I : s32[N]  in S : s16[N]
      out Y : {result}[N]
      Y[n] = {value}
    }}""")
    return [claim.claim for claim in rounding_steps(found.statements[0], "Y")]


@pytest.mark.parametrize(
    ("value", "result", "steps"),
    [
        ("f32(A[n]) * f32(B[n])", "f32", ""),  # 8 + 8 significant bits
        ("f32(A[n]) * F[n]", "f32", "* to f32"),
        ("bf16(max(F[n], 0))", "bf16", "conversion to bf16"),
        ("exp(F[n] + f32(I[n]))", "f32", "conversion to f32, + to f32, exp to f32"),
        ("-abs(F[n] - f32(S[n]))", "f32", "- to f32"),
        ("f16(A[n])", "f16", "conversion to f16"),  # fewer exponents
    ],
)
def test_what_rounds_is_listed(value: str, result: str, steps: str) -> None:
    text = f"an iteration rounds at: {steps}" if steps else "no step of an iteration rounds"
    assert listed(value, result) == [text]


def test_integers_do_not_round() -> None:
    assert listed("I[n] * I[n]", "s32") == []


def test_sums_in_any_order_stay_within_the_bound() -> None:
    """Summed in random trees, at a length at which f16 shows its roundings."""
    assert "g = 40 * 2^-11" in sum_bound(DTYPES["f16"], const(40))
    g = 40 * DTYPES["f16"].epsilon
    choose, worst = random.Random(1), Fraction(0)
    for _ in range(50):
        terms = [np.float16(choose.uniform(-1, 1)) for _ in range(40)]
        exact = sum(Fraction(float(t)) for t in terms)
        magnitudes = sum(abs(Fraction(float(t))) for t in terms)
        while len(terms) > 1:
            one, other = (terms.pop(choose.randrange(len(terms))) for _ in range(2))
            terms.append(np.float16(one + other))
        worst = max(worst, abs(Fraction(float(terms[0])) - exact) / magnitudes)
    assert 0 < worst <= g / (1 - g)
