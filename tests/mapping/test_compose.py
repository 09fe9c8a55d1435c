"""Several instructions in sequence that stand for one: found, right, and refused with a reason."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import isamap
from isamap.diagnostics import NoMappingError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.interp.call import execute
from isamap.ir.nodes import Access, Literal
from isamap.ir.ranges import Interval
from isamap.ir.statements import bind_extents, zero_based
from isamap.mapping.compose.compose import Composer, compositions
from isamap.mapping.compose.composed import Composed, parts_of
from isamap.mapping.compose.connect import Given, Made
from isamap.mapping.find import describe
from isamap.mapping.matching import Needle
from isamap.mapping.needles.needles import covered, needles, roots
from isamap.solver.lemma import prove
from tests.mapping.machines import kernel, machine, moves, names, simulate

Array: TypeAlias = NDArray[Any]

PAIRS = """
instruction pairs {
  in a : u8[32] @ v    in b : s8[32] @ v    out r : s16[16] @ v    local t : s32[16]
  t[i] += s32(a[2*i + k]) * s32(b[2*i + k])    for k in 0..2
  r[i] = sat[s16](t[i])
}
"""
PAIRS16 = """
instruction pairs16 {
  in a : s16[8, 2] @ v    in b : s16[8, 2] @ v    out r : s32[8] @ v
  r[i] += s32(a[i, k]) * s32(b[i, k])
}
"""
ADD32 = """
instruction add32 {
  in a : s32[8] @ v    in b : s32[8] @ v    out r : s32[8] @ v
  r[i] = a[i] + b[i]
}
"""
BYTES = (moves("u8", 32), moves("s8", 32), moves("s32", 8))
ROUTE = (PAIRS, PAIRS16, ADD32, *BYTES, moves("s16", 16))
GEMM = """
kernel small(M = 5, N = 11, K = 7) {{
  in    A : u8[M, K] {a}
  const B : s8[K, N] {b}
  out   C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}}
"""


def found(text: str, hardware: Accelerator) -> list[Needle]:
    """Return the compositions for the one statement of a kernel, whatever they need."""
    index = needles(hardware)
    statement = zero_based(bind_extents(kernel(text)).statements[0])
    best = max((covered(needle) for needle, _ in roots(statement, index)), default=0)
    return [needle for needle, _ in Composer(index).chains(statement, best)]


def in_sequence(needle: Needle, operands: dict[str, Array]) -> Array:
    """Execute the parts one after the other; return what is in the target."""
    entry = needle.entry
    assert isinstance(entry, Composed)
    target = needle.target.buffer
    held = {name: array.copy() for name, array in operands.items()}
    made: dict[int, Array] = {}
    for number, part in enumerate(entry.parts):
        arrays = {}
        for name, place in part.places:
            operand = part.entry.instruction.operand(name)
            shape = [extent.constant or 0 for extent in operand.shape]
            match place:
                case Given(own):
                    arrays[name] = held[own].reshape(shape).copy()
                case Made(own) if own in made:
                    arrays[name] = made[own].reshape(shape).copy()
                case Made(own):
                    assert own == number
                    arrays[name] = np.zeros(shape, operand.dtype.numpy)
                case Literal(text, dtype):
                    arrays[name] = np.full(shape, float(text)).astype(dtype.numpy)
        execute(part.entry.instruction, arrays, {})
        for name, place in part.places:
            if part.entry.instruction.operand(name).role in ("out", "inout"):
                if isinstance(place, Made):
                    made[place.part] = arrays[name]
                elif isinstance(place, Given):
                    held[place.name] = arrays[name].reshape(held[place.name].shape)
    return held[target]


def agrees(needle: Needle, ranges: dict[str, tuple[int, int]], seed: int) -> bool:
    """Return whether the parts in sequence compute the composition's own statement."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for operand in needle.entry.instruction.operands:
        shape = [extent.constant or 0 for extent in operand.shape]
        dtype = operand.dtype
        low, high = (-9, 9) if dtype.is_float else (dtype.lowest, dtype.highest)
        low, high = ranges.get(operand.name, (low, high))
        drawn = rng.integers(low, high, shape, endpoint=True)
        if seed % 2:
            drawn = np.where(rng.integers(0, 2, shape) == 1, low, high)
        arrays[operand.name] = drawn.astype(dtype.numpy)
    whole = {name: array.copy() for name, array in arrays.items()}
    execute(needle.entry.instruction, whole, {})
    target = needle.target.buffer
    return bool(np.array_equal(whole[target], in_sequence(needle, arrays)))


