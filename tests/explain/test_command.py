"""The command: what it tells of whole machines, its document, its exit codes."""

from pathlib import Path
from typing import TYPE_CHECKING

from isamap.text.load import parse_module

if TYPE_CHECKING:
    from tests.cli.conftest import Run

MISFITS = Path(__file__).parent / "misfits"
MATMUL = """\
kernel mm(M = 20, N = 20, K = 3) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}
"""


def test_document(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "mm.ir"
    path.write_text(MATMUL)
    done = isamap("explain", path, "--hw", "gemm16", "--instruction", "gemm", "--json")
    assert done.code == 3
    done = isamap("explain", path, "--hw", "gemm16", "--instruction", "gemm_f32", "--json")
    assert done.code == 0
    (statement,) = done.json["statements"]
    assert statement["maps"]
    assert statement["place"] == {"file": str(path), "line": 5, "column": 3}
    (told,) = statement["instructions"]
    assert told["verdict"] == "matches"
    found = told["correspondence"]
    assert [o["stands_for"] for o in found["operands"]] == ["C[m, n]", "A[m, k]", "B[k, n]"]
    k = next(axis for axis in found["axes"] if axis["axis"] == "k")
    assert (k["extent"], k["used"]) == (16, 3)
    assert any(r["text"] == "k has only 3 iterations" for r in k["why"])
    for reason in k["why"]:
        assert reason["kernel"]["file"] == str(path)
        assert reason["hardware"]["file"].endswith("gemm16.yaml")


def test_changed_kernels_are_texts(isamap: "Run") -> None:
    name = MISFITS / "wrong_type"
    arguments = (f"{name}.ir", "--hw", f"{name}.yaml", "--instruction", "mma", "--json")
    (statement,) = isamap("explain", *arguments).json["statements"]
    (told,) = statement["instructions"]
    assert told["verdict"] == "differs"
    assert [r["kind"] for r in told["reasons"]] == ["type", "type"]
    (kernel,) = parse_module(told["changes"][0]["kernel"]).kernels
    assert {b.dtype.name for b in kernel.buffers if b.role == "in"} == {"bf16"}


def test_nearest_first_and_not_too_many(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "mm.ir"
    path.write_text(MATMUL)
    few = isamap("explain", path, "--hw", "gemm16", "--json")
    assert few.code == 0
    (statement,) = few.json["statements"]
    told = statement["instructions"]
    assert told[0]["instruction"] == "gemm_f32"
    assert len(told) < 10
    assert statement["left_out"] > 0
    distances = [t["distance"] for t in told]
    assert distances == sorted(distances)
    # Instantiations of one generic instruction share an entry.
    names = [t["instruction"] for t in told] + [n for t in told for n in t["alike"]]
    assert len(names) == len(set(names))


FUSED = """\
format: 1
name: fused
title: a product with bias and maximum in one instruction
extends: base.yaml
source: made for tests
instructions:
  - semantics: |
      instruction mm_relu {
        in a : f32[4, 4] @ t   in b : f32[4, 4] @ t   in bias : f32[4] @ v   out r : f32[4, 4] @ t
        local s : f32[4, 4] @ t
        s[i, j] += a[i, k] * b[k, j]
        r[i, j] = max(s[i, j] + bias[j], 0)
      }
    throughput: 1
    latency: 1
    units: alu
"""
LAYER = """\
kernel layer(M = 8, N = 8, K = 4) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  in  C : f32[N]
  local S : f32[M, N]
  out Y : f32[M, N]
  S[m, n] += A[m, k] * B[k, n]
  Y[m, n] = max(S[m, n] + C[n], 0)
}
"""


def test_statements_together(isamap: "Run", tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text((MISFITS / "base.yaml").read_text())
    machine, path = tmp_path / "fused.yaml", tmp_path / "layer.ir"
    machine.write_text(FUSED)
    for old, new, verdict, kind in (
        ("K = 4", "K = 4", "matches", None),
        ("K = 4", "K = 16", "differs", "extent"),
        ("max(", "min(", "differs", "operation"),
    ):
        path.write_text(LAYER.replace(old, new))
        done = isamap("explain", path, "--hw", machine, "--instruction", "mm_relu", "--json")
        assert done.code == (0 if verdict == "matches" else 3)
        for statement in done.json["statements"]:
            (told,) = statement["instructions"]
            assert told["verdict"] == verdict
            assert told["together"] == ["S", "Y"]
            assert [r["kind"] for r in told["reasons"]] == [kind] * (kind is not None)
            texts = ["give K the value 4"] if kind == "extent" else []
            assert [c["text"] for c in told["changes"]] == texts


def test_statements_together_are_listed(isamap: "Run", tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text((MISFITS / "base.yaml").read_text())
    machine, path = tmp_path / "fused.yaml", tmp_path / "layer.ir"
    machine.write_text(FUSED)
    path.write_text(LAYER)
    for more in ((), ("--instruction", "mm_relu")):
        done = isamap("match", path, "--hw", machine, *more)
        assert done.code == 0
        assert "computed together: S and Y" in done.out
        (told,) = isamap("match", path, "--hw", machine, *more, "--json").json["together"]
        assert told["covers"] == ["S", "Y"]
        assert told["mappings"][0]["axes"] == {"i": ["m"], "j": ["n"], "k": ["k"]}
    path.write_text(LAYER.replace("K = 4", "K = 16"))
    done = isamap("match", path, "--hw", machine, "--instruction", "mm_relu")
    assert done.code == 3
    assert "whole reduction over k (16 steps)" in done.err


CLAMP = """\
kernel clamp(N = 16) {
  in  A : f32[N]
  out C : f32[N]
  C[n] = max(A[n] + 1, 0)
}
"""


def test_a_store_that_cannot_compute_only_moves_data(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "clamp.ir"
    path.write_text(CLAMP)
    told = isamap("explain", path, "--hw", "portable_c", "--instruction", "c_store_f32")
    assert told.code == 3
    assert "c_store_f32 only moves data" in told.out
    assert "c_store" not in isamap("explain", path, "--hw", "portable_c", "--all").out


def test_unknown_instruction(isamap: "Run") -> None:
    path = MISFITS / "wrong_type"
    done = isamap("explain", f"{path}.ir", "--hw", f"{path}.yaml", "--instruction", "mna")
    assert done.code == 1
    assert "error[E704]" in done.err
    assert "did you mean mma" in done.err


def test_within_eighty_columns(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "mm.ir"
    path.write_text(MATMUL)
    done = isamap("explain", path, "--hw", "gemm16", "--all")
    places = [line for line in done.out.splitlines() if str(path) in line]
    assert all(len(line) <= 80 for line in done.out.splitlines() if line not in places)
    assert done.out.isascii()
