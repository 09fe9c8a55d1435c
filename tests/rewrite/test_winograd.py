"""Convolutions in transformed tiles: equal in exact arithmetic, close in floats."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.interp.compare import compare
from isamap.interp.declared import Declared
from isamap.interp.inputs import random_inputs
from isamap.interp.rounding import Values
from isamap.interp.run import interpret
from isamap.ir.index import ceil_div
from isamap.ir.nodes import Kernel, Op
from isamap.rewrite.apply import rewritings
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.tiles import Tiled
from isamap.rewrite.toom_cook import transforms
from isamap.rewrite.windows import convolutions
from isamap.rewrite.winograd import error_bound, winograd
from tests.profiles import examples
from tests.rewrite.products import assert_valid, kernel_of

EXACTLY = Declared(wide=True)


def _offered(kernel: Kernel, number: int = 0) -> tuple[Rewriting, ...]:
    found = rewritings(kernel, number, [("winograd", winograd)])
    assert found.refused == ()
    return found.proved


def _normal_arrays(kernel: Kernel, seed: int, symbols: dict[str, int]) -> dict[str, Values]:
    generator = np.random.default_rng(seed)
    return {
        name: np.asarray(generator.standard_normal(array.shape)).astype(array.dtype)
        for name, array in random_inputs(kernel, symbols, seed).items()
    }


def _assert_close(
    kernel: Kernel, rewriting: Rewriting, seed: int, symbols: dict[str, int] | None = None
) -> None:
    """Assert equality in 53 bits, and in the declared types what the comparison derives."""
    assert_valid(rewriting, kernel)
    arrays = _normal_arrays(kernel, seed, symbols or {})
    exact = interpret(kernel, arrays, symbols, EXACTLY)
    wide = interpret(rewriting.kernel, arrays, symbols, EXACTLY)
    expected = interpret(kernel, arrays, symbols)
    outputs = interpret(rewriting.kernel, arrays, symbols)
    found = compare(
        kernel,
        arrays,
        expected,
        outputs,
        symbols,
        computed=rewriting.kernel,
        error=rewriting.error,
    )
    assert found.ok, found.text
    scale = max(1.0, *(float(np.abs(a).max()) for a in exact.values()))
    # Constants such as 1/6 are rounded to 24 bits in the text; the rest is exact to 53.
    precision = 2e-4 if rewriting.error else 1e-11
    for buffer in kernel.buffers:
        if buffer.role in ("out", "inout"):
            gap = np.abs(wide[buffer.name] - exact[buffer.name]).max()
            assert gap <= precision * scale


@pytest.mark.parametrize("taps", range(2, 6))
@pytest.mark.parametrize("outputs", range(1, 5))
def test_the_matrices_compute_convolutions_exactly(outputs: int, taps: int) -> None:
    found = transforms(outputs, taps)
    for i in range(outputs):
        for j in range(taps):
            for place in range(found.products):
                products = zip(found.output[i], found.window, found.data, strict=True)
                total = sum((a * g[j] * b[place] for a, g, b in products), Fraction(0))
                assert total == (place == i + j)


@st.composite
def _convolutions(draw: st.DrawFn) -> str:
    """Convolutions over one or two windows, of random layouts, pitches, directions, padding."""
    slides = draw(st.integers(1, 2))
    sizes = {"c": draw(st.integers(1, 3)), "k": draw(st.integers(1, 3))}
    data, window, target = {}, {}, {}
    padded = draw(st.booleans())
    for p, r in [("p", "r"), ("q", "s")][:slides]:
        sizes[p], sizes[r] = draw(st.integers(2, 9)), draw(st.sampled_from([2, 3, 3, 3]))
        pitch = draw(st.sampled_from([1, 1, 1, 2]))
        reverse = draw(st.booleans())
        shift = draw(st.integers(-1, 0)) if padded else draw(st.integers(0, 1))
        reach = pitch * (sizes[p] + sizes[r] - 2) + 1
        start = shift + (pitch * (sizes[r] - 1) if reverse else 0)
        index = f"{pitch}*{p} {'-' if reverse else '+'} {pitch}*{r} + {start}"
        data[p] = (index, max(1, reach + shift - (1 if padded else 0)))
        window[r] = (draw(st.sampled_from([r, f"{sizes[r] - 1} - {r}"])), sizes[r])
        target[p] = (p, sizes[p])
    grouped = draw(st.booleans())
    for v in ("c", "k"):
        data[v] = (v, sizes[v])
        window[v] = (v, sizes[v])
        target[v] = (v, sizes[v])
    if not grouped:
        del data["k"], target["c"]
    texts = {}
    for name, found in (("X", data), ("W", window), ("Y", target)):
        order = draw(st.permutations(list(found)))
        texts[name] = (
            f"[{', '.join(str(found[v][1]) for v in order)}]",
            f"{name}[{', '.join(found[v][0] for v in order)}]",
        )
    pad = f" pad {draw(st.sampled_from(['0', '0.5', '-3']))}" if padded else ""
    role = draw(st.sampled_from(["out", "inout"]))
    ranges = "\n".join(f"for {v} in 0..{n}" for v, n in sizes.items())
    factors = draw(st.permutations([texts["X"][1], texts["W"][1]]))
    return f"""kernel convolution permit distribute {{
      in X : f32{texts["X"][0]}{pad}
      const W : f32{texts["W"][0]}
      {role} Y : f32{texts["Y"][0]}
      {ranges}
      {texts["Y"][1]} += {factors[0]} * {factors[1]}
    }}"""


@given(_convolutions(), st.integers(0, 99))
@examples(1)
def test_random_convolutions_are_computed_in_tiles(text: str, seed: int) -> None:
    kernel = kernel_of(text)
    found = _offered(kernel)
    least = min(v.extent.constant or 0 for v in kernel.statements[0].variables if v.name in "pq")
    assert len(found) >= (least >= 2) + (least >= 4)
    for rewriting in found:
        _assert_close(kernel, rewriting, seed)


CONVOLUTION = """kernel convolution({sizes}C = 6, K = 5) permit {permit} {{
  in X : f32[{data}]{pad}
  const W : f32[3, 3, C, K]
  out Y : f32[P, Q, K]
  Y[p, q, k] += X[p + r{shift}, q + s{shift}, c] * W[r, s, c, k]
}}"""


def _convolution(
    sizes: str = "P = 9, Q = 7, ", permit: str = "distribute", pad: str | None = None
) -> Kernel:
    if pad is None:
        text = CONVOLUTION.format(
            sizes=sizes, data="P + 2, Q + 2, C", pad="", shift="", permit=permit
        )
    else:
        text = CONVOLUTION.format(
            sizes=sizes, data="P, Q, C", pad=f" pad {pad}", shift=" - 1", permit=permit
        )
    return kernel_of(text)


@pytest.mark.parametrize("pad", [None, "0"])
@pytest.mark.parametrize("seed", range(2))
def test_errors_are_within_the_stated_bound(pad: str | None, seed: int) -> None:
    kernel = _convolution(pad=pad)
    own = normal(kernel)
    found = _offered(kernel)
    assert ["F(2x2, 3x3)" in found[0].note, "F(4x4, 3x3)" in found[1].note] == [True, True]
    for rewriting, outputs in zip(found, (2, 4), strict=True):
        _assert_close(kernel, rewriting, seed)
        (reading,) = convolutions(own.statements[0], 2)
        tiled = tuple(
            Tiled(s, transforms(outputs, s.taps), ceil_div(s.size, outputs)) for s in reading.slides
        )
        bound = error_bound(own, 0, reading, tiled)
        assert bound is not None
        arrays = _normal_arrays(kernel, seed, {})
        exact = interpret(kernel, arrays, arithmetic=EXACTLY)["Y"]
        error = np.abs(interpret(rewriting.kernel, arrays)["Y"].astype(np.float64) - exact).max()
        sizes = [float(np.abs(arrays[name]).max()) for name in ("X", "W")]
        assert 0 < error <= float(bound.relative) * bound.terms * sizes[0] * sizes[1]
        assert f"{float(bound.relative):.2g}" in rewriting.note


def test_small_tiles_of_data_on_a_grid_are_exact() -> None:
    kernel = _convolution(pad="0")
    (two, _) = _offered(kernel)
    arrays = random_inputs(kernel)
    expected, outputs = interpret(kernel, arrays), interpret(two.kernel, arrays)
    np.testing.assert_array_equal(outputs["Y"], expected["Y"])


@pytest.mark.parametrize("symbols", [{"P": 1, "Q": 1}, {"P": 4, "Q": 8}, {"P": 5, "Q": 2}])
def test_symbolic_sizes_have_whole_tiles_of_their_own(symbols: dict[str, int]) -> None:
    kernel = _convolution("P, Q, ", pad="0")
    for rewriting in _offered(kernel):
        _assert_close(kernel, rewriting, 1, symbols)


def test_tiles_that_fit_read_no_padded_copy() -> None:
    for sizes, copies in (("P = 8, Q = 4, ", 0), ("P = 9, Q = 4, ", 1), ("P = 8, Q = 7, ", 1)):
        for rewriting in _offered(_convolution(sizes)):
            names = [b.name for b in rewriting.kernel.buffers]
            assert names.count("X_padded") == copies


def test_of_three_windows_each_two_are_transformed() -> None:
    kernel = kernel_of("""kernel k permit distribute {
      in X : f32[6, 7, 8, 2]
      in W : f32[3, 3, 3, 2, 2]
      out Y : f32[4, 5, 6, 2]
      Y[p, q, o, k] += X[p + r, q + s, o + t, c] * W[r, s, t, c, k]
    }""")
    found = _offered(kernel)
    assert sorted(r.note.split(":")[0] for r in found) == sorted(
        f"Winograd F({m}x{m}, 3x3) over {pair}" for m in (2, 4) for pair in ("r, s", "r, t", "s, t")
    )
    for rewriting in found[::2]:
        _assert_close(kernel, rewriting, 1)


@pytest.mark.parametrize("number", [0, 5, 11, -1])
def test_a_wrong_transform_is_found_by_the_bound(number: int) -> None:
    kernel = _convolution(pad="0")
    (two, _) = _offered(kernel)
    statements = list(two.kernel.statements)
    wrong = statements[number]
    flipped = Op("neg", (wrong.value,), wrong.value.dtype)
    statements[number] = replace(wrong, value=flipped)
    changed = replace(two.kernel, statements=tuple(statements))
    arrays = _normal_arrays(kernel, 1, {})
    expected, outputs = interpret(kernel, arrays), interpret(changed, arrays)
    assert not compare(kernel, arrays, expected, outputs, computed=changed).ok


@pytest.mark.parametrize(
    "permit", ["reassociate", "distribute, no reassociate", "distribute, no finite"]
)
def test_only_what_may_be_distributed_is_transformed(permit: str) -> None:
    assert _offered(_convolution(permit=permit)) == ()


def test_infinite_padding_is_not_transformed() -> None:
    assert _offered(_convolution(pad="inf")) == ()


@pytest.mark.parametrize(
    "statement",
    [
        "Y[p, k] max= X[p + r, c] * W[r, c, k]",
        "Y[p, k] += X[2*p + r, c] * W[r, c, k]",
        "Y[p, k] += X[p + r, c] * W[r, c, k] * W[r, c, k]",
        "Y[p, k] += X[p + r, r + c] * W[r, c, k]",
        "Y[p, k] += X[p + r, c] * W[r, c, p]",
        "Y[p, k] += X[p + r, c] + W[r, c, k]",
        "Y[p, k] += X[p*p + r, c] * W[r, c, k]",
    ],
)
def test_other_sums_are_left_alone(statement: str) -> None:
    if "p*p" in statement:
        statement = statement.replace("p*p", "p//2")
    kernel = kernel_of(f"""kernel k permit distribute {{
      in X : f32[20, 9]
      in W : f32[3, 4, 6]
      out Y : f32[6, 6]
      for p in 0..6  for r in 0..3  for c in 0..4
      {statement}
    }}""")
    assert _offered(kernel) == ()


def test_narrow_data_are_transformed_in_the_type_of_the_sum() -> None:
    kernel = kernel_of("""kernel k permit distribute {
      in X : bf16[11, 4]
      in W : bf16[3, 4, 6]
      out Y : f32[9, 6]
      Y[p, k] += f32(X[p + r, c]) * f32(W[r, c, k])
    }""")
    found = _offered(kernel)
    assert len(found) == 2
    for rewriting in found:
        _assert_close(kernel, rewriting, 3)
        assert {b.dtype.name for b in rewriting.kernel.buffers if b.name in "UVM"} == {"f32"}