def test_bytes_go_through_pairs_where_ranges_allow(tmp_path: Path) -> None:
    hardware = machine(tmp_path, *ROUTE)
    result = simulate(kernel(GEMM.format(a="values 0 .. 127", b="")), hardware)
    assert names(result) == ["pairs + pairs16 + add32"]
    needle = result.statements[0].mappings[0].matching.needle
    assert parts_of(needle) == ("pairs", "pairs16", "add32")
    assert isinstance(needle.entry, Composed)
    (condition,) = needle.entry.conditions
    assert "A[m, k] in 0 .. 127" in condition.text
    assert prove(condition.lemma).verdict == "proved"
    assert describe(result.statements[0].mappings[0]).endswith(f", as {condition.text}")


def test_without_ranges_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    hardware = machine(tmp_path, *ROUTE)
    with pytest.raises(NoMappingError) as error:
        simulate(kernel(GEMM.format(a="", b="")), hardware)
    notes = [note.message for note in error.value.diagnostics[0].notes]
    (told,) = (note for note in notes if note.startswith("pairs + pairs16 + add32:"))
    assert "it needs that 2 terms A[m, k] * B[k, n]" in told
    assert "they reach -65280 .. 64770" in told
    assert "declared 'values' of A, B may exclude that" in told


@pytest.mark.parametrize(
    ("a", "b", "legal"),
    [
        ("0 .. 128", "-128 .. 127", True),  # 2 * 128 * -128 is the least value of s16
        ("0 .. 129", "-128 .. 127", False),
        ("0 .. 255", "-64 .. 64", True),
        ("0 .. 255", "-65 .. 64", False),
        ("0 .. 255", "-64 .. 65", False),
        ("0 .. 0", "-128 .. 127", True),
    ],
)
def test_the_last_value_counts(a: str, b: str, legal: bool, tmp_path: Path) -> None:
    text = GEMM.format(a=f"values {a}", b=f"values {b}")
    hardware = machine(tmp_path, *ROUTE)
    source = kernel(text)
    statement = zero_based(bind_extents(source).statements[0])
    ends = {name: Interval(*map(int, t.split(" .. "))) for name, t in (("A", a), ("B", b))}
    answer = compositions(statement, needles(hardware), 0, ends)
    assert bool(answer.roots) == legal
    assert bool(answer.refused) != legal
    # The oracle: what the instructions do with the extremes.
    (needle,) = found(text, hardware)
    ranges = {"a": (ends["A"].low, ends["A"].high), "b": (ends["B"].low, ends["B"].high)}
    assert all(agrees(needle, ranges, seed) for seed in range(1, 60, 2)) == legal


def test_sums_that_wrap_need_no_range(tmp_path: Path) -> None:
    """What is added up modulo 2^32 at the end may wrap on the way."""
    hardware = machine(tmp_path, PAIRS16, ADD32, moves("s16", 16), moves("s32", 8))
    text = GEMM.format(a="", b="").replace("u8", "s16").replace("s8", "s16")
    result = simulate(kernel(text), hardware)
    assert names(result) == ["pairs16 + add32"]
    needle = result.statements[0].mappings[0].matching.needle
    assert isinstance(needle.entry, Composed)
    assert not needle.entry.claims


def test_widening_product_and_addition_are_one(tmp_path: Path) -> None:
    wide = """
    instruction wmul {
      in a : s16[8] @ v    in b : s16[8] @ v    out r : s32[8] @ v
      r[i] = s32(a[i]) * s32(b[i])
    }
    """
    hardware = machine(tmp_path, wide, ADD32, moves("s16", 8), moves("s32", 8))
    text = GEMM.format(a="", b="").replace("u8", "s16").replace("s8", "s16")
    assert names(simulate(kernel(text), hardware)) == ["wmul + add32"]


