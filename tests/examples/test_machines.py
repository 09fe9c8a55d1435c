"""Descriptions among the examples: what their page shows is in them, and they do what they say."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from isamap.diagnostics import IsamapError
from isamap.explain.explain import explain
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.ir.nodes import Kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.targets.test import check_target
from isamap.text.load import load_module, parse_module

ROOT = Path(__file__).parents[2]
MACHINES = ROOT / "examples" / "machines"
FILE = MACHINES / "power8.yaml"
SKETCH = MACHINES / "sketch.yaml"
PAGE = ROOT / "docs" / "new_machine.md"
KERNELS = {k.name: k for k in load_module(ROOT / "tests" / "targets" / "kernels.ir").kernels}
SETS = 500


def machine() -> Accelerator:
    found = load_hardware(str(FILE), trust=True)
    if missing := runnable(found):
        pytest.skip(f"{missing}: isamap targets install examples/machines/{FILE.name}")
    return found


def test_the_page_shows_what_the_file_says() -> None:
    text = FILE.read_text(encoding="utf-8") + SKETCH.read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    lines = {line.partition("  #")[0].rstrip() for line in text.splitlines()}
    for block in blocks:
        assert [line for line in block.splitlines() if line not in lines] in ([], ["    ..."])


def test_the_commands_of_the_page_name_files_that_there_are() -> None:
    lines = re.findall(r"\bisamap (?:map|explain|targets)[^`\n]*", PAGE.read_text("utf-8"))
    files = {word for line in lines for word in line.split() if re.search(r"\.(ir|yaml)$", word)}
    assert len(files) >= 5
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_its_instructions_do_what_they_say() -> None:
    found = check_target(machine(), SETS)
    assert [f"{f.name}: {f.status}\n{f.text}" for f in found.findings if f.status != "right"] == []
    assert len(found.findings) >= 3


@pytest.mark.parametrize(
    ("kernel", "instruction"),
    [("gemm_u8s8", "vmsummbm"), ("gemm_s8", "vmsummbm"), ("convolution", "v_mac_f32")],
)
def test_its_instructions_are_found(kernel: str, instruction: str) -> None:
    report = make_report(KERNELS[kernel], machine(), Options(prove=False))
    assert report.fault is None, report.fault
    used = [s.mapping.matching.needle.name for s in report.result.schedule.statements]
    assert instruction in used
    assert report.execution.way == "program"
    assert report.check is not None
    assert report.check.ok, report.check


OUTER = """
kernel gemm { in A : f16[17, 33]  in B : f16[33, 9]  out C : f32[17, 9]
  C[i, j] += f32(A[i, k]) * f32(B[k, j]) }
kernel convolution { in X : f16[9, 11, 5] pad 0  const F : f16[3, 3, 5, 13]  out Y : f32[5, 6, 13]
  Y[p, q, k] += f32(X[2*p + r - 1, 2*q + s - 1, c]) * f32(F[r, s, c, k]) }
kernel more { in A : f16[9, 10]  in B : f16[10, 9]  inout C : f32[9, 9]
  C[i, j] += f32(A[i, k]) * f32(B[k, j]) }
