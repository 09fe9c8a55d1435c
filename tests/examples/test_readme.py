"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SHOWN = "isamap map examples/separable.ir --hw x86_avx512"

needs_avx512 = pytest.mark.skipif(
    runnable(load_hardware("x86_avx512")) is not None,
    reason="the README shows a run on a CPU with AVX-512",
)


def blocks(text: str) -> list[str]:
    """Return the fenced blocks of a page."""
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(heading: str) -> str:
    return README.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def without_measurements(text: str) -> str:
    """Return a report without what differs from run to run: the times measured natively."""
    text = re.sub(r"^predicted .*\n( +.*\n)*", "predicted\n", text, flags=re.MULTILINE)
    return re.sub(r"^(run .*) natively in .*\n( +.*\n)*", r"\1\n", text, flags=re.MULTILINE)


def spaced(text: str) -> str:
    return " ".join(text.split())


@needs_avx512
def test_shown_output_is_that_of_a_fresh_run(request: pytest.FixtureRequest) -> None:
    command = [sys.executable, "-m", *SHOWN.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    fresh = f"$ {SHOWN}\n{done.stdout}"
    (shown,) = [b for b in blocks(README.read_text()) if b.startswith(f"$ {SHOWN}\n")]
    if request.config.getoption("--update-golden"):
        README.write_text(README.read_text().replace(shown, fresh))
        return
    assert without_measurements(shown) == without_measurements(fresh)
    assert "agree with the interpreter" in fresh


def test_shown_kernel_is_the_example() -> None:
    example = (ROOT / "examples" / "separable.ir").read_text().partition("\n")[2]
    assert example in blocks(README.read_text())


def test_shown_instruction_is_in_its_description() -> None:
    (shown,) = [b for b in blocks(README.read_text()) if b.startswith("instruction ")]
    assert spaced(shown) in spaced((ROOT / "hwdesc" / "x86_avx512.yaml").read_text())


@pytest.mark.parametrize("heading", ["Run it", "Test it"])
def test_a_command_is_one_complete_line(heading: str) -> None:
    (command,) = blocks(section(heading))
    assert command.count("\n") == 1
    assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_links_lead_somewhere() -> None:
    for page in (README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        assert [t for t in targets if not (page.parent / t).exists()] == [], page


def test_shown_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    exec(code, names)  # the page's own text
    assert np.array_equal(names["c"], np.full((64, 256), 256, np.float32))  # type: ignore[arg-type]