def test_product_and_addition_of_floats_are_one(tmp_path: Path) -> None:
    one = """
    instruction {n} {{ in a : f32[8] @ v  in b : f32[8] @ v  out r : f32[8] @ v
      r[i] = a[i] {op} b[i] }}
    """
    hardware = machine(
        tmp_path, one.format(n="mul", op="*"), one.format(n="add", op="+"), moves("f32", 8)
    )
    text = "kernel k(M = 3, N = 10, K = 4) { in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]"
    source = kernel(text + "  C[m, n] += A[m, k] * B[k, n] }")
    assert names(simulate(source, hardware)) == ["mul + add"]


def test_greatest_of_pairs(tmp_path: Path) -> None:
    """Chains are not about sums: the greatest of pairs, then of all."""
    most = """
    instruction most2 {
      in a : s16[8, 2] @ v    out r : s16[8] @ v
      r[i] max= a[i, k]
    }
    instruction most {
      in a : s16[8] @ v    in b : s16[8] @ v    out r : s16[8] @ v
      r[i] = max(a[i], b[i])
    }
    """
    hardware = machine(tmp_path, most, moves("s16", 16), moves("s16", 8))
    text = "kernel k(N = 11, K = 9) { in A : s16[N, K]  out M : s16[N]  M[n] max= A[n, k] }"
    index = needles(hardware)
    statement = zero_based(bind_extents(kernel(text)).statements[0])
    answer = compositions(statement, index, 1, {})
    assert {needle.name for needle, _ in answer.roots} == {"most2 + most"}
    simulate(kernel(text), hardware)


def test_a_sum_is_not_what_a_greatest_value_wants(tmp_path: Path) -> None:
    hardware = machine(tmp_path, PAIRS16, moves("s16", 16), moves("s32", 8))
    text = GEMM.format(a="", b="").replace("u8", "s16").replace("s8", "s16")
    assert found(text.replace("+=", "max="), hardware) == []
    assert found(text, hardware) == []  # nothing adds


def test_rows_of_another_length_do_not_meet(tmp_path: Path) -> None:
    """Twelve elements as [3, 4] are not what [4, 3] wants: no digits are common to both."""
    odd = """
    instruction thirds {
      in a : s16[3, 4, 2] @ v    in b : s16[3, 4, 2] @ v    out r : s32[3, 4] @ v
      r[i, j] += s32(a[i, j, k]) * s32(b[i, j, k])
    }
    instruction add {
      in a : s32[4, 3] @ v    inout c : s32[4, 3] @ v
      c[i, j] += a[i, j]
    }
    """
    text = GEMM.format(a="", b="").replace("u8", "s16").replace("s8", "s16")
    assert found(text, machine(tmp_path, odd)) == []


def test_shipped_route_of_avx2() -> None:
    hardware = load_hardware("x86_avx2")
    text = GEMM.format(a="values 0 .. 127", b="")
    needle, other = found(text, hardware)
    assert parts_of(needle) == ("vpmaddubsw", "vpmaddwd", "vadd_s32")
    assert parts_of(other) == ("vpmaddubsw", "vpmaddwd", "vsum_s32")
    assert [axis.extent for axis in needle.axes] == [8, 4]
    assert all(agrees(needle, {"a": (0, 127)}, seed) for seed in range(40))
    simulate(kernel(text), hardware)


TYPES = st.sampled_from(["s8", "u8", "s16", "u16"])


