"""``isamap match`` as a list of matchings: options, numbers, JSON."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROW = {
    "operator": "mm",
    "instruction": "gemm_f32",
    "family": "exact",
    "listing": "every",
    "operand_orders": "given",
    "nonempty": False,
    "count": 8,
    "complete": True,
    "incomplete_reason": "",
    "proved": True,
    "conditions": [],
    "refused": [],
}
EXACT = ("--family", "exact", "--every", "--operand-orders", "given")


def test_a_row_for_each_instruction(isamap: "Run", matmul: Path) -> None:
    done = isamap("match", matmul, "--hw", "gemm16", *EXACT, "--count", "--json")
    first, second = json.loads(done.out)
    assert first.pop("seconds") >= 0
    assert first == ROW
    assert (second["instruction"], second["count"]) == ("acc_mac_f32", 1)  # k is on no axis


def test_every_axis_used(isamap: "Run", matmul: Path) -> None:
    options = ["--instruction", "gemm_f32", "--nonempty", "--count", "--json"]
    (row,) = json.loads(isamap("match", matmul, "--hw", "gemm16", *EXACT, *options).out)
    assert (row["nonempty"], row["count"]) == (True, 1)


def test_matchings_are_listed(isamap: "Run", matmul: Path) -> None:
    options = ["--instruction", "gemm_f32", "--nonempty", "--json"]
    (row,) = json.loads(isamap("match", matmul, "--hw", "gemm16", *EXACT, *options).out)
    assert row["listed"] == 1
    assert row["matchings"][0]["axes"] == {"i": ["m"], "j": ["n"], "k": ["k"]}
    assert set(row["matchings"][0]["operands"]) == {"a", "b"}


def test_what_maps_is_listed_beside_what_does_not(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "scores.ir"
    path.write_text(
        "kernel scores { in Q : f32[32, 16]  in K : f32[48, 16]  local S : f32[32, 48]\n"
        "  out E : f32[32, 48]\n  S[i, j] += Q[i, k] * K[j, k]\n  E[i, j] = exp(S[i, j]) }\n"
    )
    done = isamap("match", path, "--hw", "gemm16")
    assert done.code == 3
    assert "gemm_f32" in done.out
    assert "E[i, j] = exp(S[i, j])\n    no legal mapping" in done.out
    assert "error[E721]: nothing on 'gemm16' computes statement E" in done.err
    assert isamap("match", path, "--hw", "gemm16", "--json").out == ""


def test_a_few_are_shown_and_all_on_request(isamap: "Run", matmul: Path) -> None:
    options = ["match", matmul, "--hw", "gemm16", "--instruction", "gemm_f32", "--every"]
    few, all_ = isamap(*options), isamap(*options, "--all")
    assert "72 matchings, proved" in few.out
    assert "8 shown (--all shows the rest)" in few.out
    assert "shown" not in all_.out
    assert len(all_.out.splitlines()) == len(few.out.splitlines()) + 63
    assert max(map(len, all_.out.splitlines())) <= 80


def test_orders_of_operands(isamap: "Run", matmul: Path) -> None:
    options = ["match", matmul, "--hw", "gemm16", "--instruction", "gemm_f32", "--count", "--json"]
    counts = [
        json.loads(isamap(*options, "--operand-orders", orders).out)[0]["count"]
        for orders in ("given", "distinct", "all")
    ]
    assert counts == [4, 4, 8]


def test_the_suite_of_operators(isamap: "Run") -> None:
    done = isamap("match", "--suite", "operators", "--hw", "gemm16", *EXACT, "--json")
    rows = {r["operator"]: r for r in json.loads(done.out) if r["instruction"] == "gemm_f32"}
    assert len(rows) == 15
    known = {"GMM": 8, "C1D": 32, "C2D": 128, "DEP": 64}
    assert {name: rows[name]["count"] for name in known} == known
    assert all(row["complete"] and row["proved"] is True for row in rows.values())


def test_the_suite_as_a_table(isamap: "Run") -> None:
    done = isamap("match", "--suite", "operators", "--hw", "shapes", "--instruction", "dot16")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert sum(" dot16 " in line for line in done.out.splitlines()) == 15


def test_what_nothing_computes_has_no_row(isamap: "Run", matmul: Path) -> None:
    options = ["--instruction", "gemm_s8", "--count"]
    done = isamap("match", matmul, "--hw", "gemm16", *options)
    assert (done.code, "no instruction computes" in done.out) == (0, True)
    assert json.loads(isamap("match", matmul, "--hw", "gemm16", *options, "--json").out) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--hw", "gemm16"],
        ["mm.ir", "--suite", "operators", "--hw", "gemm16"],
        ["--suite", "operators", "--hw", "gemm16", "--set", "N=4"],
        ["--suite", "operators", "--hw", "gemm16", "--family", "all"],
        ["mm.ir", "--hw", "gemm16", "--every", "--maximal"],
        ["mm.ir", "--hw", "gemm16", "--rewrites", "--count"],
        ["mm.ir", "--hw", "gemm16", "--rewrites", "--nonempty"],
    ],
)
def test_usage(isamap: "Run", options: list[str]) -> None:
    assert isamap("match", *options).code == 2


def test_an_unknown_suite(isamap: "Run") -> None:
    done = isamap("match", "--suite", "layers", "--hw", "gemm16")
    assert done.code == 1
    assert "E708" in done.err
    assert "operators" in done.err


def test_an_open_extent_is_matched_and_not_lowered(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    machine = tmp_path / "vector.yaml"
    machine.write_text(
        """format: 1
