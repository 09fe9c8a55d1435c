"""Operations that are spelled out in others: truth values as numbers, sizes of integers."""

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.dtype import DTYPES
from isamap.ir.literal import canonical, largest
from isamap.ir.nodes import Expr, Literal, Op
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.rewrite.apply import rewritings
from isamap.rewrite.arithmetic import equal
from isamap.rewrite.rules import rules_for
from isamap.solver.lemma import prove
from tests.rewrite.products import assert_valid, kernel_of

RULE = rules_for((), ("bool-by-select",))
SIZE = rules_for((), ("abs-by-max",))
LIMITS = rules_for((), ("sat-by-limits",))
EDGES = "0 -0.0 0.5 1.5 2.5 -0.5 -1.5 0.75 126.5 127.5 127.75 128 -128.5 -129 254.5 255.5 256 "
EDGES += "32767 32768 65504 -65504 2147483520 2147483648 -2147483648 4294967296 9e18 1e30 -1e30 "
EDGES += "nan inf -inf"


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        ("s32(A[i] > B[i])", "s32", "select(A[i] > B[i], 1, 0)"),
        ("f32(A[i] > 0) * B[i]", "f32", "select(A[i] > 0.0, 1.0, 0.0) * B[i]"),
        ("u8(M[i]) + u8(~M[i])", "u8", "select(M[i], 1, 0) + select(~M[i], 1, 0)"),
        ("f16(M[i])", "f16", "select(M[i], 1.0, 0.0)"),
    ],
)
def test_a_number_of_a_truth_value_is_selected(value: str, dtype: str, want: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in A : f32[50]\nin B : f32[50]\nin M : bool[50]\nout C : {dtype}[50]\n"
        f"C[i] = {value} }}"
    )
    (only,) = rewritings(kernel, 0, RULE).proved
    assert print_statement(only.kernel.statements[0]) == f"C[i] = {want}"
    assert_valid(only, kernel)
    inputs = random_inputs(kernel, seed=1)
    got, wanted = interpret(only.kernel, inputs), interpret(kernel, inputs)
    assert (got["C"] == wanted["C"]).all()


@pytest.mark.parametrize("value", ["s32(A[i])", "select(A[i] > 0, 1, 0)"])
def test_nothing_else_is(value: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : f32[5]\nout C : s32[5]\nC[i] = {value} }}")
    found = rewritings(kernel, 0, RULE)
    assert not (*found.proved, *found.refused)


@pytest.mark.parametrize("hardware", ["x86_avx512", "x86_avx2", "aarch64_neon", "wasm_relaxed"])
def test_elements_that_satisfy_a_condition_are_counted_in_vectors(hardware: str) -> None:
    kernel = kernel_of("kernel k { in A : f32[4096]\nout C : s32[]\nC[] += s32(A[k] > 0.5) }")
    result = map_kernel(kernel, load_hardware(hardware), Options(prove=False))
    # In either order they make the same of it.
    assert sorted(r.rule for r in result.rewritings) == ["bool-by-select", "split-reduction"]
    assert not any(name.startswith("c_gt") for name in result.estimate.instructions)


@pytest.mark.parametrize("dtype", ["s8", "s16", "s32", "s64"])
def test_the_size_of_an_integer_is_the_larger_one_of_it_and_its_negative(dtype: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in A : {dtype}[300]\nout C : {dtype}[300]\nC[i] = abs(A[i] - 1) * 2 }}"
    )
    (only,) = rewritings(kernel, 0, SIZE).proved
    text = print_statement(only.kernel.statements[0])
    assert text == "C[i] = max(A[i] - 1, 0 - (A[i] - 1)) * 2"
    ends = np.iinfo(dtype.replace("s", "int"))
    values = np.resize(np.array([ends.min, ends.min + 1, ends.min + 2, ends.max, -1, 0, 1, 2]), 300)
    inputs = {"A": values.astype(ends.dtype)}
    got, wanted = interpret(only.kernel, inputs), interpret(kernel, inputs)
    assert (got["C"] == wanted["C"]).all()


def test_sizes_of_floats_are_no_maxima() -> None:
    kernel = kernel_of("kernel k { in A : f32[5]\nout C : f32[5]\nC[i] = abs(A[i]) }")
    assert not rewritings(kernel, 0, SIZE).proved


