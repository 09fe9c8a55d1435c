import time

import pytest

from isamap.cli import progress as module
from isamap.cli.progress import progress


def test_quick_commands_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as tell:
        tell("match")
    assert capsys.readouterr().err == ""


def test_slow_commands_tell_their_stage_in_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(module, "_PLAIN_INTERVAL", 0.0)
    with progress() as tell:
        tell("match")
        _wait_for(capsys, "isamap: match ...\n")
        tell("tune: 3 of 50")
        _wait_for(capsys, "isamap: tune: 3 of 50 ...\n")


def _wait_for(capsys: pytest.CaptureFixture[str], text: str) -> None:
    found, until = "", time.monotonic() + 10
    while text not in found and time.monotonic() < until:
        time.sleep(0.02)
        found += capsys.readouterr().err
    assert text in found
