"""Kernels and machines as files, and the command line as a function."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isamap.cli import main

MATMUL = """\
kernel mm(M = 24, N = 40, K = 16) {
  in  A : f32[M, K]
  in  B : f32[K, N]
  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}
"""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def isamap(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Return a function that runs the command line in this process, as a user without a past."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def matmul(tmp_path: Path) -> Path:
    """Return the path of a small matrix product."""
    path = tmp_path / "mm.ir"
    path.write_text(MATMUL)
    return path
