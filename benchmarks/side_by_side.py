"""isamap beside the libraries that its users would call otherwise, timed in turn.

    python benchmarks/side_by_side.py                             # all families, one core
    python benchmarks/side_by_side.py --families gemm_f32,dw_f32 --threads 2 --rounds 15
    python benchmarks/side_by_side.py --limit 5 --json FILE --markdown FILE --cases FILE

Every peer is a process of its own, pinned to the same cores, and stopped while another one is
timed.  In a round each is timed once, in turn; times are medians over the rounds, and ratios
medians of the quotients within a round, so that neighbours on the machine change both alike.
Every answer is compared with one in f64, at a bound that follows from the types and the number of
terms (bytes exactly); one that is off is marked WRONG and counts for nothing.  In each round
the machine is measured, too: the bound of a case is the time of its multiply-adds in registers, or
of reading as many bytes as its operands have, whichever is longer; for soft-max, layer norm and
chains over elements that of a copy of as many bytes.

Peers that are not installed are left out, with the command that installs them:
pip install 'isamap[peers]'.  They may live in another environment: --python.
"""

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parent))

from beside.cases import SHAPES, Case, cases, families, spread, title
from beside.peaks import Peaks, compile_peak
from beside.peers import PEERS, TUNED, Peer, chosen
from beside.process import Gone, Process
from beside.record import Record
from beside.report import details, notes, put, summary
from beside.rounds import measure, revived, told

