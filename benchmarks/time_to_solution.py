"""How long a search takes to come near its own best: isamap's beside TVM MetaSchedule's.

    python benchmarks/time_to_solution.py                            # isamap alone
    python benchmarks/time_to_solution.py --tvm-python TVM/python    # and TVM, on the same core
    python benchmarks/time_to_solution.py --tvm-python TVM/python --write  # renews the page
    python benchmarks/time_to_solution.py --out FILE ...   # goes on where it was stopped

The clock starts before the kernel is read.  A search is where it ends once the best call of those
measured until then takes at most 3 % longer than the best of all.  One core for each search, one
after the other, so that the calls of both do not compare; see beside/tvm_search.py for what TVM
needs.  ``--write`` renews the table in docs/performance.md and draws the curves (the extra
``plots``).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "time-to-solution.svg"
BEGIN, END = "<!-- begin solution -->", "<!-- end solution -->"

NEAR = 1.03
"""A time is near another one if it is at most this times as long."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel in f32, activations channels last, one core."""

    kind: str
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The kind and the sizes."""
        return f"{self.kind} {'x'.join(map(str, self.sizes))}"

    @property
    def text(self) -> str:
        """The kernel in isamap's language."""
        if self.kind == "gemm":
            m, n, k = self.sizes
            return f"""kernel gemm(M = {m}, N = {n}, K = {k}) {{
              in A : f32[M, K]  in B : f32[K, N]  out C : f32[M, N]
              C[i, j] += A[i, r] * B[r, j] }}"""
        if self.kind == "conv":
            h, c, o, window = self.sizes
            less = window // 2
            return f"""kernel conv(H = {h}, C = {c}, O = {o}, R = {window}) {{
              in X : f32[H, H, C] pad 0  in F : f32[R, R, C, O]  out Y : f32[H, H, O]
              Y[y, x, o] += X[y + r - {less}, x + s - {less}, c] * F[r, s, c, o] }}"""
        h, c = self.sizes
        return f"""kernel depthwise(H = {h}, C = {c}) {{
          in X : f32[H, H, C] pad 0  in F : f32[3, 3, C]  out Y : f32[H, H, C]
          Y[y, x, c] += X[y + r - 1, x + s - 1, c] * F[r, s, c] }}"""


CASES = (
    Case("gemm", (512, 512, 512)),
    Case("gemm", (1760, 32, 1760)),
    Case("conv", (28, 128, 128, 3)),
    Case("conv", (14, 256, 1024, 1)),
    Case("depthwise", (56, 128)),
)


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds since the start, and seconds of the best call until then, as each was measured."""

    points: tuple[tuple[float, float], ...]

    @property
    def best(self) -> float:
        """The seconds of the best call."""
        return self.points[-1][1]

    @property
    def near(self) -> float:
        """The seconds after which the best was near the final one."""
        return next(at for at, best in self.points if best <= NEAR * self.best)

    @property
    def end(self) -> float:
        """The seconds of the whole search."""
        return self.points[-1][0]


def best_so_far(measured: Sequence[tuple[float, float]]) -> Curve:
    """Return the curve of single measurements; the last point is where the search ended."""
    points, least = [], float("inf")
    for at, seconds in sorted(measured):
        least = min(least, seconds)
        points.append((at, least))
    return Curve(tuple(points))


def own_search(case: Case, seconds: float) -> Curve:
    """Return the curve of isamap's search, in a process that has not imported anything."""
    with tempfile.TemporaryDirectory() as folder:
        kernel, study = Path(folder, "case.ir"), Path(folder, "study.journal")
        kernel.write_text(case.text)
        command = ["isamap", "map", kernel, "--hw", "native", "--tune", f"{seconds:g}s"]
        state = {"XDG_STATE_HOME": folder, "XDG_CACHE_HOME": folder}
        begun = time()
        done = subprocess.run(
            [
                *(sys.executable, "-m", *map(str, command)),
                *("--study", str(study), "--no-records", "--json"),
            ],
            capture_output=True,
            text=True,
            env=os.environ | state,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        first = json.loads(done.stdout)["tuning"]["first"]
        return best_so_far(_trials(study, begun, first))


def _trials(study: Path, begun: float, first: float) -> list[tuple[float, float]]:
    """Return when each trial of a study was told, and the seconds of a call.

    A study has times as parts of the first schedule's, which took ``first`` seconds in the end.
    """
    from optuna import load_study
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(study)))
    found = load_study(study_name=None, storage=storage).trials
    return [
        (t.datetime_complete.timestamp() - begun, t.values[0] * first)
        for t in found
        if t.datetime_complete is not None and t.values
    ]


