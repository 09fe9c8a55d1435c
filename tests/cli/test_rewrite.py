"""Rewriting from the command line: chosen rules, and what they enable."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """Return the path of a kernel that sums rows."""
    path = tmp_path / "sums.ir"
    path.write_text(
        "kernel sums {\n  in X : f32[40, 50]\n  out Y : f32[40]\n  Y[i] += X[i, j]\n}\n"
    )
    return path


def test_rules_are_chosen_by_name(isamap: "Run", sums: Path) -> None:
    def rules(*arguments: object) -> list[str]:
        done = isamap("map", sums, "--hw", "gemm16", "--json", *arguments)
        assert done.code == 0
        return [one["rule"] for one in done.json["rewritings"]]

    assert rules() == ["insert-identity"]
    assert rules("--rewrite", "contract,insert-identity") == ["insert-identity"]
    assert rules("--rewrite", "contract") == []
    assert rules("--rewrite", "none") == []


def test_an_unknown_rule_is_refused_with_the_names_of_all(isamap: "Run", sums: Path) -> None:
    done = isamap("map", sums, "--hw", "gemm16", "--rewrite", "guess")
    assert done.code != 0
    assert "'guess' is no rule" in done.err
    assert "insert-identity" in done.err


def test_the_document_has_the_statement_before_and_the_kernel_after(
    isamap: "Run", sums: Path
) -> None:
    document = isamap("map", sums, "--hw", "gemm16", "--json").json
    (rewriting,) = document["rewritings"]
    assert rewriting["before"] == "Y[i] += X[i, j]"
    assert "Y[i] += X[i, j] * 1.0" in rewriting["kernel"]
    assert rewriting["lemmas"][0]["claim"] == "X[i, j] = X[i, j] * 1.0"
    assert document["statements"][0]["text"] == "Y[i] += X[i, j] * 1.0"
    assert document["checked"]


def test_match_lists_what_rewriting_enables(isamap: "Run", sums: Path) -> None:
    plain = isamap("match", sums, "--hw", "gemm16", "--json").json
    assert "rewritings" not in plain
    document = isamap("match", sums, "--hw", "gemm16", "--rewrites", "--json").json
    (way,) = document["rewritings"]
    assert way["rule"] == "insert-identity"
    assert "gemm_f32" in {m["instruction"] for m in way["statements"][0]["mappings"]}
    text = isamap("match", sums, "--hw", "gemm16", "--rewrites").out
    assert "rewritten by insert-identity: Y[i] += X[i, j]" in text