WITHOUT_TILES = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16", "ISAMAP_PEER_HW": "x86_avx512"}
"""The last instruction set before the one with tiles, as oneDNN and as isamap call it."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="families: "
        + ", ".join(families())
        + "\n\npeers:\n"
        + "\n".join(f"  {peer.name:12} {peer.what}" for peer in (*PEERS, TUNED))
        + "\n\nA family is a kind of kernel and the types of its elements; its sizes and where they"
        "\ncome from are in benchmarks/beside/shapes.  isamap takes its first schedule, or what"
        "\nISAMAP_PEER_TUNE=30s in the environment finds (see benchmarks/peer.py).",
    )
    made.add_argument("--families", default="all", help="with commas between; all of them")
    made.add_argument("--peers", default="all", help="with commas between; all that are installed")
    made.add_argument(
        "--grep", default="", help="only cases like this regular expression: 'k=1760$'"
    )
    made.add_argument("--limit", type=int, default=0, help="so many cases of each family, spread")
    made.add_argument(
        "--shapes",
        type=Path,
        default=SHAPES,
        help="a folder of files like those there, with other sizes; families without a file have "
        "no cases",
    )
    made.add_argument("--threads", type=int, default=1, help="and cores; 1")
    made.add_argument("--cores", default="", help="which: 0,1; the first ones of this process")
    made.add_argument("--rounds", type=int, default=9, help="how often each peer is timed; 9")
    made.add_argument("--window", type=float, default=8, help="ms of calls of each time; 8")
    made.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    made.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable of all peers",
    )
    made.add_argument(
        "--no-tiles",
        action="store_true",
        help="peaks of vectors alone, oneDNN and isamap without tiles of matrices (AMX); ONNX "
        "Runtime cannot be told: leave it out with --peers",
    )
    made.add_argument("--json", type=Path, help="file for everything that was measured")
    made.add_argument("--markdown", type=Path, help="file for a line for each family")
    made.add_argument("--cases", type=Path, help="file for a table of each family's cases")
    made.add_argument("--section", help="part of these files that is renewed; 'threads N'")
    made.add_argument(
        "--log", type=Path, default=Path(os.devnull), help="file for what peers print"
    )
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Run it; 1 if an answer was wrong."""
    made = parser()
    given = made.parse_args(words)
    cores = _cores(made, given.cores, given.threads)
    extra = dict(WITHOUT_TILES) if given.no_tiles else {}
    extra |= dict(pair.partition("=")[::2] for pair in given.env)
    try:
        peers = chosen(given.peers)
        todo = wanted_cases(given.families, given.grep, given.limit, given.shapes)
    except ValueError as error:
        made.error(str(error))
    records: dict[str, list[Record]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        log = stack.enter_context(given.log.open("a"))
        peaks = Peaks(compile_peak(folder), cores, not given.no_tiles)
        stack.callback(peaks.close)

        def start(peer: Peer) -> Process:
            return Process(peer, cores, given.python, log, extra)

        processes = started(peers, cores, given.python, log, extra)
        stack.callback(lambda: [process.close() for process in processes])
        versions = [f"{p.peer.name}: {p.version}" for p in processes]
        for case in (case for own in todo.values() for case in own):
            processes[:] = revived(processes, lambda dead: start(dead.peer))
            record = measure(case, processes, peaks, given.rounds, given.window / 1e3, folder)
            records.setdefault(record.family, []).append(record)
            print(told(record), flush=True)
    facts = _facts(given, cores, versions, peaks)
    print("\n".join(["", *summary(records, given.threads), "", *notes(records)]))
    if given.json is not None:
        everything = {f: [r.to_json() for r in own] for f, own in records.items()}
        given.json.write_text(json.dumps({"run": facts, "families": everything}, indent=1) + "\n")
    section = given.section or f"threads {given.threads}"
    if given.markdown is not None:
        put(given.markdown, section, [*facts, "", *summary(records, given.threads)])
    if given.cases is not None:
        tables = [["", *details(family, own)] for family, own in records.items()]
        lines = [*facts, *(line for table in tables for line in table)]
        put(given.cases, section, [*lines, *_headed(notes(records))])
    return int(any(t.wrong for own in records.values() for r in own for t in r.timings))


def wanted_cases(
    names: str, pattern: str, limit: int, shapes: Path = SHAPES
) -> dict[str, list[Case]]:
    """Return the cases of each family of a list with commas; ValueError for an unknown one, or
    where there are none."""
    found: dict[str, list[Case]] = {}
    for family in families() if names == "all" else names.split(","):
        if family not in families():
            raise ValueError(f"unknown family {family!r}; known: {', '.join(families())}")
        like = [case for case in cases(family, shapes) if re.search(pattern, title(case))]
        if like:
            found[family] = spread(like, limit) if limit else like
    if not found:
        raise ValueError(f"no such cases in {shapes}")
    return found


def started(
    peers: Sequence[Peer], cores: Sequence[int], python: str, log: IO[str], extra: dict[str, str]
) -> list[Process]:
    """Return a process for each peer that is installed, and tell how to install the others."""
    found = []
    for peer in peers:
        try:
            process = Process(peer, cores, python, log, extra)
        except Gone as error:
            print(f"# {peer.name}: left out: {error}", flush=True)
            continue
        if process.missing is not None:
            print(f"# {peer.name}: left out, {process.missing} is missing: {peer.install}")
            continue
        print(f"# {peer.name}: {process.version}", flush=True)
        found.append(process)
    return found


def _cores(made: argparse.ArgumentParser, text: str, threads: int) -> list[int]:
    allowed = sorted(os.sched_getaffinity(0))
    cores = [int(core) for core in text.split(",")] if text else allowed[:threads]
    if len(cores) != threads or not set(cores) <= set(allowed):
        made.error(f"{threads} threads need as many of the cores {allowed}")
    return cores


def _facts(
    given: argparse.Namespace, cores: Sequence[int], versions: Sequence[str], peaks: Peaks
) -> list[str]:
    """Return what a reader must know of the run, a line of a list each."""
    loops = ", ".join(f"{unit} {rate:.4g} G/s" for unit, rate in peaks.rates.items())
    named = " ".join((*given.env, *(("without tiles",) if given.no_tiles else ())))
    tuned = os.environ.get("ISAMAP_PEER_TUNE")
    return [
        f"- {processor()}, {os.cpu_count()} cores in all, {len(cores)} used",
        f"- {', '.join(versions)}" + (f"; {named}" if named else ""),
        f"- isamap: {'searched for ' + tuned if tuned else 'first schedules, no search'}",
        f"- {given.rounds} rounds of {given.window:g} ms"
        + (f", {given.limit} cases of each family at most" if given.limit else ""),
        f"- best rates of these cores in registers: {loops or 'none'}",
    ]


def processor() -> str:
    """Return the name of the CPU's model."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _headed(lines: Sequence[str]) -> list[str]:
    return ["", "Left out or wrong:", "", *lines] if lines else []


if __name__ == "__main__":
    sys.exit(main())
