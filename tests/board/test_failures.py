"""What is told of a measuring command that does not do what it should."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.board.making import RIGHT, board

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import Golden

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

GOLDEN = Path(__file__).parent / "golden"
FAILURES = {
    "fails": ('echo "no route to host" >&2; exit 3', 5),
    "fails_silently": ("exit 1", 5),
    "killed": ('"$1" >/dev/null; kill -9 $$', 5),
    "hangs": ("sleep 60", 5),
    "no_program": ("echo 100 >$2", 5),
    "talks": (f"echo connected; {RIGHT}", 5),
    "half": ('"$1" | head -c 100; echo 100 >$2', 5),
    "no_count": ('exec "$1"', 5),
    "empty_count": ('"$1"; : >$2', 5),
    "no_number": ('"$1"; echo "1,234 cycles" >$2', 5),
    "two_numbers": ('"$1"; printf "12\\n13\\n" >$2', 5),
    "negative": ('"$1"; echo -5 >$2', 5),
    "not_a_number": ('"$1"; echo nan >$2', 5),
    "same_count": ('"$1"; echo 4711 >$2', 5),
    "wrong_outputs": (f"{{ {RIGHT}; }} | head -c 16; head -c 3840 /dev/zero", 4),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_where_the_command_is_named(
    name: str, isamap: "Run", matmul: Path, tmp_path: Path, golden: "Golden"
) -> None:
    script, code = FAILURES[name]
    mine = board(tmp_path, script, seconds=1 if name == "hangs" else 60)
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert done.code == code
    if code == 5:
        assert "mine.yaml:6:12: error[E5" in done.err
        assert "run       failed: " in done.out
    golden(GOLDEN / f"{name}.txt", _settled(done.err, tmp_path))


def test_a_command_that_is_not_there_is_named(
    isamap: "Run", matmul: Path, tmp_path: Path, golden: "Golden"
) -> None:
    mine = board(tmp_path, RIGHT, command="[./no-such-script, board]")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert done.code == 5
    golden(GOLDEN / "not_there.txt", _settled(done.err, tmp_path))


def test_a_text_is_no_list_of_words(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = board(tmp_path, RIGHT, command="sh measure.sh")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof")
    assert done.code == 5
    assert "cannot start sh measure.sh" in done.err
    assert "each word is an item of a list: [sh, run.sh]" in done.err


def test_a_failure_can_be_repeated_by_hand(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    from isamap.run.process import run_limited

    mine = board(tmp_path, "exit 3")
    err = isamap("map", matmul, "--hw", mine, "--trust", "--no-proof").err
    (command,) = re.findall(r"help: to repeat: (.*)", err)
    assert run_limited(["sh", "-c", command], 20.0).code == 3
    board(tmp_path, RIGHT)
    done = run_limited(["sh", "-c", command], 20.0)
    assert (done.code, done.stderr) == (0, "")
    (kept,) = re.findall(r"<(\S+)/input", command)
    assert Path(kept, "output").read_bytes().startswith(b"isamap1\n")
    assert int(Path(kept, "cycles").read_text()) > 0


def test_tuning_tells_the_first_failure(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = board(tmp_path, 'echo "no route to host" >&2; exit 3')
    done = isamap("map", matmul, "--hw", mine, "--trust", "--tune", "2", "--no-records")
    assert done.code == 5
    assert "mine.yaml:6:12: error[E506]" in done.err
    assert "no route to host" in done.err


def _settled(text: str, folder: Path) -> str:
    """Return a message without what differs from run to run."""
    text = text.replace(str(folder), "HERE")
    text = re.sub(r"[^\s<>]*/isamap-failed-\w+", "KEPT", text)
    lines = [line for line in text.splitlines() if not line.startswith("isamap: ")]
    return "\n".join(re.sub(r"compiled by: .*", "compiled by: ...", line) for line in lines) + "\n"
