"""Machines whose instructions another machine executes: compiled, run and checked."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import NoMappingError
from isamap.hw.load import load_hardware
from isamap.hw.native import remedy, runnable
from isamap.ir.nodes import Kernel
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report
from isamap.text.load import load_module, parse_module
from isamap_search.budget import Budget

HERE = Path(__file__).parent
OWN = {k.name: k for k in load_module(HERE / "served.ir").kernels}
COMMON = {k.name: k for k in load_module(HERE / "kernels.ir").kernels}
KERNELS = {**COMMON, **OWN}
EVERYWHERE = ("gemm_f32", "gemm_u8s8", "convolution", "broadcast", "in_place")


def computed(kernel: Kernel, name: str, options: Options = Options(prove=False)) -> Report:  # noqa: B008
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: {remedy(machine)}")
    return make_report(kernel, machine, options)


def assert_right(report: Report, way: str) -> None:
    assert report.fault is None, report.fault
    assert report.execution.way == way
    assert report.check is not None
    assert report.check.ok, report.check


@pytest.mark.parametrize("name", KERNELS)
def test_primitives_executed_by_this_cpu(name: str) -> None:
    report = computed(KERNELS[name], "tpp@native")
    assert_right(report, "native")
    assert report.result.services
    assert report.prediction is None  # the time is that of this CPU


@pytest.mark.parametrize(
    ("name", "primitive"),
    [
        ("gemm_s16", "brgemm_s16"),
        ("gemm_f16", "brgemm_f16"),
        ("gemm_half", "brgemm_f16_f16"),
        ("windows_s16", "ternary_muladd_row_s16"),
        ("windows_f16", "ternary_muladd_f16"),
    ],
)
def test_elements_of_16_bits_have_primitives(name: str, primitive: str) -> None:
    result = map_kernel(KERNELS[name], load_hardware("tpp"), Options(prove=False))
    assert result.mappings[-1].matching.needle.name == primitive


@pytest.mark.parametrize("kernel", ["gemm_u16", "gemm_u64"])
def test_other_products_have_none(kernel: str) -> None:
    dtype = kernel.partition("_")[2]
    text = f"kernel k {{ in A : {dtype}[7, 9]  in B : {dtype}[9, 5]  out C : {dtype}[7, 5] "
    (wanted,) = parse_module(text + "C[i, j] += A[i, k] * B[k, j] }").kernels
    with pytest.raises(NoMappingError):
        map_kernel(wanted, load_hardware("tpp"), Options(prove=False))


@pytest.mark.parametrize("server", ["portable_c", "x86_avx2"])
@pytest.mark.parametrize("name", EVERYWHERE)
def test_primitives_executed_by_other_servers(name: str, server: str) -> None:
    assert_right(computed(KERNELS[name], f"tpp@{server}"), "native")


@pytest.mark.parametrize("name", EVERYWHERE)
def test_primitives_executed_by_an_emulated_machine(name: str) -> None:
    assert_right(computed(KERNELS[name], "tpp@aarch64_neon"), "program")


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("gemm16", "gemm_bf16"),
        ("gemm16", "convolution"),
        ("gemm16", "symbols"),
        ("gemm16", "broadcast"),
        ("gemmini", "grouped"),
        ("shapes", "gemm_f32"),
    ],
)
def test_fragments_of_accelerators_are_variables(machine: str, name: str) -> None:
    assert_right(computed(KERNELS[name], f"{machine}@portable_c"), "native")


def test_a_machine_of_tokens_is_executed_in_order() -> None:
    text = """
    kernel k { in A : s8[5, 35]  in B : s8[21, 35]  local T : s32[5, 21]  out C : s8[5, 21]
      T[i, j] += s32(A[i, k]) * s32(B[j, k])
      C[i, j] = s8(T[i, j]) }
    """
    assert_right(computed(parse_module(text).kernels[0], "vta@portable_c"), "native")


def test_calls_that_are_alike_are_one_function() -> None:
    text = """
    kernel k { in A : f32[7, 33]  in B : f32[33, 19]  out C : f32[7, 19]  out D : f32[7, 19]
      C[i, j] += A[i, k] * B[k, j]
      D[i, j] += A[i, k] * B[k, j] }
    """
    result = computed(parse_module(text).kernels[0], "tpp@portable_c").result
    (service,) = result.services
    sizes = dict(service.extents)
    assert (sizes["m"], sizes["n"], sizes["k"], sizes["r"]) == (7, 19, 33, 1)
    assert result.c is not None
    assert result.c.count(f"{service.function}(") == 3  # its definition and two calls


def test_sizes_that_are_not_known_are_parameters() -> None:
    result = computed(COMMON["symbols"], "tpp@portable_c").result
    compiled = result.compile()
    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (65, 64, 3), (70, 130, 66)):
        a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
        np.testing.assert_array_equal(compiled(A=a, B=b)["C"], a @ b)


def test_a_search_measures_what_is_executed() -> None:
    options = Options(prove=False, tune=Budget(trials=3))
    report = computed(COMMON["gemm_f32"], "tpp@portable_c", options)
    assert_right(report, "native")
    assert report.result.tuning is not None
    assert report.result.tuning.measured
    assert report.result.tuning.failed == 0


POOR = """\
format: 1
name: poor
title: it only adds
source: invented
clock: 1 GHz
units: {alu: 1}
storages:
  r: {kind: registers, count: 8, bits: 32, types: {f32: float}}
  imm: {kind: immediate}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction add { in a : f32[] @ r  in b : f32[] @ r  out c : f32[] @ r  c[] = a[] + b[] }
    emit: "{c} = {a} + {b};"
    throughput: 1
    latency: 1
    units: alu
  - semantics: |
      instruction load { in m : f32[] @ memory  out c : f32[] @ r  c[] = m[] }
    emit: "{c} = *{m};"
    throughput: 1
    latency: 1
    units: alu
  - semantics: |
      instruction store { in c : f32[] @ r  out m : f32[] @ memory  m[] = c[] }
    emit: "*{m} = {c};"
    throughput: 1
    latency: 1
    units: alu
