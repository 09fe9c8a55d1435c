"""Products of narrow terms are as close to the exact sums as the derived error says."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.arithmetic import declared
from isamap.interp.compare import compare
from isamap.interp.declared import Declared
from isamap.interp.inputs import random_inputs
from isamap.interp.rounding import Values
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.rewrite.apply import rewritings
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.split_terms import split_terms
from tests.profiles import examples
from tests.rewrite.products import Drawn, assert_valid, boxes, buffers, kernel_of

EXACTLY = Declared(wide=True)


def _offered(kernel: Kernel, number: int = 0) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, number, [("split-terms", split_terms)])
    assert found.refused == ()
    return found.proved


def _arrays(kernel: Kernel, seed: int) -> dict[str, Values]:
    """Arrays with all digits, of magnitudes that differ."""
    generator = np.random.default_rng(seed)
    found = {}
    for name, array in random_inputs(kernel, seed=seed).items():
        size = generator.standard_normal(array.shape) * 2.0 ** generator.integers(
            -9, 9, array.shape
        )
        found[name] = size.astype(array.dtype)
    return found


def _assert_within(kernel: Kernel, rewriting: Rewriting, seed: int) -> None:
    """Assert the error bound, with the sum of the magnitudes from the exact interpretation."""
    assert rewriting.error is not None
    arrays = _arrays(kernel, seed)
    result = interpret(rewriting.kernel, arrays)["C"].astype(np.float64)
    exact = interpret(kernel, arrays, arithmetic=EXACTLY)["C"]
    sizes = interpret(kernel, {n: np.abs(a) for n, a in arrays.items()}, arithmetic=EXACTLY)["C"]
    terms = int(np.prod([v.extent.constant or 0 for v in kernel.statements[0].variables]))
    bound = (float(rewriting.error) + (terms + 1) * 2.0**-24) * sizes
    # The magnitudes are summed in float64.
    assert (np.abs(result - exact) <= bound * (1 + 1e-9) + 1e-30).all()
    expected = interpret(kernel, arrays)
    outputs = {"C": interpret(rewriting.kernel, arrays)["C"]}
    assert compare(kernel, arrays, expected, outputs, error=rewriting.error).ok


@st.composite
def _products(draw: st.DrawFn) -> str:
    drawn: Drawn = draw(boxes())
    a = draw(buffers(drawn, "A", "f32", draw(st.sampled_from(["mkr", "km", "mnk"]))))
    kind = draw(st.sampled_from(["f32", "f32", "bf16"]))
    b = draw(buffers(drawn, "B", kind, draw(st.sampled_from(["nkr", "nk", "kr"]))))
    b = b if kind == "f32" else f"f32({b})"
    role = draw(st.sampled_from(["out", "inout"]))
    drawn.lines.append(f"{role} C : f32[{drawn.sizes['m']}, {drawn.sizes['n']}]")
    drawn.used |= {"m", "n"}
    return drawn.text(f"C[m, n] += {a} * {b}", " permit approximate(0.1)")


@given(_products(), st.integers(0, 99))
@examples(1)
def test_sums_of_products_of_terms_are_within_the_stated_error(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    found = _offered(kernel)
    assert len(found) == 3
    errors = [r.error for r in found]
    assert errors == sorted(errors, key=lambda error: -(error or 0))
    for rewriting in found:
        assert_valid(rewriting, kernel)
        if kernel.buffer("A").pad is None and kernel.buffer("B").pad is None:
            _assert_within(kernel, rewriting, seed)
        arrays = random_inputs(kernel, seed=seed)
        expected, outputs = interpret(kernel, arrays), interpret(rewriting.kernel, arrays)
        assert compare(kernel, arrays, expected, outputs, error=rewriting.error).ok


def _gemm(permissions: str, more: str = "", k: int = 64) -> Kernel:
    return kernel_of(f"""kernel gemm(M = 8, N = 8, K = {k}){permissions} {{
      in A : f32[M, K]{more}
      in B : f32[K, N]
      out C : f32[M, N]
      C[m, n] += A[m, k] * B[k, n]
    }}""")


@pytest.mark.parametrize("seed", range(3))
def test_each_term_gains_the_digits_of_the_narrow_type(seed: int) -> None:
    kernel = _gemm(" permit approximate(0.5)")
    arrays = _arrays(kernel, seed)
    exact = interpret(kernel, arrays, arithmetic=EXACTLY)["C"]
    sizes = interpret(kernel, {n: np.abs(a) for n, a in arrays.items()}, arithmetic=EXACTLY)["C"]
    measured = []
    for rewriting in _offered(kernel):
        _assert_within(kernel, rewriting, seed)
        result = interpret(rewriting.kernel, arrays)["C"].astype(np.float64)
        measured.append(float((np.abs(result - exact) / sizes).max()))
    assert measured[0] > 2.0**-13 > measured[1] > 2.0**-21 > measured[2]


@pytest.mark.parametrize(
    ("permitted", "terms"), [("1e-7", 0), ("1e-6", 1), ("5e-5", 2), ("0.0075", 2), ("0.01", 3)]
)
def test_only_what_the_kernel_permits_is_offered(permitted: str, terms: int) -> None:
    kernel = _gemm(f" permit approximate({permitted})")
    found = _offered(kernel)
    assert len(found) == terms
    assert all(r.error is not None and r.error <= Fraction(permitted) for r in found)


@pytest.mark.parametrize(
    "permissions",
    [
        "",
        " permit distribute",
        " permit approximate(0.1) no reassociate",
        " permit approximate(0.1) no finite",
    ],
)
def test_nothing_is_split_without_the_permissions(permissions: str) -> None:
    assert _offered(_gemm(permissions.replace(") no", "), no"))) == ()


def test_infinite_padding_is_not_split() -> None:
    kernel = _gemm(" permit approximate(0.1)", " pad inf")
    assert _offered(kernel) == ()


def test_a_symbolic_sum_has_no_error_bound_but_other_sizes_may_be_symbols() -> None:
    kernel = normal(_gemm(" permit approximate(0.1)"))
    text = """kernel gemm(M, K{}) permit approximate(0.1) {{
      in A : f32[M, K]
      in B : f32[K, 3]
      out C : f32[M, 3]
      C[m, n] += A[m, k] * B[k, n]
    }}"""
    assert _offered(kernel_of(text.format(""))) == ()
    symbolic = kernel_of(text.format(" = 7"))
    arrays = random_inputs(symbolic, {"M": 5})
    for rewriting in _offered(symbolic):
        assert_valid(rewriting, symbolic)
        expected = interpret(symbolic, arrays)["C"]
        np.testing.assert_array_equal(interpret(rewriting.kernel, arrays)["C"], expected)
    assert len(_offered(kernel)) == 3


def test_a_wrong_term_is_found_by_the_bound() -> None:
    kernel = _gemm(" permit approximate(0.1)")
    arrays = _arrays(kernel, 1)
    two = _offered(kernel)[1]
    last = two.kernel.statements[-1]
    cut = replace(two.kernel, statements=tuple(s for s in two.kernel.statements if s != last))
    expected = interpret(kernel, arrays, arithmetic=declared())
    found = compare(kernel, arrays, expected, interpret(cut, arrays), error=two.error)
    assert not found.ok
