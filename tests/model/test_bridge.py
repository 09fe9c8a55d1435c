"""What the model is told of a statement, beside counting what its iterations touch."""

from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.statements import bind_extents
from isamap.mapping.find import enumerate_statement
from isamap.mapping.matching import Mapping
from isamap.mapping.needles.needles import needles
from isamap.model.bridge import Modelled, least, model_of
from isamap.model.exact import judged
from isamap.model.nest import Operand
from isamap.model.traffic import footprint, stretch
from isamap.text.load import parse_module
from tests.model.brute import fetched
from tests.profiles import examples

AVX512 = load_hardware("x86_avx512")
PORTABLE = load_hardware("portable_c")
VARIABLES = "ijkl"

Form = tuple[tuple[str, int], ...]


def modelled(
    text: str, machine: Accelerator = PORTABLE, **block: int
) -> tuple[Modelled, Mapping, dict[str, int]]:
    """The model of a kernel's only statement under its first mapping."""
    kernel = bind_extents(parse_module(text, "text").kernels[0])
    mapping = enumerate_statement(kernel, 0, needles(machine)).mappings[0]
    statement = mapping.matching.statement
    extents = {v.name: int(v.extent.evaluate({})) for v in statement.variables}
    steps = {v: block.get(v, mapping.tile.get(v, 1)) for v in extents}
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    return model_of(mapping, machine, buffers, extents, steps), mapping, extents


def _written(form: Form) -> str:
    return " + ".join(f"{c}*{v}" for v, c in form)


def _reach(form: Form, extents: dict[str, int]) -> int:
    return sum(c * (extents[v] - 1) for v, c in form) + 1


@st.composite
def kernels(draw: st.DrawFn) -> tuple[str, dict[str, tuple[Form, ...]], dict[str, int]]:
    """A statement over two inputs whose indices are forms of one or two variables each."""
    extents = {v: draw(st.integers(2, 5)) for v in VARIABLES}
    arrays = {}
    for name in "AB":
        order = draw(st.permutations(VARIABLES))[: draw(st.integers(1, 4))]
        forms: list[Form] = []
        while order:
            taken, order = order[: draw(st.integers(1, 2))], order[2:]
            forms.append(tuple((v, draw(st.integers(1, 3))) for v in taken))
        arrays[name] = tuple(forms)
    results = sorted(draw(st.sets(st.sampled_from(VARIABLES), min_size=1)))
    arrays["Y"] = tuple(((v, 1),) for v in results)
    shapes = {
        name: ", ".join(str(_reach(form, extents)) for form in forms)
        for name, forms in arrays.items()
    }
    used = {v for forms in arrays.values() for form in forms for v, _ in form}
    places = {name: f"{name}[{', '.join(map(_written, forms))}]" for name, forms in arrays.items()}
    ranges = " ".join(f"for {v} in 0..{extents[v]}" for v in VARIABLES if v in used)
    text = (
        f"kernel k {{ in A : f32[{shapes['A']}] in B : f32[{shapes['B']}] "
        f"out Y : f32[{shapes['Y']}] {ranges} {places['Y']} += {places['A']} * {places['B']} }}"
    )
    return text, arrays, {v: extents[v] for v in VARIABLES if v in used}


def _touched(forms: tuple[Form, ...], box: dict[str, range]) -> int:
    names = list(box)
    places = set()
    for point in product(*box.values()):
        at = dict(zip(names, point, strict=True))
        places.add(tuple(sum(c * at[v] for v, c in form) for form in forms))
    return len(places)


@examples(0.5)
@given(kernels(), st.data())
def test_footprints_of_a_statement_are_what_its_iterations_touch(
    given_: tuple[str, dict[str, tuple[Form, ...]], dict[str, int]], data: st.DataObject
) -> None:
    text, arrays, extents = given_
    found, _, known = modelled(text)
    assert known == extents
    sizes = {v: data.draw(st.integers(1, extent)) for v, extent in known.items()}
    tile = [np.array([float(sizes[v])]) for v in known]
    box = {v: range(size) for v, size in sizes.items()}
    operands = {own.name: own for own in found.nest.operands}
    assert operands.keys() == arrays.keys()
    for name, forms in arrays.items():
        assert footprint(operands[name], tile)[0] == _touched(forms, box)
        assert operands[name].written == (name == "Y")
    whole = {v: range(extent) for v, extent in known.items()}
    assert found.touched == {name: 4 * _touched(forms, whole) for name, forms in arrays.items()}


