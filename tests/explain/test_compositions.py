"""Compositions by name: those that compute a statement, and what the others need."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module
from tests.mapping.machines import names, simulate

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import Golden

HERE = Path(__file__).parent / "compositions"
SEQUENCE = "pairs8 + pairs16 + add"


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """Return the kernel with values declared."""
    path = tmp_path / "product.ir"
    text = (HERE / "product.ir").read_text(encoding="utf-8")
    path.write_text(text.replace("u8[M, K]", "u8[M, K] values 0 .. 127"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "options", [("explain",), ("match", "--count"), ("match", "--instruction", "pairs16")]
)
def test_what_is_said_of_an_unmet_condition(
    options: tuple[str, ...], isamap: "Run", golden: "Golden", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    command, *more = options
    done = isamap(command, "product.ir", "--hw", "pairs.yaml", *more)
    said = "\n".join(line for line in done.err.splitlines() if not line.startswith("isamap:"))
    # The time that it took is the last column of a table.
    out = re.sub(r" +([\d.]+ [num]?s|time)$", "", done.out, flags=re.MULTILINE)
    text = f"{out}--- stderr\n{said}\n--- exit {done.code}\n"
    golden(HERE / f"{'_'.join(o.strip('-') for o in options)}.expect", text)


def test_changes_are_enough_and_not_too_much(isamap: "Run") -> None:
    done = isamap("explain", HERE / "product.ir", "--hw", HERE / "pairs.yaml", "--json")
    assert done.code == 3
    (statement,) = done.json["statements"]
    told = next(t for t in statement["instructions"] if t["instruction"] == SEQUENCE)
    assert [part["instruction"] for part in told["parts"]] == SEQUENCE.split(" + ")
    assert (told["verdict"], [r["kind"] for r in told["reasons"]]) == ("differs", ["values"])
    assert [c["text"] for c in told["changes"]] == [
        "declare that A holds 0 .. 128",
        "declare that B holds -64 .. 64",
    ]
    machine = load_hardware(str(HERE / "pairs.yaml"))
    for change in told["changes"]:
        (kernel,) = parse_module(change["kernel"]).kernels
        assert names(simulate(kernel, machine)) == [SEQUENCE]


@pytest.mark.parametrize("part", ["pairs8", "pairs16", "add"])
def test_each_part_leads_to_the_composition(isamap: "Run", product: Path, part: str) -> None:
    machine = ("--hw", HERE / "pairs.yaml", "--instruction", part, "--json")
    explained = isamap("explain", product, *machine)
    assert explained.code == 0
    first = explained.json["statements"][0]["instructions"][0]
    assert (first["instruction"], first["verdict"]) == (SEQUENCE, "matches")
    assert "A[m, k] in 0 .. 127" in first["correspondence"]["mapping"]["conditions"][0]
    (found,) = isamap("match", product, *machine).json["statements"]
    assert SEQUENCE in {m["instruction"] for m in found["mappings"]}
    (row,) = json.loads(isamap("match", product, *machine, "--count").out)
    assert (row["instruction"], row["count"] > 0, row["refused"]) == (SEQUENCE, True, [])
    assert "A[m, k] in 0 .. 127" in row["conditions"][0]


SIGNED = """\
kernel signed(M = 16, N = 16, K = 16) {
  in    A : s8[M, K]
  const B : s8[K, N]
  out   C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}
"""


def test_compositions_after_a_rewriting(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "signed.ir"
    path.write_text(SIGNED)
    arguments = (path, "--hw", "x86_avx2", "--instruction", "vpmaddubsw", "--json")
    (statement,) = isamap("explain", *arguments).json["statements"]
    sequences = [t for t in statement["instructions"] if len(t["parts"]) > 1]
    told = next(t for t in sequences if t["verdict"] == "differs")
    (reason,) = told["reasons"]
    assert reason["text"].startswith("after flip-sign it needs that")
    change = next(c for c in told["changes"] if c["text"] == "declare that B holds -64 .. 64")
    path.write_text(change["kernel"])
    done = isamap("explain", *arguments)
    assert done.code == 0
    (statement,) = done.json["statements"]
    after = next(t for t in statement["instructions"] if t["instruction"] == told["instruction"])
    assert after["verdict"] == "rewritten"
    assert [r["rule"] for r in after["rewriting"]] == ["flip-sign"]
    assert "B[k, n] in -64 .. 64" in after["correspondence"]["mapping"]["conditions"][0]


def test_a_composition_is_counted_like_an_instruction(isamap: "Run", product: Path) -> None:
    """A composition counts as an instruction with its axes: i of 8, which all see, and k of 4."""
    machine = ("--hw", HERE / "pairs.yaml")
    options = ("--family", "exact", "--every", "--operand-orders", "given", "--count", "--json")
    (row,) = json.loads(isamap("match", product, *machine, *options).out)
    assert row["proved"]
    machine_ = load_hardware(str(HERE / "pairs.yaml"))
    (kernel,) = parse_module(product.read_text(encoding="utf-8")).kernels
    chosen = map_kernel(kernel, machine_).mappings[0].matching.needle
    assert sorted(axis.extent for axis in chosen.axes) == [4, 8]
    assert row["count"] == 2  # nothing, or k on k: m and n are seen by one factor alone


def test_an_instruction_for_some_values_says_which(isamap: "Run") -> None:
    done = isamap(
        *("explain", HERE.parents[1] / "targets" / "kernels.ir", "--kernel", "gemm_s8"),
        *("--hw", "wasm_relaxed", "--instruction", "v_dot4_relaxed_s8", "--json"),
    )
    (statement,) = done.json["statements"]
    (told,) = statement["instructions"]
    assert told["verdict"] == "differs"
    assert any("B[k, j] is a value of s8, 0 .. 127" in r["text"] for r in told["reasons"])
    assert "declare that B holds 0 .. 127" in [c["text"] for c in told["changes"]]
