"""The reference of the language is right: its examples parse, its table has every code."""

import re
from pathlib import Path

import pytest

from isamap.ir.printer import print_module
from isamap.text.load import parse_module

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```isamap\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SOURCES = sorted((ROOT / "isamap" / "text").glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_parse(text: str) -> None:
    module = parse_module(text)
    assert parse_module(print_module(module)) == module


def test_the_table_has_every_code_and_no_other() -> None:
    table = re.findall(r"^\| (E\d\d\d) \|", PAGE, re.MULTILINE)
    used = {c for path in SOURCES for c in re.findall(r'"(E\d\d\d)"', path.read_text("utf-8"))}
    assert table == sorted(used)


def test_every_code_has_a_test() -> None:
    table = set(re.findall(r"^\| (E\d\d\d) \|", PAGE, re.MULTILINE))
    folders = (ROOT / "tests" / "errors", ROOT / "tests" / "text")
    shown = {
        code
        for folder in folders
        for path in folder.iterdir()
        if path.suffix in (".expect", ".py") and path.name != Path(__file__).name
        for code in re.findall(r"E\d\d\d", path.read_text(encoding="utf-8"))
    }
    assert table <= shown