toolchain: {compiler: [gcc], flags: [-O1]}
"""


PAIR = """
kernel k { in X : f32[3, 5]  in Z : f32[3, 5]  out Y : f32[3, 5]
  Y[i, j] = X[i, j] OP Z[i, j] }
"""


def test_a_call_that_the_server_does_not_compute_is_named(tmp_path: Path) -> None:
    path = tmp_path / "poor.yaml"
    path.write_text(POOR)
    machine = load_hardware(f"tpp@{path}", trust=True)
    sums, products = (parse_module(PAIR.replace("OP", op)).kernels[0] for op in "+*")
    result = map_kernel(sums, machine)
    x, z = np.full((3, 5), 2, np.float32), np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(result.compile()(X=x, Z=z)["Y"], x + z)
    with pytest.raises(NoMappingError) as error:
        map_kernel(products, machine, Options(rewrite=()))
    (found,) = error.value.diagnostics
    assert found.code == "E723"
    assert found.message.startswith("'poor' does not serve binary_mul")
    assert " with m = " in found.message
    assert found.span is not None
    assert found.span.source.name.endswith("tpp.yaml")
    assert any("nothing on 'poor' computes" in note.message for note in found.notes)


def test_what_is_served_needs_trust_of_both(tmp_path: Path) -> None:
    path = tmp_path / "poor.yaml"
    path.write_text(POOR)
    assert not load_hardware(f"tpp@{path}").trusted
    assert load_hardware(f"tpp@{path}", trust=True).trusted
    assert load_hardware("tpp@portable_c").trusted


def test_the_interpreter_sees_a_wrong_server(tmp_path: Path) -> None:
    path = tmp_path / "poor.yaml"
    path.write_text(POOR.replace("{c} = {a} + {b};", "{c} = {a} - {b};"))
    (kernel,) = parse_module(PAIR.replace("OP", "+")).kernels
    report = make_report(kernel, load_hardware(f"tpp@{path}", trust=True), Options(prove=False))
    assert report.check is not None
    assert not report.check.ok


def test_permissions_reach_the_calls() -> None:
    kernel = COMMON["gemm_f32"]
    strict = replace(kernel, permissions=replace(kernel.permissions, reassociate=False))
    for given in (kernel, strict):
        services = map_kernel(given, load_hardware("tpp@portable_c")).services
        own = {service.kernel.permissions.reassociate for service in services}
        assert own == {given.permissions.reassociate}
