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
from isamap.ir.nodes import Kernel, Op
from isamap.rewrite.apply import rewritings
from isamap.rewrite.build import normal
from isamap.rewrite.rule import Rewriting
from isamap.rewrite.toom_cook import Matrix, transforms
from isamap.rewrite.windows import convolutions
from isamap.rewrite.winograd import tiled_by, winograd
from isamap.rewrite.winograd_error import Bound, error_bound, points_of_an_element
from isamap.rewrite.winograd_lemmas import same_convolution
from isamap.solver.lemma import prove
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
@examples(0.5)
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


def _bound(kernel: Kernel, outputs: int) -> Bound:
    own = normal(kernel)
    (reading,) = convolutions(own.statements[0], 2)
    return error_bound(own, 0, reading, tiled_by(reading, outputs))


def _most(bound: Bound) -> float:
    """The greatest error of data and windows of magnitude 1."""
    assert bound.relative is not None
    assert bound.terms.constant is not None
    return float(bound.relative * bound.terms.constant)


@pytest.mark.parametrize("pad", [None, "0"])
@pytest.mark.parametrize("seed", range(2))
def test_errors_are_within_the_stated_bound(pad: str | None, seed: int) -> None:
    kernel = _convolution(pad=pad)
    found = _offered(kernel)
    assert ["F(2x2, 3x3)" in found[0].note, "F(4x4, 3x3)" in found[1].note] == [True, True]
    for rewriting, outputs in zip(found, (2, 4), strict=True):
        _assert_close(kernel, rewriting, seed)
        bound = _bound(kernel, outputs)
        arrays = _normal_arrays(kernel, seed, {})
        exact = interpret(kernel, arrays, arithmetic=EXACTLY)["Y"]
        error = np.abs(interpret(rewriting.kernel, arrays)["Y"].astype(np.float64) - exact).max()
        sizes = [float(np.abs(arrays[name]).max()) for name in ("X", "W")]
        assert 0 < error <= _most(bound) * sizes[0] * sizes[1]


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


# --- the bound of the error -------------------------------------------------------------------
TILES = """kernel tiles permit distribute {{
  in X : f32[{inputs}, {many}]
  in W : f32[3, {many}]
  out Y : f32[{outputs}, {many}]
  Y[p, b] += X[p + r, b] * W[r, b]
}}"""


