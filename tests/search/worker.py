"""A worker of a search over the bowl, as a process of its own: started, paused, killed by tests.

It prints 'waiting' when it is about to time its third batch, and then waits for a line on its
standard input.  At its end it prints what it found as JSON.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from subprocess import PIPE, Popen
from typing import Any

from isamap_search.budget import Budget
from isamap_search.objective import Candidate
from isamap_search.plan import Plan
from isamap_search.settings import Place
from isamap_search.study import search
from tests.search.bowl import Bench, model

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'search'}"}


class _Pausing(Bench):
    def __call__(self, candidates: Sequence[Candidate], rounds: int) -> list[list[float] | None]:
        if rounds == 3 and sum(asked == 3 for _, asked in self.asked) == 2:
            sys.stdout.write("waiting\n")
            sys.stdout.flush()
            sys.stdin.readline()
        return super().__call__(candidates, rounds)


@dataclass
class Started:
    """A worker that runs."""

    process: "Popen[str]"

    def wait_until_it_times(self) -> None:
        """Return when it holds trials and is about to time them."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "waiting\n"

    def kill(self) -> None:
        """End it the hard way."""
        self.process.send_signal(SIGKILL)
        self.process.communicate()

    def go_on(self) -> None:
        """Have it time what it holds."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """Return what it found, at its end."""
        out, err = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, err
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found


def start(place: Place, trials: int, seed: int = 0) -> Started:
    """Start a worker of a study."""
    words = [place.path and str(place.path), place.url, place.name, trials, seed]
    command = [sys.executable, "-m", "tests.search.worker", json.dumps(words)]
    return Started(
        Popen(command, env=ENVIRONMENT, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
    )


def main() -> None:
    """Search as the argument says."""
    path, url, name, trials, seed = json.loads(sys.argv[1])
    plan = Plan(place=Place(path and Path(path), url, name))
    found = search(model(), Budget(trials), seed, _Pausing(), plan)
    assert found.best is not None
    told = {"best": found.best.point, "trials": found.trials, "others": found.others}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