name: vector
title: lanes of any number
source: none
clock: 1.0 GHz
cores: 1
issue: 1
units: {v: 1}
storages:
  reg: {kind: registers, count: 32, bits: 512}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction mac(V >= 4 pow2) {
        in a : f32[V] @ reg    in b : f32[] @ reg    inout c : f32[V] @ reg
        c[i] += a[i] * b[]
      }
    throughput: 1
    latency: 4
    units: v
""",
        encoding="utf-8",
    )
    done = isamap(
        "match", matmul, "--hw", machine, "--count", "--operand-orders", "given", "--json"
    )
    (row,) = json.loads(done.out)
    assert (row["count"], row["proved"]) == (1, True)
    refused = isamap("map", matmul, "--hw", machine)
    assert refused.code == 3
    assert "leaves its extent V open" in refused.err


def rows(text: str) -> list[str]:
    """Return the rows of the tables of mappings, wrapped cells joined, without their cycles."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("    instruction"):
            inside = True
        elif inside and re.match(r"    (\d+ legal|\[1\]|refused|not tried)", line):
            inside = False
        elif inside and re.search(r"%", line):
            found.append(re.sub(r"\S+$", "", line))
        elif inside:
            found[-1] += line
    return found


@pytest.mark.parametrize("hardware", ["gemm16", "x86_avx512"])
def test_no_two_rows_look_alike(isamap: "Run", matmul: Path, hardware: str) -> None:
    for more in ((), ("--all",)):
        told = rows(isamap("match", matmul, "--hw", hardware, *more).out)
        assert len(told) > 5
        assert len(set(told)) == len(told)


def test_what_computes_an_operand_is_named(isamap: "Run", matmul: Path) -> None:
    out = isamap("match", matmul, "--hw", "portable_c").out
    assert re.search(r"^    c_mul_f32 \+ c_add_f32 ", out, re.MULTILINE)


SUMMED = """\
kernel summed(N = 64) {
  in  A : f32[N]
  in  B : f32[N]
  out X : f32[N]
  X[i] += A[i] * B[i]
}
"""


def test_mappings_without_code_say_why(isamap: "Run", tmp_path: Path) -> None:
    """A sum over lanes takes what nothing makes for it: one product in one lane."""
    path = tmp_path / "summed.ir"
    path.write_text(SUMMED)
    out = isamap("match", path, "--hw", "x86_avx512", "--all").out
    (number,) = set(re.findall(r"^    vsum_f32 .*no code (\[\d\])$", out, re.MULTILINE))
    assert f"    {number} operand 'a' of vsum_f32 cannot be brought to it: " in out


COPY = """\
kernel copy(M = 64, N = 64) {
  in  A : f32[M, N]
  out B : f32[N, M]
  B[n, m] = A[m, n]
}
"""


def test_rules_that_gain_nothing_are_not_told(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "copy.ir"
    path.write_text(COPY)
    assert "rewritten by" not in isamap("match", path, "--hw", "gemm16", "--rewrites").out


SIGNED = """\
kernel signed(M = 8, N = 8, K = 8) {
  in  A : s8[M, K]
  in  B : s8[K, N]
  out C : s32[M, N]
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
}
"""


def test_further_ways_of_one_rule_are_told_in_a_line(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "signed.ir"
    path.write_text(SIGNED)
    few = isamap("match", path, "--hw", "x86_avx2", "--rewrites").out
    assert few.count("rewritten by flip-sign") == 1
    assert few.count("\n  or: B_u8[i, j] = u8(B[i, j]) + 128") == 1
    every = isamap("match", path, "--hw", "x86_avx2", "--rewrites", "--all").out
    assert every.count("rewritten by flip-sign") == 2