@st.composite
def two_instructions(draw: st.DrawFn) -> tuple[str, str]:
    """Return an instruction that makes sums of groups and one that takes them further."""
    a, b, between = draw(TYPES), draw(TYPES), draw(st.sampled_from(["s16", "s32", "u16"]))
    lanes, group = draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from([1, 2, 3]))
    way = draw(st.sampled_from(["cast", "sat"]))
    convert = between if way == "cast" else f"sat[{between}]"
    inner = draw(st.sampled_from(["*", "+", "-"]))
    first = f"""
    instruction first {{
      in a : {a}[{lanes}, {group}] @ v    in b : {b}[{lanes}, {group}] @ v
      out r : {between}[{lanes}] @ v    local t : s32[{lanes}]
      t[i] += s32(a[i, k]) {inner} s32(b[i, k])
      r[i] = {convert}(t[i])
    }}
    """
    rows = draw(st.sampled_from([1, 2]))
    scale = draw(st.booleans())
    dims, index = (f"{lanes // rows}, {rows}", "i, k") if rows > 1 else (f"{lanes}", "i")
    factor = f" * s32(w[{index}])" if scale else ""
    weight = f"in w : s16[{dims}] @ v" if scale else ""
    second = f"""
    instruction second {{
      in x : {between}[{dims}] @ v    {weight}    inout c : s32[{lanes // rows}] @ w
      c[i] += s32(x[{index}]){factor}
    }}
    """
    text = f"""
    kernel k(M = 5, N = 6, K = 9) {{
      in A : {a}[M, K]  in B : {b}[K, N]  out C : s32[M, N]
      C[m, n] += s32(A[m, k]) {inner} s32(B[k, n])
    }}
    """
    return first + second, text


@settings(max_examples=40, deadline=None)
@given(two_instructions(), st.data())
def test_random_machines(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, str], data: st.DataObject
) -> None:
    """A composition whose claims are proved computes its statement for all values in the ranges."""
    instructions, text = drawn
    hardware = machine(tmp_path_factory.mktemp("toy"), instructions)
    source = bind_extents(kernel(text))
    statement = zero_based(source.statements[0])
    known = {}
    for name in ("A", "B"):
        dtype = source.buffer(name).dtype
        low, high = sorted(
            data.draw(st.tuples(*[st.integers(dtype.lowest, dtype.highest)] * 2), label=name)
        )
        known[name] = Interval(low, high)
    answer = compositions(statement, needles(hardware), 0, known)
    assert answer.roots or answer.refused
    for needle, bound in answer.roots:
        ranges = {}
        for operand, expr in bound:
            if isinstance(expr, Access):
                interval = known[expr.buffer]
                ranges[operand] = (interval.low, interval.high)
        assert all(agrees(needle, ranges, seed) for seed in range(12))


MULTIPLY_ADD = """
instruction madd {
  in a : f32[8] @ v    in b : f32[8] @ v    inout c : f32[8] @ v
  c[i] += a[i] * b[i]
}
"""
MULTIPLY_TAKE = """
instruction msub {
  in a : f32[8] @ v    in b : f32[8] @ v    inout c : f32[8] @ v
  c[i] += -(a[i] * b[i])
}
"""
TAKE_PRODUCT = """
instruction take {
  in a : f32[8] @ v    in b : f32[8] @ v    in c : f32[8] @ v    out r : f32[8] @ v
  r[i] = c[i] - a[i] * b[i]
}
"""
COMPLEX = """
kernel complex(M = 3, N = 11, K = 5) {permit} {{
  in Ar : f32[M, K]  in Ai : f32[M, K]  in Br : f32[K, N]  in Bi : f32[K, N]
  out Cr : f32[M, N]  out Ci : f32[M, N]
  Cr[i, j] += Ar[i, k] * Br[k, j] - Ai[i, k] * Bi[k, j]
  Ci[i, j] += Ar[i, k] * Bi[k, j] + Ai[i, k] * Br[k, j]
}}
"""


@pytest.mark.parametrize(("taking", "name"), [(MULTIPLY_TAKE, "msub"), (TAKE_PRODUCT, "take")])
def test_complex_product_is_four_real_ones(taking: str, name: str, tmp_path: Path) -> None:
    hardware = machine(tmp_path, MULTIPLY_ADD, taking, moves("f32", 8))
    result = simulate(kernel(COMPLEX.format(permit="")), hardware)
    assert names(result) == [f"madd + {name}", "madd + madd"]
    for statement in result.statements:
        needle = statement.mappings[statement.chosen].matching.needle
        assert all(agrees(needle, {}, seed) for seed in range(6))


