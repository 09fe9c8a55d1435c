"""Codes of messages are stable: each has one meaning, and those of running are in its table."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Several packages tell the same, or one looks for what another tells.
SHARED = {
    "E210": {"interp", "sim"},
    "E211": {"interp", "sim"},
    "E212": {"interp", "sim"},
    "E301": {"lower", "pipeline"},
    "E401": {"lower", "schedule"},
    "E412": {"pipeline", "schedule"},
    "E413": {"pipeline", "schedule"},
    "E414": {"pipeline", "schedule"},
    "E505": {"run", "targets"},
    "E701": {"cli", "pipeline"},
    "E732": {"cli", "pipeline"},
    "E746": {"isamap_search", "pipeline"},
}


def raised() -> dict[str, set[str]]:
    """Return the packages that name each code."""
    found: dict[str, set[str]] = defaultdict(set)
    for folder in (ROOT / "isamap", ROOT / "search" / "isamap_search"):
        for path in folder.rglob("*.py"):
            package = path.relative_to(folder.parent).parts[folder.name == "isamap"]
            text = path.read_text(encoding="utf-8")
            for code in re.findall(r"\"(E\d\d\d)\"", text):
                found[code].add(package)
    return found


def documented(page: str) -> set[str]:
    """Return the codes of the first cells of a page's tables."""
    found: set[str] = set()
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for cell in re.findall(r"^\| (E\d\d\d[^|]*) \|", text, re.MULTILINE):
        for first, last in re.findall(r"E(\d\d\d)(?: \u2013 E(\d\d\d))?", cell):
            codes = [f"E{number:03d}" for number in range(int(first), int(last or first) + 1)]
            assert not found & set(codes), f"{page} says {cell} twice"
            found |= set(codes)
    return found


def test_no_code_has_a_meaning_in_two_packages() -> None:
    assert {code: found for code, found in raised().items() if len(found) > 1} == SHARED


def test_the_table_of_running_has_every_code_of_it_and_no_other() -> None:
    own = {code for code in raised() if code.startswith("E5")}
    assert documented("running.md") == own - documented("search.md")


def test_no_table_has_a_code_that_nothing_tells() -> None:
    pages = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert set().union(*map(documented, pages)) - raised().keys() == set()


def test_every_code_is_in_a_table_and_those_of_no_other_page_in_the_common_one() -> None:
    pages = [path.name for path in (ROOT / "docs").glob("*.md") if path.name != "errors.md"]
    elsewhere = set().union(*map(documented, pages))
    assert documented("errors.md") == raised().keys() - elsewhere
