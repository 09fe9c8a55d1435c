"""What docs/scheduling.md shows of a written schedule is what happens."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.schedule.reader import read_schedule
from isamap.schedule.written import CLAUSES

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scheduling.md"
SHOWN = re.compile(r"^```\n\$ isamap (.*)\n((?:.*\n)*?)```\n", re.MULTILINE)


def without_measurements(text: str) -> str:
    text = re.sub(r"^predicted .*\n( .*\n)*", "predicted\n", text, flags=re.MULTILINE)
    return re.sub(r"^(run .*) natively in .*\n( .*\n)*", r"\1\n", text, flags=re.MULTILINE)


@pytest.mark.skipif(
    runnable(load_hardware("x86_avx512")) is not None,
    reason="the page shows a run on a CPU with AVX-512",
)
def test_shown_output_is_that_of_a_fresh_run(
    isamap: "Run", monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    (shown,) = SHOWN.finditer(text)
    done = isamap(*shown[1].split())
    assert done.code == 0
    if request.config.getoption("--update-golden"):
        fresh = f"```\n$ isamap {shown[1]}\n{done.out}```\n"
        PAGE.write_text(text.replace(shown[0], fresh), encoding="utf-8")
        return
    assert without_measurements(shown[2]) == without_measurements(done.out)
    assert "agree with the interpreter" in done.out


def test_shown_schedule_is_the_example() -> None:
    example = (ROOT / "examples" / "matmul.schedule").read_text(encoding="utf-8")
    assert f"```\n{example}```\n" in PAGE.read_text(encoding="utf-8")


def test_every_clause_is_told_by_an_example_that_is_read(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = re.findall(rf"^\| `((?:{'|'.join(CLAUSES)}) [^`]*)` \|", text, re.MULTILINE)
    assert {clause.split()[0] for clause in shown} == set(CLAUSES)
    path = tmp_path / "x.schedule"
    path.write_text("schedule x {\n Y {\n" + "\n".join(shown) + "\n}\n}\n", encoding="utf-8")
    (statement,) = read_schedule(path).statements
    assert set(statement.spans) == set(CLAUSES)


def test_every_code_is_told_and_has_an_example() -> None:
    told = re.findall(r"^\| (E41\d) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {path.stem[:4] for path in (Path(__file__).parent / "errors").glob("*.schedule")}
    assert set(told) == shown
