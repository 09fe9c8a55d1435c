import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_an_interrupted_search_keeps_its_best(matmul: Path) -> None:
    options = ["--hw", "portable_c", "--tune", "30s", "--json"]
    process = _start("map", str(matmul), *options)
    assert process.stderr is not None
    told = ""
    while " tried, best " not in told and process.poll() is None:
        told = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    report = json.loads(out)
    assert report["tuning"]["interrupted"] is True
    assert report["tuning"]["trials"] > 0
    assert report["checked"] is True


def test_an_interruption_elsewhere_is_told(tmp_path: Path) -> None:
    path = tmp_path / "k.ir"
    path.write_text("kernel k(N = 4096) { in A : f32[N, N] out B : f32[N, N] B[i, j] = A[j, i] }")
    process = _start("map", str(path), "--hw", "gemm16", "--simulate")
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert out == ""


def _start(*arguments: str) -> "subprocess.Popen[str]":
    # A shell starts what it runs in the background with Ctrl-C ignored, these tests included.
    return subprocess.Popen(
        [sys.executable, "-m", "isamap", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has them ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
