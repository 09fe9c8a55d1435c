"""Commands of a toolchain are started in the folder of the description that names them."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap.run.process import run_limited

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

PASSES_ON = '#!/bin/sh\nexec "$@"\n'


def described(folder: Path, toolchain: str, **scripts: str) -> Path:
    """Return a description, with scripts in its folder, which is not the current one."""
    home = folder / "there"
    home.mkdir()
    for name, text in scripts.items():
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    mine = home / "mine.yaml"
    head = "format: 1\nname: mine\ntitle: here\nextends: portable_c\ntoolchain:\n"
    mine.write_text(f"{head}  {toolchain}\n")
    return mine


@pytest.mark.parametrize("command", ["[sh, run]", "[./run]"])
def test_a_runner_lies_beside_the_description(
    command: str, isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    mine = described(tmp_path, f"runner: {command}", run=PASSES_ON)
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert (done.code, "ran as a program" in done.out) == (0, True), done.err
    assert "agree with the interpreter" in done.out


def test_a_compiler_lies_beside_the_description(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    script = '#!/bin/sh\nexec gcc -include beside.h "$@"\n'
    mine = described(tmp_path, "compiler: [./cc]", **{"cc": script, "beside.h": "int beside;\n"})
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert (done.code, "compiled with ./cc" in done.out) == (0, True), done.err
    (mine.parent / "beside.h").write_text("#error beside\n")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof", "--set", "M=7")
    assert done.code == 5
    assert f"to repeat: cd {mine.parent} && ./cc " in done.err


def test_what_a_runner_did_can_be_repeated(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = described(tmp_path, "runner: [sh, run]", run="exit 3\n")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert done.code == 5
    (command,) = re.findall(r"help: to repeat: (.*)", done.err)
    assert run_limited(["sh", "-c", command], 20.0).code == 3
    (mine.parent / "run").write_text(PASSES_ON)
    assert run_limited(["sh", "-c", command], 20.0).code == 0
    (kept,) = re.findall(r"<(\S+)/input", command)
    assert Path(kept, "output").read_bytes().startswith(b"isamap1\n")
    shutil.rmtree(kept)
