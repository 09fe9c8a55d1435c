"""What the machine can do at most, measured here and now by ``peak.c``."""

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

SOURCE = Path(__file__).with_name("peak.c")
FLAGS = ("-O3", "-march=native", "-fno-tree-loop-distribute-patterns")

UNITS = {
    "f32": ("f32",),
    "bf16": ("dot_bf16", "tile_bf16", "f32"),  # products of bf16 are exact in f32
    "u8s8": ("dot_u8s8", "tile_u8s8"),
}
"""The loops of each type of elements: dot products of vectors, and of tiles of matrices."""

FIRST = 0.1
"""Seconds of the measurement that says which loop of a type of elements is the fastest."""


def compile_peak(folder: Path, compiler: str = "cc") -> Path:
    """Return the program, compiled for this CPU; CalledProcessError if it cannot be."""
    program = folder / "peak"
    subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(program)], check=True)
    return program


class Loop:
    """A loop that runs on all cores at once when it is asked to, and waits in between."""

    def __init__(self, program: Path, cores: Sequence[int], *words: str) -> None:
        self._running = [
            subprocess.Popen(
                [str(program), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=partial(os.sched_setaffinity, 0, {core}),
            )
            for core in cores
        ]

    def rate(self, seconds: float) -> float | None:
        """Return 1e9 operations, or bytes, a second over about so many seconds, of all cores.

        None if there is no such loop here.
        """
        for child in self._running:
            assert child.stdin is not None
            child.stdin.write(f"{seconds}\n")
            child.stdin.flush()
        said = [child.stdout.readline().strip() for child in self._running if child.stdout]
        return None if "none" in said else sum(map(float, said))

    def close(self) -> None:
        """End it."""
        for child in self._running:
            child.kill()
            child.communicate()


class Peaks:
    """The loops of this machine; ``rates`` are the best that each was seen at, 1e9 a second."""

    def __init__(self, program: Path, cores: Sequence[int], tiles: bool) -> None:
        self._program, self._cores, self._tiles = program, cores, tiles
        self._fastest: dict[str, tuple[str, Loop] | None] = {}
        self.rates: dict[str, float] = {}

    def computing(self, kind: str, seconds: float) -> float | None:
        """Return 1e9 operations a second of the fastest loop of a type of elements, now.

        None if no loop of it runs here.
        """
        if kind not in self._fastest:
            self._fastest[kind] = self._find(kind)
        found = self._fastest[kind]
        if found is None:
            return None
        unit, loop = found
        rate = loop.rate(seconds)
        assert rate is not None
        self.rates[unit] = max(rate, self.rates.get(unit, 0.0))
        return rate

    def moving(self, how: str, size: int) -> Loop:
        """Return a loop that reads, or copies, so many bytes of all cores together."""
        return self._loop(how, str(max(4096, size // len(self._cores))))

    def close(self) -> None:
        """End all loops that compute."""
        for found in self._fastest.values():
            if found is not None:
                found[1].close()

    def _find(self, kind: str) -> tuple[str, Loop] | None:
        best: tuple[str, Loop] | None = None
        for unit in UNITS[kind]:
            loop = self._loop(unit)
            rate = loop.rate(FIRST) if self._tiles or not unit.startswith("tile") else None
            if rate is not None:
                self.rates[unit] = rate
            if rate is None or (best is not None and rate < self.rates[best[0]]):
                loop.close()
                continue
            if best is not None:
                best[1].close()
            best = unit, loop
        return best

    def _loop(self, *words: str) -> Loop:
        return Loop(self._program, self._cores, *words)
