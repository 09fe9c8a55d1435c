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
    "bf16": ("dot_bf16", "tile_bf16"),
    "u8s8": ("dot_u8s8", "tile_u8s8"),
}
"""The loops of each type of elements: dot products of vectors, and of tiles of matrices."""


def compile_peak(folder: Path, compiler: str = "cc") -> Path:
    """Return the program, compiled for this CPU; CalledProcessError if it cannot be."""
    program = folder / "peak"
    subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(program)], check=True)
    return program


class Peaks:
    """The best rates seen on all cores together: each may be measured several times."""

    def __init__(
        self, program: Path, cores: Sequence[int], tiles: bool, seconds: float = 0.3
    ) -> None:
        self._program, self._cores, self._seconds = program, cores, seconds
        self._tiles = tiles
        self.rates: dict[str, float] = {}
        """1e9 operations a second of each loop, and GB/s of ``copy BYTES``."""

    def measure(self, kinds: Sequence[str]) -> None:
        """Measure the peaks of these types of elements, keeping better ones seen before."""
        for unit in (unit for kind in kinds for unit in UNITS[kind]):
            if self._tiles or not unit.startswith("tile"):
                self._keep(unit, self._run(unit))

    def copy(self, size: int) -> float:
        """Return the rate of copying half of so many bytes to the other half, in GB/s."""
        key = f"copy {size}"
        each = max(4096, size // len(self._cores))
        self._keep(key, self._run("copy", str(each)))
        return self.rates[key]

    def best(self, kind: str) -> float | None:
        """Return the best rate of a type of elements; None if no loop of it runs here."""
        found = [self.rates[unit] for unit in UNITS[kind] if unit in self.rates]
        return max(found, default=None)

    def _keep(self, key: str, rate: float | None) -> None:
        if rate is not None:
            self.rates[key] = max(rate, self.rates.get(key, 0.0))

    def _run(self, kind: str, *rest: str) -> float | None:
        """Return the sum over all cores at once; None if there is no such loop here."""
        command = [str(self._program), kind, str(self._seconds), *rest]
        running = [
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=partial(os.sched_setaffinity, 0, {core}),
            )
            for core in self._cores
        ]
        said = [child.communicate()[0].strip() for child in running]
        return None if "none" in said else sum(float(text) for text in said)