@pytest.mark.parametrize("outputs", [2, 4])
def test_a_search_for_the_greatest_error_comes_near_the_bound_and_not_beyond(outputs: int) -> None:
    """Thousands of tiles at a time, of which those with the greatest error are changed a little."""
    many, kept, rounds = 2048, 64, 60
    kernel = kernel_of(TILES.format(inputs=outputs + 2, outputs=outputs, many=many))
    rewriting = next(r for r in _offered(kernel) if f"F({outputs}, 3)" in r.note)
    most = _most(_bound(kernel, outputs))
    generator = np.random.default_rng(outputs)
    signs = [generator.choice([-1.0, 1.0], (n, many)) for n in (outputs + 2, 3)]
    data, window = ((s * generator.uniform(0.5, 1, s.shape)).astype(np.float32) for s in signs)
    greatest = 0.0
    for _ in range(rounds):
        arrays = {"X": data, "W": window}
        exact = interpret(kernel, arrays, arithmetic=EXACTLY)["Y"]
        error = np.abs(interpret(rewriting.kernel, arrays)["Y"].astype(np.float64) - exact).max(0)
        share = error / (most * np.abs(data).max(0) * np.abs(window).max(0))
        best = np.argsort(-share)[:kept]
        greatest = max(greatest, float(share[best[0]]))
        data, window = (
            _shaken(np.repeat(a[:, best], many // kept, axis=1), generator) for a in (data, window)
        )
    assert 0.08 < greatest <= 1


def _shaken(values: Values, generator: np.random.Generator) -> Values:
    by = 1 + generator.normal(0, 0.05, values.shape) * generator.choice([0, 1], values.shape)
    changed = np.clip(values * by, -1, 1).astype(np.float32)
    return np.where(generator.random(values.shape) < 0.4, changed, values)


def test_what_the_target_held_is_rounded_too() -> None:
    text = TILES.format(inputs=6, outputs=4, many=64).replace("out Y", "inout Y")
    kernel = kernel_of(text)
    for outputs, rewriting in zip((2, 4), _offered(kernel), strict=True):
        bound = _bound(kernel, outputs)
        assert bound.carried.constant
        assert "of what it held before" in rewriting.note
        arrays = _normal_arrays(kernel, 1, {})
        arrays["Y"] = (arrays["Y"] * 1e6).astype(np.float32)
        exact = interpret(kernel, arrays, arithmetic=EXACTLY)["Y"]
        error = np.abs(interpret(rewriting.kernel, arrays)["Y"].astype(np.float64) - exact).max()
        sizes = {name: float(np.abs(array).max()) for name, array in arrays.items()}
        added = _most(bound) * sizes["X"] * sizes["W"]
        assert error > added
        assert error <= added + bound.carried.constant * 2.0**-24 * 1.01 * sizes["Y"]


def test_a_second_writer_of_the_target_is_what_it_held() -> None:
    kernel = kernel_of("""kernel k permit distribute {
      in X : f32[6]  in W : f32[3]  in B : f32[4]  out Y : f32[4]
      Y[p] += B[p]
      Y[p] += X[p + r] * W[r]
    }""")
    assert all("held before" in rewriting.note for rewriting in _offered(kernel, 1))


@pytest.mark.parametrize(
    ("indices", "count"),
    [
        ("p, q", 1),
        ("p + q, q", 1),
        ("p + q, 0", 3),
        ("p + q, p + q", 3),
        ("0, 2*p + q", 3),
        ("p//2, q", 5),
        ("q, p + q + c", 2),
        ("c, p", 1),
    ],
)
def test_points_of_an_element_of_the_target_are_counted(indices: str, count: int) -> None:
    kernel = kernel_of(f"""kernel k permit distribute {{
      in X : f32[7, 3, 2]  in W : f32[3]  inout Y : f32[20, 20]
      for p in 0..5  for q in 0..3  for c in 0..2
      Y[{indices}] += X[p + r, q, c] * W[r]
    }}""")
    statement = normal(kernel).statements[0]
    used = statement.target.indices[0].names | statement.target.indices[1].names
    free = points_of_an_element(statement).constant
    sizes = {"p": 5, "q": 3, "c": 2}
    points: dict[tuple[int, ...], int] = {}
    for values in np.ndindex(*(sizes[v] for v in sorted(used))):
        at = dict(zip(sorted(used), values, strict=True))
        place = tuple(int(index.evaluate(at)) for index in statement.target.indices)
        points[place] = points.get(place, 0) + 1
    assert free == count
    assert max(points.values()) <= count


def test_sums_over_several_points_have_more_terms() -> None:
    kernel = kernel_of("""kernel k permit distribute {
      in X : f32[11, 4]  in W : f32[3]  out Y : f32[12]
      for p in 0..9  for q in 0..4
      Y[p + q] += X[p + r, q] * W[r]
    }""")
    assert all("of 12 max|X| max|W|" in rewriting.note for rewriting in _offered(kernel))
    for rewriting in _offered(kernel):
        _assert_close(kernel, rewriting, 1)


@pytest.mark.parametrize(
    ("dtype", "channels", "tiles"),
    [
        ("f32", 4, 2),
        ("f32", 4000, 2),
        ("f16", 4, 2),
        ("f16", 4000, 0),
        ("bf16", 4, 1),
        ("bf16", 300, 0),
        ("f8e5m2", 2, 0),
    ],
)
def test_tiles_are_not_offered_where_their_error_may_be_as_great_as_the_result(
    dtype: str, channels: int, tiles: int
) -> None:
    kernel = kernel_of(f"""kernel k permit distribute {{
      in X : {dtype}[8, {channels}]  in W : {dtype}[3, {channels}]  out Y : {dtype}[6]
      Y[p] += X[p + r, c] * W[r, c]
    }}""")
    assert len(_offered(kernel)) == tiles
    for outputs in (2, 4)[:tiles]:
        relative = _bound(kernel, outputs).relative
        assert relative is not None
        assert 0 < relative < 1


def test_the_bound_of_a_symbolic_sum_is_a_formula() -> None:
    kernel = kernel_of("""kernel k(C) permit distribute {
      in X : f32[8, C]  in W : f32[3, C]  out Y : f32[6]
      Y[p] += X[p + r, c] * W[r, c]
    }""")
    for rewriting, (slope, more) in zip(_offered(kernel), ((1.7e-7, 7), (9.8e-7, 13)), strict=True):
        told = f"at most {slope:.2g} (C + {more}) of 3*C max|X| max|W|"
        assert told in rewriting.note
        known = kernel_of(rewriting_text(64))
        outputs = 2 if more == 7 else 4
        relative = _bound(known, outputs).relative
        assert relative is not None
        assert float(relative) <= slope * (64 + more)


def rewriting_text(channels: int) -> str:
    return f"""kernel k permit distribute {{
      in X : f32[8, {channels}]  in W : f32[3, {channels}]  out Y : f32[6]
      Y[p] += X[p + r, c] * W[r, c]
    }}"""


# --- the lemma --------------------------------------------------------------------------------
@pytest.mark.parametrize(("outputs", "taps"), [(2, 3), (4, 3), (2, 5)])
def test_no_coefficient_can_be_another_one(outputs: int, taps: int) -> None:
    found = transforms(outputs, taps)
    assert prove(same_convolution(found, 1)).verdict == "proved"
    for first in (True, False):
        for wrong in (
            replace(found, output=_wrong(found.output, first)),
            replace(found, window=_wrong(found.window, first)),
            replace(found, data=_wrong(found.data, first)),
        ):
            assert prove(same_convolution(wrong, 1)).verdict == "refuted"


def _wrong(matrix: Matrix, first: bool) -> Matrix:
    """Return a matrix with its first or last coefficient a little greater."""
    rows = [list(row) for row in matrix]
    row = rows[0 if first else -1]
    row[0 if first else -1] += Fraction(1, 1000)
    return tuple(map(tuple, rows))