def test_terms_are_not_taken_in_turn_without_permission(tmp_path: Path) -> None:
    hardware = machine(tmp_path, MULTIPLY_ADD, MULTIPLY_TAKE, moves("f32", 8))
    with pytest.raises(NoMappingError):
        simulate(kernel(COMPLEX.format(permit="permit no reassociate")), hardware)


def test_integers_need_no_permission(tmp_path: Path) -> None:
    hardware = machine(
        tmp_path, *(t.replace("f32", "s32") for t in (MULTIPLY_ADD, TAKE_PRODUCT, moves("f32", 8)))
    )
    text = COMPLEX.format(permit="permit no reassociate").replace("f32", "s32")
    assert names(simulate(kernel(text), hardware)) == ["madd + take", "madd + madd"]


def test_only_what_adds_is_taken_in_turn(tmp_path: Path) -> None:
    """``r = a*b - c`` has the accumulator on the wrong side of the difference."""
    wrong = TAKE_PRODUCT.replace("c[i] - a[i] * b[i]", "a[i] * b[i] - c[i]")
    hardware = machine(tmp_path, MULTIPLY_ADD, wrong, moves("f32", 8))
    with pytest.raises(NoMappingError):
        simulate(kernel(COMPLEX.format(permit="")), hardware)


def test_sums_in_turn_go_over_equal_axes(tmp_path: Path) -> None:
    """A matrix unit in pairs: both products have the same k, so they may be taken in turn."""
    unit = """
    instruction dot_{n} {{
      in a : s8[4, {k}] @ v    in b : s8[{k}] @ v    inout c : s32[4] @ v
      c[i] += {sign}(s32(a[i, k]) * s32(b[k]))
    }}
    """
    text = """
    kernel k(M = 9, K = 7) {
      in A : s8[M, K]  in B : s8[K]  in D : s8[M, K]  in E : s8[K]  out C : s32[M]
      C[m] += s32(A[m, k]) * s32(B[k]) - s32(D[m, k]) * s32(E[k])
    }
    """
    rest = (moves("s32", 4), moves("s8", 16), moves("s8", 4))
    equal = machine(
        tmp_path, unit.format(n="add", k=4, sign=""), unit.format(n="take", k=4, sign="-"), *rest
    )
    result = simulate(kernel(text), equal)
    assert names(result) == ["dot_add + dot_take"]
    other = machine(
        tmp_path, unit.format(n="add", k=4, sign=""), unit.format(n="take", k=2, sign="-"), *rest
    )
    with pytest.raises(NoMappingError):
        simulate(kernel(text), other)


@pytest.mark.parametrize(
    ("sizes", "threads"), [("M = 13, N = 21, K = 37", 1), ("M, N, K = 256", 2)]
)
def test_shipped_route_runs(sizes: str, threads: int) -> None:
    hardware = load_hardware("x86_avx2")
    if missing := runnable(hardware):
        pytest.skip(missing)
    text = GEMM.format(a="values 0 .. 255", b="values -64 .. 63")
    source = kernel(text.replace("M = 5, N = 11, K = 7", sizes))
    report = isamap.report(source, hardware, isamap.Options(threads=threads))
    assert names(report.result) == ["vpmaddubsw + vpmaddwd + vadd_s32"]
    assert report.execution.way == "native"
    assert report.check is not None
    assert report.check.ok


def test_nothing_is_handed_on_in_memory(tmp_path: Path) -> None:
    """What writes memory and what reads it are no sequence: there is no place in between."""
    through = """
    instruction sums {
      in a : s16[8, 2] @ v    in b : s16[8, 2] @ v    out r : s32[8] @ memory
      r[i] += s32(a[i, k]) * s32(b[i, k])
    }
    instruction add {
      in a : s32[8] @ memory    inout c : s32[8] @ v
      c[i] += a[i]
    }
    """
    text = GEMM.format(a="", b="").replace("u8", "s16").replace("s8", "s16")
    assert found(text, machine(tmp_path, through)) == []