kernel largest { in A : f32[9]  out B : f32[9]  B[i] = max(A[i], 0) }
"""
OWN = {k.name: k for k in parse_module(OUTER).kernels}
OWN |= {k.name: k for k in load_module(MACHINES / "half_gemm.ir").kernels}


@pytest.mark.parametrize("kernel", ["gemm", "convolution", "half_gemm"])
def test_the_machine_without_c_computes_with_its_outer_products(kernel: str) -> None:
    hardware = load_hardware(str(FILE.with_name("outer.yaml")))
    report = make_report(OWN[kernel], hardware, Options(prove=False))
    assert report.result.schedule.statements[0].mapping.matching.needle.name == "outer"
    assert report.execution.way == "simulated"
    assert report.check is not None
    assert report.check.ok, report.check


def without(name: str) -> Accelerator:
    found = load_hardware(str(FILE.with_name("outer.yaml")))
    return replace(found, entries=tuple(e for e in found.entries if e.name != name))


@pytest.mark.parametrize(
    ("lacking", "kernel", "told"),
    [
        ("prime", "gemm", "no instruction sets a register of acc to 0.0"),
        ("", "more", "the result's register cannot be loaded"),
        ("drain", "gemm", "no instruction takes f32[8, 8] from acc to memory"),
        ("", "largest", "nothing on 'outer' computes statement B"),
    ],
)
def test_what_is_lacking_is_told_as_the_page_says(lacking: str, kernel: str, told: str) -> None:
    with pytest.raises(IsamapError) as caught:
        make_report(OWN[kernel], without(lacking), Options(prove=False))
    assert told in str(caught.value)
    shown = told.replace("statement B", "statement C")
    assert shown in PAGE.read_text("utf-8")


def sketched(kernel: Kernel) -> tuple[float, set[str]]:
    """Return the estimate of a kernel on the sketch, and which instructions it was given."""
    report = make_report(kernel, load_hardware(str(SKETCH)), Options(prove=False))
    assert report.execution.way == "simulated"
    assert report.check is not None
    assert report.check.ok, report.check
    statements = report.result.schedule.statements
    names = {s.mapping.matching.needle.name for s in statements}
    return report.result.estimate.cycles, names


def test_a_sketched_outer_product_is_worth_what_the_page_says() -> None:
    kernel = load_module(ROOT / "examples" / "operators" / "quantized_dense.ir").kernels[0]
    cycles, names = sketched(kernel)
    assert "outer" in names
    page = PAGE.read_text("utf-8")
    assert f"sketch.yaml    # {cycles / 1000:.0f}K cycles" in page
    report = make_report(kernel, load_hardware("vector_c"), Options(prove=False))
    assert f"vector_c                         # {report.result.estimate.cycles / 1000:.0f}K" in page


def test_the_page_tells_what_simulated_cycles_of_a_sketch_are() -> None:
    kernel = load_module(ROOT / "examples" / "operators" / "quantized_dense.ir").kernels[0]
    own = load_hardware(str(SKETCH))
    report = make_report(kernel, own, Options(prove=False))
    busy = 32768 * 2  # each call of the outer product is 4 * 4 * 4 products
    assert 64 * 128 * 256 == 32768 * 4 * 4 * 4
    assert report.execution.cycles is not None
    assert busy < report.execution.cycles < busy + 100
    predicted = report.prediction
    assert predicted is not None
    ratio = predicted.estimate / predicted.measured
    page = PAGE.read_text("utf-8")
    assert f"`predicted {predicted.estimate / 1000:.0f}K cycles ..., {ratio:.2f} times the " in page
    assert f"{report.execution.cycles / 1000:.1f}K simulated` says" in page
    told = {
        f"{found.cycles / 1000:.1f}K"
        for statement in report.result.statements[-2:]
        for found in statement.scheduled
        if found.mapping == statement.chosen and found.cycles is not None
    }
    assert told == set(re.findall(r"([\d.]+K) for (?:the\s+products|scaling)", page))
    lacking = replace(own, entries=tuple(e for e in own.entries if e.name != "outer_load"))
    estimate = make_report(kernel, lacking, Options(prove=False)).result.estimate
    assert f"the same layer takes {estimate.cycles / 1000:.0f}K cycles" in page


def test_a_sketched_sparse_product_is_found_and_explained() -> None:
    kernel = load_module(MACHINES / "sparse.ir").kernels[0]
    assert sketched(kernel)[1] == {"sparse"}
    ((told,),) = (s.instructions for s in explain(kernel, load_hardware(str(SKETCH)), "sparse"))
    assert told.verdict == "matches"
    assert told.correspondence is not None
    storages = {o.name: o.storage for o in told.correspondence.operands}
    assert storages == {"c": "v", "a": "v2", "p": "v2", "b": "v", "place": None}
