"""The tables of docs/targets.md are those of the descriptions that ship."""

import re
from collections import Counter
from pathlib import Path

import pytest

from isamap.diagnostics import IsamapError
from isamap.hw.load import load_hardware, shipped_names
from isamap.targets.probe.finding import Finding
from isamap.targets.table import BEGIN, END, Untested, write_tables
from isamap.targets.test import Outcome, every, is_other_size

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
FRESH = "isamap targets test --all --markdown docs/targets.md"


def compiled() -> list[str]:
    return [name for name in shipped_names() if load_hardware(name).toolchain is not None]


def tables() -> str:
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def test_every_target_is_in_the_table() -> None:
    first = tables().partition("<details>")[0]
    pattern = r"^\| `([\w:=]+)` \|.*\| (\d+) \| (\d+) \| [\d,]+ \| (.+) \|$"
    rows = re.findall(pattern, first, re.MULTILINE)
    machines = [load_hardware(name) for name in every(compiled())]
    counts = {}
    for machine in machines:
        own = len(machine.own_entries)
        more = 0 if is_other_size(machine) else len(machine.entries) - own
        counts[machine.name] = own, more
    assert {name: (int(own), int(more)) for name, own, more, _ in rows} == counts, FRESH
    for name, *_, result in rows:
        told = re.fullmatch(r"(\d+ known wrong, )?(\d+ )?right", result)
        assert told or result.startswith("not run here"), name


@pytest.mark.parametrize("name", compiled())
def test_every_instruction_that_ships_is_in_the_table(name: str) -> None:
    section = tables().partition(f"<summary>{name}:")[2].partition("</details>")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| ([\d,]+) \| \d+ \| (.+) \|$", section, re.MULTILINE)
    entries = load_hardware(name).own_entries
    forms = Counter(e.instruction.generic or e.name for e in entries)
    assert {generic for generic, *_ in rows} == set(forms), FRESH
    for generic, told, sets, result in rows:
        count = int(told) if told.isdigit() else max(1, len(told.split()))
        assert count == forms[generic], generic
        if not result.startswith("1 not tried") and "not run here" not in result:
            assert int(sets.replace(",", "")) >= 10_000 * forms[generic], generic


def finding(name: str, status: str, text: str = "") -> Finding:
    generic, origin = name.partition("_")[0], "base" if name.endswith("_u8") else ""
    return Finding(name, generic, 5, 1, 1, status, text, origin)  # type: ignore[arg-type]


def test_tables_tell_what_is_not_right_and_replace_older_ones(tmp_path: Path) -> None:
    findings = (
        finding("add_f32", "right"),
        finding("add_s8", "known wrong", "qemu-x: off by one\nor two"),
        finding("mul", "right"),
        finding("add_u8", "right"),
        finding("sub_u8", "right"),
        finding("div_u8", "wrong", "by two"),
    )
    tested = Outcome("mine", "cc", "", (), 5, 0, findings)
    path = tmp_path / "page.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_tables(path, [tested, Untested(load_hardware("x86_amx"), "no tiles")])
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| `mine` | cc | this CPU | 3 | 3 | 30 | 1 known wrong, 4 right, 1 wrong |" in text
    assert (
        "| `add` | f32 s8 | 10 | 1 | 1 known wrong, 1 right: qemu-x: off by one; or two |" in text
    )
    assert "<summary>mine: 3 instructions</summary>" in text
    assert "| from `base` | 2 | 10 | 1 | right |\n| `div` | u8 | 5 | 1 | 1 wrong: by two |" in text
    assert "| not run here: no tiles |" in text
    again = path.read_text()
    write_tables(path, [tested, Untested(load_hardware("x86_amx"), "no tiles")])
    assert path.read_text() == again


def test_a_page_without_marks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("nothing\n")
    with pytest.raises(IsamapError, match="E545"):
        write_tables(path, [])


def test_tables_of_one_target_stay_beside_those_of_others(tmp_path: Path) -> None:
    def tested(name: str, status: str) -> Outcome:
        return Outcome(name, "cc", "", (), 5, 0, (finding("add_f32", status),))

    path = tmp_path / "page.md"
    path.write_text(f"{BEGIN}\n{END}\n")
    write_tables(path, [tested("mine", "wrong"), tested("yours", "right")])
    write_tables(path, [tested("mine", "right"), tested("a", "right")], alone=False)
    apart = path.read_text()
    every_one = [tested("a", "right"), tested("mine", "right"), tested("yours", "right")]
    write_tables(path, every_one)
    assert path.read_text() == apart
    assert apart.count("| 1 right |") == 0
    assert apart.count("| right |") == 6