WRITTEN_OUT = """
instruction pairs {
  in a : u8[32] @ v    in b : s8[32] @ v    out r : s16[16] @ v
  r[i] = sat[s16](ORDER)
}
"""
TERMS = ("s32(a[2*i]) * s32(b[2*i])", "s32(a[2*i + 1]) * s32(b[2*i + 1])")


@pytest.mark.parametrize("terms", [TERMS, TERMS[::-1]])
def test_sums_that_are_written_out(terms: tuple[str, str], tmp_path: Path) -> None:
    pairs = WRITTEN_OUT.replace("ORDER", " + ".join(terms))
    hardware = machine(tmp_path, pairs, *ROUTE[1:])
    result = simulate(kernel(GEMM.format(a="values 0 .. 127", b="")), hardware)
    assert names(result) == ["pairs + pairs16 + add32"]
    (needle,) = found(GEMM.format(a="", b=""), hardware)
    assert all(agrees(needle, {"a": (0, 127)}, seed) for seed in range(20))


@pytest.mark.parametrize(
    "other",
    [
        "s32(a[2*i + 1]) * s32(b[2*i])",  # one operand does not move: read at one place and at two
        "s32(a[2*i + 1]) + s32(b[2*i + 1])",
        "s32(a[2*i]) * s32(b[2*i])",
    ],
)
def test_sums_of_unlike_terms_are_none(other: str, tmp_path: Path) -> None:
    pairs = WRITTEN_OUT.replace("ORDER", f"{TERMS[0]} + {other}")
    hardware = machine(tmp_path, pairs, *ROUTE[1:])
    for needle in found(GEMM.format(a="", b=""), hardware):
        assert all(agrees(needle, {"a": (0, 60)}, seed) for seed in range(20))
        assert "pairs" not in parts_of(needle)


CORRECTIONS = (
    "instruction flip { in a : s8[32] @ v  out r : u8[32] @ v  r[i] = u8(a[i]) + 128 }\n",
    "instruction gather { in a : s8[8] @ v  inout c : s32[8] @ v  c[i] += s32(a[i]) }\n",
    """instruction scale {
      in a : s32[8] @ v  in x : s32[] @ imm  inout c : s32[8] @ v  c[i] += a[i] * x[]
    }\n""",
    moves("s8", 8),
)


def test_what_is_declared_holds_of_rewritten_kernels(tmp_path: Path) -> None:
    hardware = machine(tmp_path, *ROUTE, *CORRECTIONS)
    text = GEMM.replace("u8", "s8")
    result = simulate(kernel(text.format(a="values -64 .. 63", b="values -64 .. 64")), hardware)
    assert "pairs + pairs16 + add32" in names(result)
    assert [rewriting.rule for rewriting in result.rewritings] == ["flip-sign"]
    # The copy in the other signedness holds 64 .. 191; all of s8 would make it 0 .. 255.
    with pytest.raises(NoMappingError):
        simulate(kernel(text.format(a="", b="")), hardware)


def test_terms_in_turn_are_by_instructions_that_take_nothing_besides(tmp_path: Path) -> None:
    """``greatest`` needs a constant for ``d`` to do no more than a maximum."""
    several = """
    instruction greatest {
      in a : f32[] @ v    in b : f32[2] @ v    in d : f32[] @ v    out c : f32[2] @ v
      local t : f32[2]
      for i in 0..2
      t[i] max= max(a[], b[i])
      c[i] = t[i] + d[]
    }
    """
    text = """
    kernel k(H = 3) {
      in A : f32[]  in B : f32[H]  in D : f32[]  local T : f32[]  out Y : f32[]
      for h in 0..H
      T[] max= max(A[], B[h])
      Y[] = T[] + D[]
    }
    """
    hardware = machine(tmp_path, several, moves("f32", 2))
    with pytest.raises(NoMappingError):
        simulate(kernel(text), hardware)
