"""An extent of an instruction that has a value is that number, under a name."""

from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.pipeline.report import make_report
from isamap.text.load import parse_module
from tests.hw.test_semantics_native import check_templates

MACHINE = """format: 1
name: named
title: a vector machine with a name for its length
source: invented
clock: 1.0 GHz
units: {v: 1}
storages:
  v: {kind: registers, count: 32, bits: 256}
  imm: {kind: immediate}
  memory: {kind: memory, latency: 100}
instructions:
"""
SEMANTICS = (
    """instruction mla(V = 8) {
        in a : f32[V] @ v    in b : f32[V] @ v    inout c : f32[V] @ v
        c[i] += a[i] * b[i]
      }
    constraints: ["V == 8", "i <= V"]""",
    """instruction take(V = 8, n in 1..9, P) {
        in m : f32[n] @ memory strides [P] pad 0    out r : f32[V] @ v
        for i in 0..V
        r[i] = m[i]
      }""",
    """instruction first(V = 8) {
        in m : f32[] @ memory    out r : f32[V] @ v
        r[i] = m[]
      }""",
    """instruction set(V = 8) {
        in x : f32[] @ imm    out r : f32[V] @ v
        r[i] = x[]
      }""",
    """instruction leave(V = 8, n in 1..9) {
        in r : f32[V] @ v    out m : f32[n] @ memory
        for i in 0..n
        m[i] = r[V - 8 + i]
      }""",
)
WIDER = """format: 1
name: wider
extends: vector_c
lengths: {{D: {d}}}
storages:
  v: {{kind: registers, count: 32, bits: {bits}}}
  v2: {{kind: registers, count: 32, bits: {half}, within: v}}
  v4: {{kind: registers, count: 32, bits: {quarter}, within: v}}
toolchain:
  flags: [-UISAMAP_VECTOR, -DISAMAP_VECTOR={bytes}, -Wno-psabi]
"""
KERNEL = """kernel mm(M = 5, N = 19, K = 6) {
  in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}"""


def machine(folder: Path, named: bool) -> Accelerator:
    entries = [
        f"  - semantics: |\n      {text}\n    throughput: 1\n    latency: 4\n    units: v\n"
        for text in SEMANTICS
    ]
    text = MACHINE + "".join(entries)
    if not named:
        text = text.replace("(V = 8)", "").replace("V = 8, ", "").replace("V", "8")
    path = folder / "machine.yaml"
    path.write_text(text, encoding="utf-8")
    return load_hardware(str(path))


def test_a_named_length_is_the_number(tmp_path: Path) -> None:
    named, plain = machine(tmp_path, named=True), machine(tmp_path, named=False)
    for one, other in zip(named.entries, plain.entries, strict=True):
        assert one.instruction.operands == other.instruction.operands
        assert one.instruction.statements == other.instruction.statements
    (kernel,) = parse_module(KERNEL).kernels
    found, expected = make_report(kernel, named), make_report(kernel, plain)
    assert found.check is not None
    assert found.check.ok, found.check.text
    assert found.result.lowered == expected.result.lowered
    assert found.result.mappings[0].matching.on_axis("i")


def test_a_description_that_extends_gives_lengths_of_its_own(tmp_path: Path) -> None:
    machine(tmp_path, named=True)
    base = (tmp_path / "machine.yaml").read_text(encoding="utf-8")
    (tmp_path / "machine.yaml").write_text(base.replace("V == 8", "V >= 8"), encoding="utf-8")
    child = "format: 1\nname: child\nextends: machine.yaml\nlengths: {V: 16}\n"
    child += "storages:\n  v: {kind: registers, count: 32, bits: 512}\n"
    grandchild = child.replace("child", "last").replace("machine", "child").replace("V: 16", "P: 3")
    (tmp_path / "child.yaml").write_text(child, encoding="utf-8")
    (tmp_path / "last.yaml").write_text(grandchild, encoding="utf-8")
    last = load_hardware(str(tmp_path / "last.yaml"))
    take, first = (last.entry(name).instruction for name in ("take", "first"))
    assert [extent.constant for extent in first.operand("r").shape] == [16]
    assert [pitch.constant for pitch in take.operand("m").strides or ()] == [3]


@pytest.mark.parametrize("bits", [256, 512])
def test_vectors_of_c_have_any_width(bits: int, tmp_path: Path) -> None:
    text = WIDER.format(d=bits // 64, bits=bits, half=bits // 2, quarter=bits // 4, bytes=bits // 8)
    (tmp_path / "wider.yaml").write_text(text, encoding="utf-8")
    wider, given = (
        load_hardware(str(tmp_path / "wider.yaml"), trust=True),
        load_hardware("vector_c"),
    )
    assert wider.storage("v").types == given.storage("v").types
    inherited = frozenset(entry.name for entry in load_hardware("portable_c").entries)
    assert check_templates(wider, inherited, tmp_path) > 200