def tvm_search(case: Case, python: str, trials: int) -> Curve:
    """Return the curve of TVM's search."""
    script = Path(__file__).parent / "beside" / "tvm_search.py"
    asked = json.dumps({"kind": case.kind, "sizes": case.sizes})
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, str(script), asked, str(trials), folder],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    lines = [
        json.loads(line.removeprefix("curve "))
        for line in done.stdout.splitlines()
        if line.startswith("curve ")
    ]
    return best_so_far([(line["at"], line["best"]) for line in lines])


Row: TypeAlias = tuple[Case, Curve, Curve | None]
"""A case, isamap's search, and TVM's if there was one."""


def keep(path: Path | None, row: Row) -> None:
    """Append the curves of a case to a file."""
    if path is not None:
        case, own, other = row
        line = {"case": case.name, "own": own.points, "other": other and other.points}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def kept(path: Path | None, case: Case) -> Row | None:
    """Return the curves of a case that a file has."""
    if path is None or not path.exists():
        return None
    for line in map(json.loads, path.read_text().splitlines()):
        if line["case"] == case.name:
            own, other = line["own"], line["other"]
            curves = [Curve(tuple((at, best) for at, best in one)) for one in (own, other) if one]
            return case, curves[0], curves[1] if other else None
    return None


def table(found: Sequence[Row]) -> list[str]:
    """Return the lines of a table."""
    lines = [
        "| case | isamap: within 3 % after | of | best call "
        "| TVM: within 3 % after | of | best call | time, isamap / TVM |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case, own, other in found:
        cells = [case.name, f"{own.near:.0f} s", f"{own.end:.0f} s", f"{own.best * 1e6:.4g} us"]
        if other is None:
            cells += ["-"] * 4
        else:
            cells += [f"{other.near:.0f} s", f"{other.end:.0f} s", f"{other.best * 1e6:.4g} us"]
            cells.append(f"{own.near / other.near:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def draw(found: Sequence[Row]) -> None:
    """Draw the curves: the final best of each as 1.  Their calls were not timed side by side."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "isamap"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(found), figsize=(3.2 * len(found), 3.0), sharey=True, squeeze=False
    )
    for (case, own, other), at in zip(found, axes[0], strict=True):
        for name, curve in (("isamap", own), ("TVM MetaSchedule", other)):
            if curve is not None:
                seconds, best = zip(*curve.points, strict=True)
                at.step(seconds, [curve.best / b for b in best], where="post", label=name)
        at.set_title(case.name, fontsize=9)
        at.set_xlabel("seconds of search")
        at.set_xscale("log")
    axes[0][0].set_ylabel("speed of the best call so far, of its last")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


def write(lines: Sequence[str]) -> None:
    """Put the table between its marks in the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + BEGIN, "", *lines, "", END]) + after)


def main() -> None:
    """Run the searches one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each search of isamap")
    parser.add_argument("--trials", type=int, default=256, help="of each search of TVM")
    parser.add_argument("--tvm-python", help="the Python of an environment that has TVM")
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--core", type=int, default=0, help="the core that everything runs on")
    parser.add_argument("--out", type=Path, help="keep the curves there; those it has are not run")
    parser.add_argument("--write", action="store_true", help="renew the page and its plot")
    given = parser.parse_args()
    os.sched_setaffinity(0, {given.core})
    found = []
    for case in (case for case in CASES if given.only in case.name):
        row = kept(given.out, case)
        if row is None:
            own = own_search(case, given.seconds)
            other = tvm_search(case, given.tvm_python, given.trials) if given.tvm_python else None
            row = (case, own, other)
            keep(given.out, row)
        found.append(row)
        print("\n".join(table(found)[-1:] if len(found) > 1 else table(found)), flush=True)
    if given.write and found:
        draw(found)
        write([*table(found), "", "![curves of both searches](time-to-solution.svg)"])


if __name__ == "__main__":
    main()
