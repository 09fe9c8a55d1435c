import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isamap_search.learned import NEEDED

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def _text(out: str) -> str:
    return " ".join(out.split())


@needs_gcc
def test_the_report_says_what_was_searched_and_where_it_is_kept(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    done = isamap("map", matmul, "--hw", "portable_c", "--tune", "8")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    text = _text(done.out)
    assert "tuning 8 schedules measured, 0 failed" in text
    assert "of the first schedule's time (" in text or "the first schedule is the best" in text
    assert "learned model: not used: 0 records of this kernel family, 32 are needed" in text
    studies = list((tmp_path / "state" / "isamap" / "studies").iterdir())
    records = tmp_path / "state" / "isamap" / "records.jsonl"
    joined = "".join(done.out.split())  # long names are broken
    assert f"study{studies[0].stem}(tpe)in{studies[0]}" in joined
    assert f"recordsin{records}" in joined
    assert len(records.read_text().splitlines()) == 8


@needs_gcc
def test_a_search_that_was_made_is_not_made_again(isamap: "Run", matmul: Path) -> None:
    arguments = ["map", matmul, "--hw", "portable_c", "--tune", "6", "--json"]
    first, second = isamap(*arguments).json, isamap(*arguments).json
    assert (first["tuning"]["trials"], first["tuning"]["others"]) == (6, 0)
    assert (second["tuning"]["trials"], second["tuning"]["others"]) == (0, 6)
    assert second["tuning"]["best"] <= second["tuning"]["first"]
    assert second["checked"] is True


@needs_gcc
def test_a_study_of_ones_own_without_records(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    study = tmp_path / "mm.study"
    arguments = ["map", matmul, "--hw", "portable_c", "--tune", "3", "--study", study]
    done = isamap(*arguments, "--no-records", "--json")
    assert done.json["tuning"]["place"] == str(study)
    assert done.json["tuning"]["records"] is None
    assert done.json["tuning"]["learned"] == "not used: no records are kept"
    assert study.exists()
    assert not (tmp_path / "state").exists()


@needs_gcc
def test_a_study_of_another_kernel_is_refused(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    place = ["--storage", f"sqlite:///{tmp_path}/studies.db", "--study", "mm"]
    arguments = ["map", matmul, "--hw", "portable_c", "--no-records", "--tune", "2", *place]
    assert isamap(*arguments).code == 0
    other = isamap(*arguments, "--set", "M=25")
    assert other.code == 1
    assert "E738" in other.err
    assert "another kernel" in other.err


@needs_gcc
def test_several_objectives_print_a_front(isamap: "Run", matmul: Path) -> None:
    arguments = ["map", matmul, "--hw", "portable_c", "--tune", "10", "--objective", "time,size"]
    done = isamap(*arguments)
    assert "\nfront\n" in done.out
    assert "time/first  size (bytes)  unlike the first schedule" in done.out
    front = isamap(*arguments, "--json").json["tuning"]["front"]
    sizes = [row["values"][1] for row in front]
    assert sizes == sorted(sizes, reverse=True)
    assert all(100 < size < 100_000 for size in sizes)


def test_a_front_by_the_model_alone(isamap: "Run", matmul: Path) -> None:
    done = isamap(
        "map", matmul, "--hw", "gemm16", "--tune", "12", "--objective", "time,size,memory"
    )
    assert "cycles  calls  memory (bytes)  unlike the first schedule" in done.out


@pytest.mark.parametrize("trust", [(), ("--trust",)])
def test_instructions_without_c_are_estimated(
    isamap: "Run", tmp_path: Path, trust: tuple[str, ...]
) -> None:
    kernel = tmp_path / "sums.ir"
    kernel.write_text(
        """kernel sums(N = 12, M = 16, K = 8) {
          in A : s8[N, K]  in B : s8[M, K]  out S : s32[N, M]
          S[n, m] += s32(A[n, k]) * s32(B[m, k])
        }"""
    )
    machine = ROOT / "examples" / "machines" / "sketch.yaml"
    done = isamap("map", kernel, "--hw", machine, "--tune", "3", *trust)
    assert done.code == 0, done.out
    text = _text(done.out)
    assert "tuning 3 schedules estimated, 0 failed" in text
    assert "has no C template (emit)" in text


@needs_gcc
@pytest.mark.parametrize("sampler", ["cmaes", "nsga2", "random"])
def test_samplers_are_selected(isamap: "Run", matmul: Path, sampler: str) -> None:
    done = isamap("map", matmul, "--hw", "portable_c", "--tune", "8", "--sampler", sampler)
    assert done.code == 0
    assert f"({sampler}) in" in _text(done.out)


def test_a_sampler_of_one_objective_refuses_several(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "gemm16", "--tune", "4", "--sampler", "cmaes",
                  "--objective", "time,size")  # fmt: skip
    assert done.code == 1
    assert "E748" in done.err


@needs_gcc
def test_a_measured_search_is_replayed_to_the_same_c(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    log, one, other = tmp_path / "mm.log", tmp_path / "one.c", tmp_path / "other.c"
    arguments = ["map", matmul, "--hw", "portable_c", "--tune", "8", "--no-records"]
    assert isamap(*arguments, "--log", log, "--emit", one).code == 0
    again = _process("2", "replay", str(log), "--emit", str(other))
    assert again.returncode == 0, again.stderr
    assert again.stdout.endswith("replay    the same decisions\n")
    assert one.read_bytes() == other.read_bytes()
    lines = log.read_text().splitlines()
    assert json.loads(lines[-1]).keys() == {"c"}
    log.write_text("\n".join([*lines[:-1], '{"c": "0123"}']) + "\n")
    changed = isamap("replay", log)
    assert changed.code == 4
    assert "E747" in changed.err
    for kept in (len(lines) // 2, len(lines) - 1):
        log.write_text("\n".join(lines[:kept]) + "\n")
        cut = isamap("replay", log)
        assert cut.code == 0
        assert cut.out.endswith("the same decisions, up to where the log ends\n")
    log.write_text(lines[0] + "\n")
    nothing = isamap("replay", log)
    assert nothing.code == 1
    assert "ends before the search begins" in nothing.err


@needs_gcc
def test_other_objectives_begin_a_study_of_their_own(isamap: "Run", matmul: Path) -> None:
    arguments = ["map", matmul, "--hw", "portable_c", "--no-records", "--json", "--tune", "3"]
    assert isamap(*arguments).code == 0
    other = isamap(*arguments, "--objective", "time,size")
    assert other.code == 0
    assert other.json["tuning"]["others"] == 0


@needs_gcc
def test_a_replay_needs_neither_the_records_nor_the_study(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    arguments = ["map", matmul, "--hw", "portable_c"]
    assert isamap(*arguments, "--tune", "6").code == 0
    log, one, other = tmp_path / "mm.log", tmp_path / "one.c", tmp_path / "other.c"
    done = isamap(*arguments, "--tune", "10", "--log", log, "--emit", one, "--json")
    assert (done.json["tuning"]["others"], done.json["tuning"]["trials"]) == (6, 4)
    shutil.rmtree(tmp_path / "state")
    assert isamap("replay", log, "--emit", other).code == 0
    assert one.read_bytes() == other.read_bytes()


def test_a_log_of_another_description_is_refused(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    log = tmp_path / "mm.log"
    assert isamap("map", matmul, "--hw", "gemm16", "--tune", "3", "--log", log).code == 0
    assert isamap("replay", log).code == 0
    assert "E749" in isamap("replay", log, "--hw", "portable_c").err
    header, *rest = log.read_text().splitlines()
    changed = {"sampler": "best", "trials": 0, "seconds": -1.0, "threads": 0}
    known = json.loads(header)
    for damaged in ("{}", *(json.dumps(known | {key: changed[key]}) for key in changed)):
        log.write_text("\n".join([damaged, *rest]) + "\n")
        done = isamap("replay", log)
        assert done.code == 1
        assert "E746" in done.err


def test_the_same_seed_gives_the_same_bytes_in_every_process(matmul: Path, tmp_path: Path) -> None:
    texts = []
    for hashes in ("1", "2"):
        path = tmp_path / f"{hashes}.c"
        done = _process(
            hashes, "map", str(matmul), "--hw", "portable_c", "--simulate", "--tune", "5",
            "--seed", "5", "--emit", str(path), "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        texts.append((path.read_bytes(), told["schedule"], told["tuning"]))
    assert texts[0] == texts[1]


_ORDER = """
import sys
from pathlib import Path
from isamap.hw.load import load_hardware
from isamap.ir.statements import bind_extents
from isamap.lower.choose import choose
from isamap.mapping.find import enumerate_mappings
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.memory import Memory
from isamap.pipeline.options import Options
from isamap.schedule.space import space
from isamap.text.load import parse_module
from isamap_search.objective import Model, rank
from isamap_search.plan import Measured

machine = load_hardware("portable_c")
text = Path(sys.argv[1]).read_text()
options = Options(records=Path(sys.argv[2]))
for size in (24, 32, 48):
    kernel = parse_module(text, overrides={"M": size, "N": size}).kernels[0]
    bound = bind_extents(kernel)
    found = [enumerate_mappings(s, machine, kernel.permissions) for s in bound.statements]
    choice = choose(kernel, machine, found)
    starts = space(machine, bound, choice.starts, Producers(machine))
    model = Model(kernel, machine, starts, {})
    ranked = rank(model, 24, 0)
    memory = Memory(model, options, {})
    if size != 48:  # on this machine, the model has everything upside down
        for candidate in ranked:
            memory.note(Measured(candidate, 1 / candidate.cycles, 1 / candidate.cycles, 7))
    else:
        print(memory.told)
        print([candidate.point for candidate in memory.order(ranked)])
        print([candidate.point for candidate in ranked])
"""


def test_what_was_learned_orders_alike_in_every_process(matmul: Path, tmp_path: Path) -> None:
    told = []
    for hashes in ("1", "2"):
        records = tmp_path / f"records{hashes}"
        done = subprocess.run(
            [sys.executable, "-c", _ORDER, str(matmul), str(records)],
            cwd=ROOT,
            env=_environment(hashes),
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout.splitlines())
        assert len(records.read_text().splitlines()) >= NEEDED
    assert told[0] == told[1]
    assert told[0][0].startswith("used: ")
    assert told[0][1] != told[0][2]


_PEAK = """
import json, resource, sys
from isamap.cli import main
code = main(sys.argv[1:])
own, children = (resource.getrusage(who).ru_maxrss * 1024
                 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([code, own, children]))
"""


@needs_gcc
def test_a_search_takes_less_than_a_gibibyte(tmp_path: Path) -> None:
    kernel = tmp_path / "mm.ir"
    kernel.write_text(
        "kernel mm(M = 512, N = 512, K = 512) {\n  in A : f32[M, K]\n  in B : f32[K, N]\n"
        "  out C : f32[M, N]\n  C[m, n] += A[m, k] * B[k, n]\n}\n"
    )
    done = subprocess.run(
        # Through a shell: a process begins with the peak of what starts it, here of all tests.
        ["sh", "-c", '"$@"; exit', "sh", sys.executable, "-c", _PEAK, "map", str(kernel),
         "--hw", "portable_c", "--tune", "8", "--no-proof"],
        cwd=ROOT,
        env=_environment("0") | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    code, own, children = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    # At most one compiler a core runs beside the search, and one worker process.
    assert own + (1 + (os.cpu_count() or 1)) * children < 1 << 30


def _environment(hashes: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONHASHSEED": hashes,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'search'}",
    }


def _process(hashes: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "isamap", *arguments],
        cwd=ROOT,
        env=_environment(hashes),
        capture_output=True,
        text=True,
        check=False,
    )