@pytest.mark.parametrize("hardware", ["x86_avx512", "x86_avx2", "aarch64_neon", "aarch64_sve2"])
@pytest.mark.parametrize("value", ["abs(A[i])", "-A[i]"])
def test_sizes_and_negatives_of_integers_are_computed_in_vectors(hardware: str, value: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : s32[4096]\nout C : s32[4096]\nC[i] = {value} }}")
    result = map_kernel(kernel, load_hardware(hardware), Options(prove=False))
    assert not any(name.startswith("c_") for name in result.estimate.instructions)


@pytest.mark.parametrize(
    ("own", "to", "want"),
    [
        ("s32", "s8", "s8(min(max(A[i], -128), 127))"),
        ("s32", "u8", "u8(min(max(A[i], 0), 255))"),
        ("s8", "u8", "u8(max(A[i], 0))"),
        ("u8", "s8", "s8(min(A[i], 127))"),
        ("s8", "s16", "s16(A[i])"),
        ("s16", "u64", "u64(max(A[i], 0))"),
    ],
)
def test_what_saturates_is_converted_between_limits(own: str, to: str, want: str) -> None:
    kernel = kernel_of(f"kernel k {{ in A : {own}[99]\nout C : {to}[99]\nC[i] = sat[{to}](A[i]) }}")
    (only,) = rewritings(kernel, 0, LIMITS).proved
    assert print_statement(only.kernel.statements[0]) == f"C[i] = {want}"
    assert_valid(only, kernel)
    ends = np.iinfo(own.replace("s", "int").replace("u", "uint"))
    near = [n for n in (ends.min, -129, -128, -1, 0, 127, 128, 255, 256, ends.max)]
    values = [n for n in near if ends.min <= n <= ends.max]
    inputs = {"A": np.resize(np.array(values, ends.dtype), 99)}
    got, wanted = interpret(only.kernel, inputs), interpret(kernel, inputs)
    assert (got["C"] == wanted["C"]).all()


def test_floats_that_saturate_are_not() -> None:
    kernel = kernel_of("kernel k { in A : f32[5]\nout C : s8[5]\nC[i] = sat[s8](A[i]) }")
    found = rewritings(kernel, 0, LIMITS)
    assert not (*found.proved, *found.refused)


def test_a_machine_without_saturation_requantises() -> None:
    kernel = kernel_of(
        "kernel k { in A : s8[16, 32]\nconst B : s8[16, 32]\nlocal S : s32[16, 16]\n"
        "out Y : s8[16, 16]\nS[m, n] += s32(A[m, k]) * s32(B[n, k])\n"
        "Y[m, n] = sat[s8](S[m, n] >> 7) }"
    )
    result = map_kernel(kernel, load_hardware("vta"), Options(prove=False))
    assert [r.rule for r in result.rewritings] == ["sat-by-limits"]


@pytest.mark.parametrize("to", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("own", ["f16", "bf16", "f32", "f64"])
def test_lemmas_round_and_saturate_as_the_interpreter_does(own: str, to: str) -> None:
    source, target = DTYPES[own], DTYPES[to]
    texts = [t for t in EDGES.split() if t[-1] in "nf" or abs(float(t)) <= largest(source)]
    size = len(texts)
    kernel = kernel_of(
        f"kernel k {{ in A : {own}[{size}]\nout C : {to}[{size}]\nC[i] = sat[{to}](A[i]) }}"
    )
    given = [Literal(canonical(text, source), source) for text in texts]
    array = np.array([float(one.text) for one in given]).astype(source.numpy)
    numbers = [int(n) for n in interpret(kernel, {"A": array})["C"]]
    pairs: list[tuple[Expr, Expr]] = [
        (Op("sat", (one,), target), Literal(str(number), target))
        for one, number in zip(given, numbers, strict=True)
    ]
    assert prove(equal("sat", "edges", pairs)).verdict == "proved"
    for (left, right), number in zip(pairs, numbers, strict=True):
        other = Literal(str(number - 1 if number > 0 else number + 1), target)
        assert right != other
        assert prove(equal("sat", "another", [(left, other)])).verdict == "refuted"


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        ("A[i] - 3", "f32", "A[i] + -3.0"),
        ("A[i] - -0.5", "f32", "A[i] + 0.5"),
        ("B[i] - 128", "s32", "B[i] + -128"),
        ("B[i] - -2147483648", "s32", "B[i] + -2147483648"),
        ("D[i] - 3", "u8", "D[i] + 253"),
        ("D[i] - 0", "u8", "D[i] + 0"),
    ],
)
def test_less_a_number_is_plus_its_negative(value: str, dtype: str, want: str) -> None:
    kernel = kernel_of(
        f"kernel k {{ in A : f32[50]\nin B : s32[50]\nin D : u8[50]\nout C : {dtype}[50]\n"
        f"C[i] = {value} }}"
    )
    (only,) = rewritings(kernel, 0, rules_for((), ("sub-by-add",))).proved
    assert print_statement(only.kernel.statements[0]) == f"C[i] = {want}"
    assert_valid(only, kernel)
    inputs = random_inputs(kernel, seed=1)
    got, wanted = interpret(only.kernel, inputs), interpret(kernel, inputs)
    assert (got["C"] == wanted["C"]).all()