@examples(0.3)
@given(kernels(), st.data())
def test_what_enters_the_first_memory_is_what_executing_the_loops_fetches(
    given_: tuple[str, dict[str, tuple[Form, ...]], dict[str, int]], data: st.DataObject
) -> None:
    found, _, extents = modelled(given_[0])
    order = data.draw(st.permutations(range(len(extents))))
    block = found.nest.steps
    loops = tuple((dim, block[dim]) for dim in order)
    settling, first, *_ = judged(found.nest, found.machine, loops)
    memory = found.machine.memories[0]
    assert memory.results is not None
    inputs = results = 0.0
    for own in found.nest.operands:
        moved = fetched(own, found.nest.extents, loops)
        if own.written:
            results += 4 * (2 * moved - fetched(own, found.nest.extents, ())) / memory.results
        else:
            inputs += 4 * moved / memory.bandwidth
    assert first == pytest.approx(inputs)
    assert settling == pytest.approx(results)


@pytest.mark.parametrize(
    ("access", "shape", "count"),
    [
        # A diagonal, and forms that share a variable: each combination is another element.
        ("A[i, i]", "6, 6", lambda i, j: i),
        ("A[i + j, i]", "11, 6", lambda i, j: i * j),
        # No linear form: each combination counts, and at most so many are touched.
        ("A[i // 2, j]", "6, 6", lambda i, j: i * j),
        ("A[(i + j) % 6, 0]", "6, 1", lambda i, j: i * j),
    ],
)
def test_indices_that_are_no_forms_of_their_own_count_every_combination(
    access: str, shape: str, count: object
) -> None:
    assert callable(count)
    text = (
        f"kernel k {{ in A : f32[{shape}] out Y : f32[6, 6] "
        f"for i in 0..6 for j in 0..6 Y[i, j] = {access} + 1.0 }}"
    )
    found, _, _ = modelled(text)
    operand = next(own for own in found.nest.operands if own.name == "A")
    for i, j in product((1, 2, 5, 6), repeat=2):
        tile = [np.array([float(i)]), np.array([float(j)])]
        assert footprint(operand, tile)[0] == count(i, j)
    if "/" in access or "%" in access:
        assert found.touched["A"] == 0  # it is not known what is touched for sure


def test_an_index_that_is_read_is_an_operand_too() -> None:
    text = """kernel k { in A : f32[9, 4] in I : s32[6] values 0..8 out Y : f32[6, 4]
        Y[i, j] = A[I[i], j] + 1.0 }"""
    found, _, _ = modelled(text)
    names = [own.name for own in found.nest.operands]
    assert sorted(names) == ["A", "I", "Y"]
    assert found.touched == {"Y": 96.0, "A": 0.0, "I": 24.0}


def test_accesses_that_differ_in_constants_are_one_operand() -> None:
    text = """kernel k { in X : f32[18] out Y : f32[16]
        for i in 0..16 Y[i] = X[i] + X[i + 1] }"""
    found, _, _ = modelled(text)
    assert sorted(own.name for own in found.nest.operands) == ["X", "Y"]


GEMM = """kernel mm { in A : f32[96, 80] in B : f32[80, 64] out C : f32[96, 64]
    C[m, n] += A[m, k] * B[k, n] }"""


