"""The processes of the peers: pinned, and stopped while another one is timed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import IO, Any

from beside.peers import OWN_MODULE, Peer

WORKER = Path(__file__).with_name("worker.py")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

DROPPED = ("OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_")
"""Settings of the shell that make a library slower or faster than it is (OPENBLAS_CORETYPE)."""


def environment(
    base: Mapping[str, str], cores: Sequence[int], extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a worker with as many threads as cores, one on each."""
    kept = {key: value for key, value in base.items() if not key.startswith(DROPPED)}
    kept.update(dict.fromkeys(THREADS, str(len(cores))))
    if len(cores) > 1:
        kept["OMP_PROC_BIND"] = "true"
        kept["OMP_PLACES"] = ",".join(f"{{{core}}}" for core in cores)
    return {**kept, **extra}


class Gone(Exception):
    """A worker ended, or did not answer in time."""


class Process:
    """A peer's worker.  It runs only while it is asked: threads that spin take no one's time.

    Attributes: ``version``, None if ``missing``, the module that it lacks, is not.
    """

    def __init__(
        self,
        peer: Peer,
        cores: Sequence[int],
        python: str,
        log: IO[str],
        extra: Mapping[str, str],
    ) -> None:
        self.peer = peer
        interpreter = sys.executable if peer.module == OWN_MODULE else python
        self._child = subprocess.Popen(
            [interpreter, str(WORKER), peer.module, str(len(cores))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(os.environ, cores, {**extra, **peer.variables}),
            # The child pins itself before it becomes the worker: every thread of it inherits that.
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        self.alive = True
        hello = self._answer(120)
        self.version: str | None = hello.get("version")
        self.missing: str | None = hello.get("missing")
        if self.missing is not None:
            self.close()
        else:
            self._child.send_signal(signal.SIGSTOP)

    def ask(self, limit: float, **request: object) -> dict[str, Any]:
        """Return the answer to a request; Gone if there is none within ``limit`` seconds."""
        if not self.alive:
            raise Gone("ended before")
        assert self._child.stdin is not None
        self._child.send_signal(signal.SIGCONT)
        try:
            self._child.stdin.write(json.dumps(request) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError as error:
            self.close()
            raise Gone("ended") from error
        answer = self._answer(limit)
        self._child.send_signal(signal.SIGSTOP)
        return answer

    def close(self) -> None:
        """End the worker."""
        self.alive = False
        self._child.kill()
        self._child.communicate()

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self._child.stdout is not None
        with DefaultSelector() as selector:
            selector.register(self._child.stdout, EVENT_READ)
            ready = selector.select(limit)
        line = self._child.stdout.readline() if ready else ""
        if not line:
            self.close()
            code = self._child.returncode
            raise Gone(f"no answer within {limit:g} s" if not ready else f"ended with {code}")
        found: dict[str, Any] = json.loads(line)
        return found
