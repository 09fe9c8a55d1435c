import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, product, row_major, total, var
from isamap.ir.nodes import Literal, Role
from isamap.lower.nodes import Copy, Loop, Node
from tests.emit.building import compiled, emitted
from tests.emit.machines import kernel
from tests.emit.samples import Sample, padded, sample
from tests.profiles import examples

NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A random copy into a dense box from a larger source, with what it must give."""

    sample: Sample
    copy: Copy
    shape: tuple[int, ...]


@st.composite
def copies(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 21), min_size=1, max_size=3)))
    box = tuple(zip(NAMES, map(const, shape), strict=False))
    counters = [var(name) for name, _ in box]
    order = draw(st.permutations(range(len(shape))))
    strides = [draw(st.integers(0, 3)) for _ in shape]
    strides[-1] = draw(st.sampled_from([1, 1, 2, 0]))
    source = total(s * c for s, c in zip(strides, counters, strict=True))
    size = 1 + sum(s * (e - 1) for s, e in zip(strides, shape, strict=True))
    conditions: list[Index] = []
    for _ in range(draw(st.integers(0, 3))):
        form = total(draw(st.integers(-3, 3)) * c for c in counters) + draw(st.integers(-9, 9))
        kind = draw(st.sampled_from(["linear", "linear", "div", "mod", "outer"]))
        if kind == "div":
            form = form // 2
        if kind == "mod":
            form = form % 3 - 1
        if kind == "outer":
            form = draw(st.integers(-2, 2)) * counters[0] + draw(st.integers(-3, 6))
        conditions.append(form)
    # Zeros that follow each other are set at once, other numbers one by one.
    fill = draw(st.sampled_from([None, *(Literal(text, DTYPES["s16"]) for text in "70")]))
    if fill is not None and draw(st.integers(0, 9)) == 0:
        name: str | None = None
    else:
        name = "X"
    target = total(
        p * counters[d] for p, d in zip(row_major([shape[d] for d in order]), order, strict=True)
    )
    copy = Copy(box, "Z", target, name, source, tuple(conditions), fill)
    shapes = kernel("copied", [("X", "in", "s16", [size]), ("Z", "inout", "s16", [product(shape)])])
    return Case(sample(shapes, (copy,)), copy, shape)


def reference(copy: Copy, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    z = z.copy()
    for point in np.ndindex(*(int(count.evaluate({})) for _, count in copy.counters)):
        at = dict(zip((name for name, _ in copy.counters), point, strict=True))
        inside = all(c.evaluate(at) >= 0 for c in copy.conditions)
        if copy.source is not None and inside:
            z[copy.target_offset.evaluate(at)] = x[copy.source_offset.evaluate(at)]
        elif copy.fill is not None:
            z[copy.target_offset.evaluate(at)] = int(copy.fill.text)
    return z


TOGETHER = 8
"""Random copies that are compiled at once: a compiler takes longer to start than for a copy."""


def together(cases: Sequence[Case]) -> Sample:
    """Return one sample that does what some do, each with buffers of its own."""
    buffers: list[tuple[str, Role, str, Sequence[Index]]] = []
    body: list[Node] = []
    for n, case in enumerate(cases):
        own = case.sample.kernel.buffers
        buffers += [(f"{b.name}{n}", b.role, b.dtype.name, b.shape) for b in own]
        source = case.copy.source and f"{case.copy.source}{n}"
        body.append(replace(case.copy, target=f"{case.copy.target}{n}", source=source))
    return sample(kernel("together", buffers), tuple(body))


@examples(0.4)
@given(st.lists(copies(), min_size=1, max_size=TOGETHER))
def test_a_copy_does_what_its_points_say(cases: list[Case]) -> None:
    arrays: list[np.ndarray] = []
    expected: list[np.ndarray] = []
    for case in cases:
        size = int(product(case.shape).evaluate({}))
        length = int(case.sample.lowered.array("X").size.evaluate({}))
        x = np.arange(100, 100 + length, dtype=np.int16)
        z = -np.arange(1, 1 + size, dtype=np.int16)
        arrays += [x, z]
        expected += [x.copy(), reference(case.copy, x, z)]
    compiled(together(cases))(*arrays)
    for array, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_a_frame_of_padding() -> None:
    bf16 = DTYPES["bf16"].numpy
    x = np.arange(25).reshape(5, 5).astype(bf16)
    expected = np.full((7, 9), 0.5, bf16)
    expected[1:6, 2:7] = x
    np.testing.assert_array_equal(compiled(padded())(x)["Y"], expected)


def test_counters_of_the_caller_and_extents_are_arguments() -> None:
    i, j, size = var("i"), var("j"), var("N")
    copy = Copy((("j", i + 1),), "Y", i * size + j, "X", j * size + i, (), None)
    rest = Copy(
        (("j", size - 1 - i),),
        "Y",
        i * size + i + 1 + j,
        None,
        const(0),
        (),
        Literal("0", DTYPES["u8"]),
    )
    shapes = kernel("lower", [("X", "in", "u8", ["N", "N"]), ("Y", "out", "u8", ["N", "N"])], ["N"])
    x = np.random.default_rng(1).integers(0, 255, (23, 23), np.uint8)
    got = compiled(sample(shapes, (Loop("i", size, (copy, rest)),)))(x)["Y"]
    np.testing.assert_array_equal(got, np.tril(x.T))


def test_what_is_stored_several_times_is_read_in_passes_of_its_own() -> None:
    """Vectorised together, rows of a variable pitch would be read behind the last one."""
    c, i, r, pitch = var("c"), var("i"), var("r"), var("N")
    counters = (("c", const(5)), ("i", const(4)), ("r", const(3)))
    shapes = kernel("rows", [("X", "in", "s16", [5, "N"]), ("Z", "out", "s16", [60])], ["N"])
    for place in (c * pitch + i, c * 7 + i):
        copy = Copy(counters, "Z", 12 * c + 3 * i + r, "X", place, (), None)
        made = sample(shapes, (copy,))
        order = re.findall(r"i_(\w) = 0", emitted(made).text)
        assert order == (["r", "c", "i"] if "N" in place.names else ["c", "i", "r"])
        x = np.arange(5 * 7, dtype=np.int16)
        expected = np.repeat(x.reshape(5, 7)[:, :4].ravel(), 3)
        np.testing.assert_array_equal(compiled(made)(x.reshape(5, 7))["Z"], expected)
