"""How cycles of computing come of counts of whole programs."""

import shutil
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError, ToolError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.run.board import count_run
from isamap.run.build import build_program
from isamap.run.counter import Counter
from isamap.run.outcome import Crash
from tests.board.making import RIGHT, board
from tests.emit.building import MACHINE, emitted
from tests.emit.samples import failing, increment, indices

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

SOURCE = emitted(increment())
Z = {"Z": np.array([41], np.int64)}

# The count of a call, disturbed by a number that is another one each time.
NOISY = (
    'echo >>calls; N=$(wc -l <calls); "$1" && '
    'echo $((100000 + RUNS * 50 + (N * 7919) % 1000)) >"$2"'
)


def counter(folder: Path, script: str, trust: bool = True) -> Counter:
    return Counter(build_program(SOURCE, MACHINE), SOURCE, described(folder, script, trust), Z, {})


def described(folder: Path, script: str, trust: bool = True) -> Accelerator:
    return load_hardware(str(board(folder, script)), trust=trust)


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


def test_what_is_not_computing_is_subtracted(tmp_path: Path) -> None:
    own = counter(tmp_path, RIGHT)
    assert own.sample() == 500
    assert own.is_exact


def test_exact_counts_are_taken_twice_and_no_more(tmp_path: Path) -> None:
    own = counter(tmp_path, f"echo >>calls; {RIGHT}")
    assert own.run() is None
    assert [own.sample() for _ in range(7)] == [500] * 7
    assert own.samples(7, 10.0) == (500, 500)
    assert calls(tmp_path) == 4


def test_outputs_are_of_one_run(tmp_path: Path) -> None:
    own = counter(tmp_path, NOISY)
    assert not isinstance(own.samples(3, 60.0), Crash)
    assert own.runs > 1
    assert own.outputs is not None
    assert own.outputs["Z"].tolist() == [42]


def test_noise_is_outweighed(tmp_path: Path) -> None:
    own = counter(tmp_path, NOISY)
    found = own.samples(5, 60.0)
    assert not isinstance(found, Crash)
    assert not own.is_exact
    assert own.runs >= 2 * 100_000 / 50
    assert len(found) == 5
    assert median(found) == pytest.approx(50, rel=0.06)


def test_a_counter_may_be_told_how_often_to_compute(tmp_path: Path) -> None:
    own = counter(tmp_path, NOISY)
    own.runs = 8192
    assert own.sample() == pytest.approx(50, rel=0.06)
    assert own.runs == 8192
    assert calls(tmp_path) == 7  # twice once, three times not at all, twice often


def test_a_command_that_counts_nothing_is_told(tmp_path: Path) -> None:
    found = counter(tmp_path, '"$1"; echo 7 >"$2"').sample()
    assert isinstance(found, Crash)
    assert (found.kind, found.diagnostic.code) == ("level", "E516")
    assert str(found.span).endswith("mine.yaml:6:12")


def test_more_runs_compute_more_often(tmp_path: Path) -> None:
    machine, path = described(tmp_path, RIGHT), build_program(SOURCE, MACHINE)
    for runs in (0, 1, 5):
        found = count_run(path, SOURCE, machine, Z, {}, runs=runs)
        assert not isinstance(found, Crash)
        assert found.outputs["Z"].tolist() == [41 + runs]
        assert found.cycles == 1000 + 500 * runs


def test_the_command_knows_protocol_and_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISAMAP_TOOLS", str(tmp_path / "tools"))
    script = 'echo "$ISAMAP_MEASURE $# $PATH" >told; test -e "$2" && exit 9; ' + RIGHT
    assert counter(tmp_path, script).run() is None
    protocol, count, path = (tmp_path / "told").read_text().split(" ", 2)
    assert (protocol, count) == ("1", "2")
    assert path.startswith(f"{tmp_path / 'tools' / 'bin'}:")


@pytest.mark.parametrize("text", ["12", " 12.5\n", "1e3", "1.25e+2", "0012"])
def test_counts_are_decimal_numbers(tmp_path: Path, text: str) -> None:
    found = count_run(
        build_program(SOURCE, MACHINE),
        SOURCE,
        described(tmp_path, f'"$1"; printf "{text}" >"$2"'),
        Z,
        {},
    )
    assert not isinstance(found, Crash)
    assert found.cycles == float(text)


@pytest.mark.parametrize("text", ["inf", "0x10", "1_000", "12 13", "+5", "1e400", "9" * 2000])
def test_nothing_else_is_a_count(tmp_path: Path, text: str) -> None:
    machine = described(tmp_path, f'"$1"; printf "{text}" >"$2"')
    found = count_run(build_program(SOURCE, MACHINE), SOURCE, machine, Z, {})
    assert isinstance(found, Crash)
    assert found.kind == "uncounted"


def test_a_crash_of_the_program_is_told_as_one(tmp_path: Path) -> None:
    source = emitted(failing("crash"))
    machine = described(tmp_path, f"{RIGHT} || exit $?")
    found = count_run(
        build_program(source, MACHINE), source, machine, {"X": np.array([1], np.int64)}, {}
    )
    assert isinstance(found, Crash)
    assert (found.kind, found.signal) == ("crash", "SIGSEGV")


def test_a_program_that_refuses_is_not_the_commands_fault(tmp_path: Path) -> None:
    from isamap.ir.index import var

    source = emitted(indices((var("M"),), (1, 1), requires=(3 - var("M"),)))
    machine = described(tmp_path, RIGHT)
    arrays = {"T": np.zeros(4, np.int32)}
    found = count_run(build_program(source, MACHINE), source, machine, arrays, {"M": 4})
    assert isinstance(found, Crash)
    assert (found.kind, found.span) == ("refused", None)


def test_nothing_is_started_without_trust(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="--trust"):
        counter(tmp_path, "touch executed", trust=False)
    assert not (tmp_path / "executed").exists()


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    machine, path = described(tmp_path, RIGHT), build_program(SOURCE, MACHINE)
    with pytest.raises(ArgumentsError):
        Counter(path, SOURCE, machine, {"Z": np.zeros(3, np.int64)}, {})