def test_memories_are_those_of_the_description() -> None:
    found, mapping, _ = modelled(GEMM, AVX512)
    first, l1, l2, l3 = found.machine.memories
    assert found.fills == ("l1", "l2", "l3", "memory")
    assert first.capacity == 32 * 64
    assert l1.capacity == pytest.approx((48 << 10) * 2 / 3)
    assert l1.bandwidth == 56.0
    assert l2.capacity == pytest.approx((1 << 20) * 2 / 3)
    assert l2.bandwidth == 26.0
    assert l3.capacity == pytest.approx((32 << 20) * 2 / 3)
    assert l3.bandwidth == pytest.approx(9.6)
    assert found.machine.block
    calls = prod(-(-e // mapping.tile.get(v, 1)) for v, e in {"m": 96, "n": 64, "k": 80}.items())
    assert found.limits["fma"] == calls / 2
    assert found.limits["issue"] == calls / 8


def test_a_block_of_a_scratchpad_is_filled_from_memory() -> None:
    found, _, _ = modelled(GEMM, load_hardware("gemm16"))
    assert found.fills == ("memory",)
    assert found.machine.memories[0].capacity == (256 << 10) + 16 * 1024


MACHINE = """format: 1
name: m
source: a test
clock: 1 GHz
cores: 1
issue: 1
units: {{u: 1}}
storages:
  reg: {{kind: registers, count: 8, bits: 512}}
  imm: {{kind: immediate}}
  spm: {{kind: scratchpad, size: 4 KiB, alignment: 64, read: 8 B/cycle, write: 8 B/cycle}}
  memory: {{kind: memory, read: 4 B/cycle, write: 4 B/cycle, latency: 9}}
instructions:
  - semantics: |
      instruction product {{
        in a : f32[4, 4] @ reg    in b : f32[4, 4] @ reg    inout c : f32[4, 4] @ reg
        c[i, j] += a[i, k] * b[k, j]
      }}
    throughput: 1
    latency: 1
    units: u
{moves}"""

MOVE = """  - semantics: |
      instruction {name} {{
        in a : f32[4, 4] @ {source}    out b : f32[4, 4] @ {target}
        b[i, j] = a[i, j]
      }}
    throughput: 1
    latency: 1
    units: u
"""


@pytest.mark.parametrize("straight", [False, True])
def test_a_scratchpad_bounds_what_has_to_pass_through_it(tmp_path: Path, straight: bool) -> None:
    moves = [("memory", "spm"), ("spm", "reg"), ("reg", "spm"), ("spm", "memory")]
    moves += [("memory", "reg")] * straight
    text = "".join(
        MOVE.format(name=f"move{n}", source=source, target=target)
        for n, (source, target) in enumerate(moves)
    )
    (tmp_path / "m.yaml").write_text(MACHINE.format(moves=text))
    found, _, _ = modelled(GEMM, load_hardware(str(tmp_path / "m.yaml")))
    assert found.fills == (("memory",) if straight else ("spm", "memory"))


WINDOW = """kernel window(H = 20) {{
  in    X : f32[{rows}, 4] pad 0
  {more}
  const F : f32[3, 4, 16]
  out   Y : f32[H, 16]
  Y[h, k] += X[{row}, c] * F[r, c, k]
}}"""


@pytest.mark.parametrize(
    ("rows", "row", "more", "share"),
    [
        (20, "h + r - 1", "", 58 / 60),
        (10, "(h + r - 1) // 2", "", 58 / 60),
        (10, "(h + r - 1) % 2 + 9", "", 30 / 60),
        (20, "h + r + 20", "", 0.0),
        (20, "I[h] + r - 1", "in I : s32[H]", 0.0),  # what is read may be anything
    ],
)
def test_the_bound_counts_the_calls_that_do_something(
    rows: int, row: str, more: str, share: float
) -> None:
    whole, _, _ = modelled(WINDOW.format(rows=22, row="h + r", more=""))
    found, mapping, _ = modelled(WINDOW.format(rows=rows, row=row, more=more))
    assert set(mapping.tile.values()) <= {1}
    calls = {name: share * cycles for name, cycles in whole.limits.items()}
    assert found.limits == pytest.approx(calls)
    # What is not known takes nothing in the bound, and all of its time where loops are compared.
    judged_as = 1.0 if row.startswith("I") else share
    assert 1 / found.machine.rate == pytest.approx(judged_as / whole.machine.rate)


def test_the_bound_counts_what_no_cache_can_keep() -> None:
    found, _, _ = modelled(GEMM, AVX512)
    parts = least([found])
    touched = 4 * (96 * 80 + 80 * 64 + 96 * 64)
    assert parts["l2"] == pytest.approx((touched - (48 << 10)) / 56)
    assert parts["l3"] == parts["memory"] == 0
    # Two statements share the units, and what they both touch moves once.
    both = least([found, found])
    assert both["fma"] == 2 * parts["fma"]
    assert both["l2"] == parts["l2"]
    assert least([found], {"A", "B", "C"})["l2"] == 0


def test_nothing_is_computed_where_all_is_padding() -> None:
    # Two results beside the only element of a row: what they read lies to its left and right.
    found, _, _ = modelled(
        "kernel k { in X : f32[40, 1] pad 0  in F : f32[1, 8]  out Y : f32[40, 2, 8] "
        "Y[h, w, k] += X[h, 2*w + s - 1] * F[s, k] }",
        AVX512,
    )
    assert set(found.limits.values()) == {0.0}
    moved = judged(found.nest, found.machine, [])
    assert all(0 <= cycles < float("inf") for cycles in moved)
    assert least([found])["fma"] == 0


@given(st.data())
def test_stretches_are_the_elements_side_by_side(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(1, 5)) for _ in range(3)]
    tile = [data.draw(st.integers(1, extent)) for extent in shape]
    groups = tuple((((dim, 1),), extent) for dim, extent in enumerate(shape))
    operand = Operand("A", tuple(group for group, _ in groups), 4, rows=groups[::-1])
    found = stretch(operand, [np.array([float(size)]) for size in tile])[0]
    # By addresses: the first run of those that the tile has.
    places = {(a * shape[1] + b) * shape[2] + c for a, b, c in product(*map(range, tile))}
    run = next(n for n in range(1, len(places) + 2) if n not in places)
    assert found == run
