import os
import subprocess
import sys
from pathlib import Path

import pytest

from isamap import __version__
from isamap.cli import main

ROOT = Path(__file__).parents[2]
COMMANDS = ["map", "run", "match", "replay", "check", "hw"]


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"isamap, version {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: isamap {command}")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["map"],
        ["map", "x.ir"],
        ["map", "x.ir", "--hw"],
        ["map", "x.ir", "--hw", "portable_c", "--what"],
        ["map", "x.ir", "--hw", "portable_c", "--set", "N"],
        ["map", "x.ir", "--hw", "portable_c", "--set", "N=-1"],
        ["map", "x.ir", "--hw", "portable_c", "--set", "N=" + "9" * 5000],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "fast"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "0"],
        ["map", "x.ir", "--hw", "portable_c", "--threads", "0"],
        ["map", "x.ir", "--hw", "portable_c", "--sampler", "tpe"],
        ["map", "x.ir", "--hw", "portable_c", "--study", "file"],
        ["map", "x.ir", "--hw", "portable_c", "--log", "file"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "5", "--sampler", "best"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "5", "--objective", "size"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "5", "--objective", "time,time"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "5", "--objective", "time,taste"],
        ["map", "x.ir", "--hw", "portable_c", "--tune", "5", "--records", "f", "--no-records"],
        ["replay"],
        ["check"],
        ["hw", "show"],
    ],
)
def test_wrong_usage_is_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error:" in captured.err
    assert "Traceback" not in captured.err


def test_no_arguments_show_the_help() -> None:
    done = _isamap([])
    assert done.returncode == 2
    assert "Commands:" in done.stdout + done.stderr


@pytest.mark.parametrize("heavy", ["numpy", "z3", "optuna", "lark", "pydantic", "yaml", "rich"])
def test_help_imports_nothing_heavy(heavy: str) -> None:
    code = (
        "import sys; from isamap.cli import main; main(['map', '--help']); "
        f"sys.exit({heavy!r} in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True).returncode == 0
    )


def test_a_reader_that_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "isamap", "--help"]
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "code"), [("--version", 0), ("hw show vta", 0), ("check no.ir", 1)]
)
def test_closed_streams_are_no_fault(closed: str, arguments: str, code: int) -> None:
    line = f"{sys.executable} -m isamap {arguments} {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    # What belongs on a stream that is closed is not told on the other one.
    assert "E001" not in done.stdout
    assert ("E001" in done.stderr) == (code == 1 and "2>" not in closed)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told() -> None:
    command = [sys.executable, "-m", "isamap", "hw", "list"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "error[E798]: cannot write the output: No space left on device\n"


def _isamap(arguments: list[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "isamap", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