def test_less_something_else_stays() -> None:
    kernel = kernel_of("kernel k { in A : f32[5]\nout C : f32[5]\nC[i] = 1 - A[i] }")
    found = rewritings(kernel, 0, rules_for((), ("sub-by-add",)))
    assert not (*found.proved, *found.refused)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("s8(min(max(A[i], -128), 127))", "sat[s8](A[i])"),
        ("s8(min(max(A[i], 0), 127))", "max(sat[s8](A[i]), 0)"),
        ("s8(max(min(A[i], 127), -128))", "sat[s8](A[i])"),
        ("s8(min(max(A[i], 0), 6))", "min(max(sat[s8](A[i]), 0), 6)"),
        ("s8(min(max(127, A[i]), 127))", "max(sat[s8](A[i]), 127)"),
        ("s8(min(max(A[i], 0), 200))", None),
        ("s8(min(A[i], 5))", None),
        ("s8(max(min(A[i], 300), -128))", None),
        ("s8(A[i])", None),
    ],
)
def test_limits_of_a_type_are_what_saturates_to_it(value: str, want: str | None) -> None:
    kernel = kernel_of(f"kernel k {{ in A : s32[99]\nout C : s8[99]\nC[i] = {value} }}")
    found = rewritings(kernel, 0, rules_for((), ("limits-by-sat",)))
    assert not found.refused
    texts = [print_statement(one.kernel.statements[0]) for one in found.proved]
    assert texts == ([] if want is None else [f"C[i] = {want}"])
    inputs = {"A": np.arange(-400, 389, 8, dtype=np.int32)[:99]}
    wanted = interpret(kernel, inputs)["C"]
    for one in found.proved:
        assert_valid(one, kernel)
        assert (interpret(one.kernel, inputs)["C"] == wanted).all()


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        ("sat[s8](F[i] * 0.1)", "s8", "sat[s8](sat[s32](F[i] * 0.1))"),
        ("sat[u8](F[i])", "u8", "sat[u8](sat[s32](F[i]))"),
        ("sat[u16](F[i])", "u16", "sat[u16](sat[s32](F[i]))"),
        ("sat[s32](F[i])", "s32", None),
        ("sat[u32](F[i])", "u32", None),
        ("sat[s8](A[i])", "s8", None),
    ],
)
def test_a_float_saturates_to_a_wide_integer_first(
    value: str, dtype: str, want: str | None
) -> None:
    kernel = kernel_of(
        f"kernel k {{ in F : f32[99]\nin A : s32[99]\nout C : {dtype}[99]\nC[i] = {value} }}"
    )
    found = rewritings(kernel, 0, rules_for((), ("sat-in-steps",)))
    assert not found.refused
    texts = [print_statement(one.kernel.statements[0]) for one in found.proved]
    assert texts == ([] if want is None else [f"C[i] = {want}"])
    inputs = random_inputs(kernel, seed=4)
    inputs["F"][:9] = [np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5, 2**31, -1e30, 3e9]
    wanted = interpret(kernel, inputs)["C"]
    for one in found.proved:
        assert_valid(one, kernel)
        assert (interpret(one.kernel, inputs)["C"] == wanted).all()
