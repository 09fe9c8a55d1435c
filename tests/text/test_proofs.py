"""What is accepted stays in bounds and writes what it must: compared with every point."""

from itertools import product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import IsamapError, LimitError
from isamap.ir.index import Index, const, var
from isamap.solver.ask import Answer
from isamap.text import proof
from isamap.text.load import parse_module
from isamap.text.proof import Domain, Undecided, negative_at

NAMES = ("a", "b", "c")


@st.composite
def indices(draw: st.DrawFn) -> Index:
    """An index of up to three variables, with nested // and %."""
    index = const(draw(st.integers(-6, 6)))
    for name in NAMES:
        part = draw(st.integers(-3, 3)) * var(name)
        match draw(st.integers(0, 4)):
            case 0:
                part = part // draw(st.integers(1, 4))
            case 1:
                part = (part + draw(st.integers(-3, 3))) % draw(st.integers(1, 4))
        index = index + part
    return index


@given(indices(), st.tuples(*[st.tuples(st.integers(-3, 3), st.integers(1, 4))] * 3))
def test_a_numeric_proof_agrees_with_every_point(
    index: Index, ends: tuple[tuple[int, int], ...]
) -> None:
    bounds = dict(zip(NAMES, ends, strict=True))
    domain = Domain({n: (const(low), const(size)) for n, (low, size) in bounds.items()})
    grids = [range(low, low + size) for low, size in bounds.values()]
    worst = min(int(index.evaluate(dict(zip(NAMES, p, strict=True)))) for p in product(*grids))
    witness = negative_at(index, domain)
    if witness is None:
        assert worst >= 0
    else:
        full = {n: bounds[n][0] for n in NAMES} | witness
        assert int(index.evaluate(full)) < 0
        assert all(bounds[n][0] <= full[n] < sum(bounds[n]) for n in NAMES)


@given(indices(), st.integers(-4, 4), st.integers(-2, 2))
def test_a_symbolic_proof_agrees_with_small_sizes(index: Index, shift: int, factor: int) -> None:
    size = var("N")
    tested = index + factor * size + shift
    domain = Domain({n: (const(0), size) for n in NAMES}, {"N": (1, None)})
    try:
        witness = negative_at(tested, domain)
    except Undecided:
        return
    if witness is not None:
        full = {"a": 0, "b": 0, "c": 0, "N": 1} | witness
        assert int(tested.evaluate(full)) < 0
        assert all(0 <= full[n] < full["N"] for n in NAMES)
        return
    for value in range(1, 5):
        for point in product(range(value), repeat=3):
            assert int(tested.evaluate({"N": value, **dict(zip(NAMES, point, strict=True))})) >= 0


@st.composite
def targets(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Target indices over i in 0..a and j in 0..b as texts, and a shape that holds them."""
    texts, shape = [], []
    for _ in range(draw(st.integers(1, 2))):
        ci, cj = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        text = f"{ci}*i + {cj}*j"
        kind, divisor = draw(st.integers(0, 3)), draw(st.integers(1, 4))
        if kind == 0:
            text = f"({text}) // {divisor}"
        elif kind == 1:
            text = f"({text}) % {divisor}"
        texts.append(text)
        shape.append(draw(st.integers(1, 6)))
    return texts, shape


@given(targets(), st.integers(1, 4), st.integers(1, 4))
def test_what_is_written_is_known_exactly(
    target: tuple[list[str], list[int]], a: int, b: int
) -> None:
    texts, shape = target
    text = (
        f"kernel k {{ out Y : f32[{', '.join(map(str, shape))}]\n for i in 0..{a}\n"
        f" for j in 0..{b}\n Y[{', '.join(texts)}] = f32(i) + f32(j) }}"
    )
    points = list(product(range(a), range(b)))
    written = [tuple(eval(t, {"i": i, "j": j}) for t in texts) for i, j in points]
    inside = all(0 <= at < size for place in written for at, size in zip(place, shape, strict=True))
    expected = set()
    if not inside:
        expected.add("E021")
    else:
        if len(set(written)) < len(written):
            expected.add("E025")
        if set(written) != set(product(*map(range, shape))):
            expected.add("E024")
    assert codes(text) == expected


def codes(text: str) -> set[str]:
    try:
        parse_module(text)
    except IsamapError as error:
        return {d.code for d in error.diagnostics}
    return set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Symbols: proved for all sizes, or refuted at a small one.
        ("in X : f32[2*N + 1]  out Y : f32[N]\n for r in 0..3\n Y[p] max= X[2*p + r]", set()),
        ("in X : f32[2*N]  out Y : f32[N]\n for r in 0..3\n Y[p] max= X[2*p + r]", {"E021"}),
        ("in X : f32[N, M]  out Y : f32[N*M]\n for i in 0..N\n for j in 0..M\n"
         " Y[i*M + j] = X[i, j]", set()),
        ("in X : f32[N, M]  out Y : f32[N*M]\n for i in 0..N\n for j in 0..M\n"
         " Y[i*N + j] = X[i, j]", {"E021"}),
        ("out Y : f32[N, 16]\n for i in 0..16*N\n Y[i//16, i%16] = 1", set()),
        ("out Y : f32[N, 16]\n for i in 0..15*N\n Y[i//16, i%16] = 1", {"E024"}),
        ("out Y : f32[N + M]\n for a in 0..N\n for b in 0..M\n Y[a] = 1\n Y[N + b] = 2", set()),
        ("out Y : f32[N + 1]\n for a in 0..N\n Y[a + 1] = 1\n Y[0] = 1", set()),
        ("out Y : f32[N + 1]\n for a in 0..N\n Y[a + 1] = 1", {"E024"}),
        ("out Y : f32[N + 2]\n for a in 0..N\n for r in 0..3\n Y[a + r] = 1", {"E025"}),
        ("in X : f32[N + M - 1]  const F : f32[M]  out Y : f32[N]\n Y[p] += X[p + r] * F[r]",
         set()),
        ("in X : f32[N - M + 1]  out Y : f32[]\n Y[] += X[i]", {"E029"}),
        ("inout Y : f32[N]\n Y[i] = Y[i] * 2", set()),
        ("inout Y : f32[N]\n Y[i] = Y[N - 1 - i] * 2", {"E047"}),
        ("in X : f32[4]  local T : f32[6]  out Y : f32[4]\n T[i] = X[i]\n Y[i] = T[i]", {"E023"}),
        ("in X : f32[4]  local T : f32[6]  out Y : f32[4]\n for i in 0..4\n T[i + 1] += X[i]\n"
         " Y[i] = T[i] + T[i + 2]", set()),
        ("in X : f32[4]  local T : f32[6]  out Y : f32[4]\n for i in 0..4\n T[i + 1] = X[i]\n"
         " Y[i] = T[i] + T[i + 2]", {"E027"}),
    ],
)  # fmt: skip
def test_typical_kernels(text: str, expected: set[str]) -> None:
    assert codes(f"kernel k(N, M) {{ {text} }}") == expected


def test_what_stays_open_is_told_and_never_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict: Literal["unknown"] = "unknown"
    monkeypatch.setattr(proof, "ask", lambda *_: Answer(verdict, {}, "timeout"))
    text = "kernel k(N) { out Y : f32[N, 16]\n for i in 0..16*N\n Y[i//16, i%16] = 1\n }"
    with pytest.raises(LimitError) as caught:
        parse_module(text)
    assert caught.value.exit_code == 6
    assert {d.code for d in caught.value.diagnostics} == {"E090"}
    assert "timeout" in caught.value.diagnostics[0].message
