"""What docs/explain.md shows is what happens."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explain.md"


def test_shown_output_is_that_of_a_fresh_run(
    isamap: "Run", monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")

    def fresh(block: re.Match[str]) -> str:
        done = isamap(*block[1].split())
        assert "error" not in done.err
        return f"```\n$ isamap {block[1]}\n{done.out}```\n"

    pattern = re.compile(r"^```\n\$ isamap (.*)\n(?:.*\n)*?```\n", re.MULTILINE)
    assert len(pattern.findall(text)) >= 2
    again = pattern.sub(fresh, text)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(again, encoding="utf-8")
        return
    assert text == again
