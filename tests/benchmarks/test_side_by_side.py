"""The runner that times isamap beside other libraries: what it asks, checks and tells."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
cases, goals, inputs, peers, process, record, reference, report, worker, side_by_side = (
    import_module(name)
    for name in (
        *(f"beside.{part}" for part in ("cases", "goals", "inputs", "peers", "process")),
        *(f"beside.{part}" for part in ("record", "reference", "report", "worker")),
        "side_by_side",
    )
)
sys.path.remove(str(BENCHMARKS))

SMALL: list[dict[str, Any]] = [
    {"family": "gemm_f32", "m": 5, "n": 7, "k": 9},
    {"family": "gemm_u8s8", "m": 5, "n": 7, "k": 9},
    {"family": "linear_bf16", "m": 5, "n": 7, "k": 9},
    {"family": "conv_f32", "ci": 3, "h": 9, "co": 4, "r": 3, "s": 2, "p": 1, "g": 1},
    {"family": "conv_u8s8", "ci": 3, "h": 9, "co": 4, "r": 3, "s": 2, "p": 1, "g": 1},
    {"family": "conv3x3_f32", "ci": 3, "h": 9, "co": 4, "r": 3, "s": 1, "p": 1, "g": 1},
    {"family": "dw_f32", "ci": 4, "h": 7, "co": 4, "r": 3, "s": 1, "p": 1, "g": 4},
    {"family": "dsblock_f32", "ci": 4, "h": 7, "co": 5, "s": 2},
    {"family": "softmax_f32", "rows": 3, "cols": 20},
    {"family": "layernorm_f32", "rows": 3, "cols": 20},
    {"family": "silu_f32", "rows": 3, "cols": 20},
    {"family": "residual_f32", "rows": 3, "cols": 20},
    {"family": "chain_f32", "rows": 3, "cols": 20},
]


def timing(peer: str, *seconds: float, wrong: str | None = None) -> Any:
    return record.Timing(peer, "a way", seconds, wrong)


def measured(*timings: Any, least: float | None = 0.02, **absent: str) -> Any:
    rounds = len(timings[0].seconds) if least is not None else 0
    bound = (least,) * rounds
    return record.Record("gemm_f32", "gemm_f32 m=1 n=2 k=3", 2.0, "G", bound, timings, absent)


def test_every_family_has_cases_a_meaning_and_a_goal() -> None:
    for family in cases.families():
        found = cases.cases(family)
        assert len(found) > 2
        assert all(case["family"] == family for case in found)
        assert len({cases.title(case) for case in found}) == len(found)
        assert family.partition("_")[0] in cases.MEANING
    assert set(goals.GOALS) == set(cases.families())


def test_the_shapes_are_the_published_ones() -> None:
    gemms = [(c["m"], c["n"], c["k"]) for c in cases.cases("gemm_f32")]
    assert {(1760, 16, 1760), (5124, 700, 2048), (7680, 64, 2560), (2048, 2048, 2048)} <= set(gemms)
    assert max(n for m, n, k in gemms if not m == n == k) == 700
    # Multiply-adds of the layers: ResNet-50's first one, MobileNet's first block.
    assert cases.operations(cases.cases("conv_f32")[0]) == 2 * 112 * 112 * 64 * 3 * 49
    assert cases.operations(cases.cases("dw_f32")[0]) == 2 * 112 * 112 * 32 * 9
    assert cases.operations(cases.cases("pw_f32")[1]) == 2 * 56 * 56 * 64 * 128
    assert cases.operations(cases.cases("dsblock_f32")[1]) == 2 * 56 * 56 * 64 * (9 + 128)
    assert cases.operations(cases.cases("softmax_f32")[0]) is None


@pytest.mark.parametrize(
    "case", [c for c in SMALL if c["family"].startswith(("conv", "dw"))], ids=lambda c: c["family"]
)
def test_products_with_padding_do_not_count_in_the_bound(case: dict[str, Any]) -> None:
    r, s, p, h, out = case["r"], case["s"], case["p"], case["h"], cases.side(case)
    padded = np.pad(np.ones((h, h)), p)
    windows = sum(padded[s * y :, s * x :][:r, :r].sum() for y in range(out) for x in range(out))
    products = windows * case["co"] * case["ci"] / case["g"]
    assert cases.needed(case) == 2 * products / (4 if case["family"].startswith("conv3x3") else 1)
    assert cases.needed({**case, "p": 0}) == cases.operations({**case, "p": 0}) * (
        0.25 if case["family"].startswith("conv3x3") else 1
    )


def test_a_limit_spreads_cases_and_keeps_both_ends() -> None:
    assert cases.spread(range(9), 3) == [0, 4, 8]
    assert cases.spread(range(9), 1) == [0]
    assert cases.spread(range(3), 5) == [0, 1, 2]
    found = side_by_side.wanted_cases("gemm_f32,dw_f32", "m=(64|128) |ci=32", 0)
    assert {family: len(own) for family, own in found.items()} == {"gemm_f32": 2, "dw_f32": 1}
    with pytest.raises(ValueError, match=r"unknown family 'gem'; known: gemm_f32"):
        side_by_side.wanted_cases("gem", "", 0)


def test_sizes_may_come_from_another_folder() -> None:
    others = cases.SHAPES / "others"
    given = {family: cases.cases(family) for family in cases.families()}
    own = side_by_side.wanted_cases("all", "", 0, others)
    assert "silu_f32" not in own  # no file
    assert {"gemm_u8s8", "conv_f32", "dw_bf16", "softmax_f32"} <= own.keys()
    assert any(case not in given[family] for family, found in own.items() for case in found)
    with pytest.raises(ValueError, match="no such cases in"):
        side_by_side.wanted_cases("silu_f32", "", 0, others)


def in_f32(case: dict[str, Any]) -> np.ndarray:
    """Return an answer with sums in f32, as numpy takes them, of the exact inputs."""
    family, _, kind = case["family"].partition("_")
    match family:
        case "gemm" | "linear":
            a, b = reference._exact(case, *getattr(inputs, family)(case))
            b = b.T if family == "linear" else b
            y = a.astype(np.float32) @ b.astype(np.float32)
            if kind == "bf16":
                import ml_dtypes

                return np.asarray(y.astype(ml_dtypes.bfloat16).astype(np.float32))
            return np.asarray(y)
        case "softmax":
            x = inputs.rows(case)
            e = np.exp(x - x.max(-1, keepdims=True))
            return np.asarray(e / e.sum(-1, keepdims=True))
        case "layernorm":
            x = inputs.rows(case)
            d = x - x.mean(-1, keepdims=True)
            return np.asarray(d / np.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-5)))
        case "silu":
            x, b = inputs.biased(case)
            return np.asarray((x + b) / (1 + np.exp(-(x + b))))
        case "chain":
            x, b = inputs.biased(case)
            return np.asarray(np.maximum(x * np.float32(1.5) + b, 0) ** 2)
        case _:
            return np.asarray(reference.expected(case).values.astype(np.float32))


@pytest.mark.parametrize("case", SMALL, ids=lambda c: c["family"])
def test_the_bound_passes_what_rounding_does_and_nothing_else(case: dict[str, Any]) -> None:
    want = reference.expected(case)
    answer = in_f32(case)
    assert want.fault(answer) is None
    for change in (0.02 * np.abs(answer).max(), np.nan):
        off = answer.astype(np.float64)
        off.flat[off.size // 2] += max(1.0, change) if case["family"].endswith("u8s8") else change
        fault = want.fault(off)
        assert fault is not None
        assert fault.startswith(f"1 of {answer.size} elements")
    assert want.fault(answer[0]) == f"shape {answer[0].shape}, not {answer.shape}"


def test_reference_and_a_sum_by_hand_agree() -> None:
    case = {"family": "conv_u8s8", "ci": 2, "h": 3, "co": 1, "r": 3, "s": 1, "p": 1, "g": 1}
    x, w = (a.astype(int) for a in inputs.conv(case))
    corner = sum(
        x[0, c, i, j] * w[0, c, i + 1, j + 1] for c in (0, 1) for i in (0, 1) for j in (0, 1)
    )
    got = reference.expected(case)
    assert got.bound == 0.0
    assert got.values[0, 0, 0, 0] == min(max(round(corner / 256), 0), 255)


def test_the_ratio_is_the_median_of_the_rounds_against_the_best_right_peer() -> None:
    found = measured(
        timing("isamap", 1.0, 2.0, 4.0),
        timing("slow", 9.0, 9.0, 9.0),
        timing("fast", 3.0, 3.0, 3.0),
        timing("liar", 0.1, 0.1, 0.1, wrong="1 of 6 elements"),
    )
    assert found.best.peer == "fast"
    assert found.ratio == 1.5
    assert found.rate(found.best) == pytest.approx(2 / 3)
    assert found.share(found.best) == pytest.approx(0.02 / 3)
    assert found.room == pytest.approx(150)
    assert measured(timing("isamap", 1.0), timing("fast", 1.0), least=None).room is None
    assert measured(timing("isamap", 1.0)).ratio is None
    assert measured(timing("isamap", 1.0, wrong="off"), timing("fast", 1.0)).ratio is None


def test_geometric_mean() -> None:
    assert record.geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert record.geometric_mean([]) is None


def test_tables_mark_what_is_wrong_and_what_is_missing() -> None:
    own = [
        measured(timing("isamap", 0.05), timing("a", 0.1), timing("b", 0.01, wrong="all off")),
        measured(timing("isamap", 0.1), timing("a", 0.05), b="RuntimeError: no kernel"),
    ]
    lines = report.details("gemm_f32", own)
    assert lines[2:] == [
        "| case | ratio | isamap | % of bound | bound / best | a | b |",
        "|---|---|---|---|---|---|---|",
        "| m=1 n=2 k=3 | 2.00 | 40 | 40 | 5.00 | 20 | 200 WRONG |",
        "| m=1 n=2 k=3 | 0.50 | 20 | 20 | 2.50 | 40 | - |",
    ]
    assert report.summary({"gemm_f32": own}, 1)[2] == (
        "| gemm_f32 | 2 | 1.00 | 0.50 | 2.00 | 28 | 28 | 3.54 | a 2 "
        "| 1.08, least 0.97: not met, it takes 31% of the bound; "
        "least 0.50, it takes 39% of the bound |"
    )
    assert report.notes({"gemm_f32": own}) == [
        "- gemm_f32 m=1 n=2 k=3, b: WRONG: all off",
        "- gemm_f32 m=1 n=2 k=3, b: RuntimeError: no kernel",
    ]


def test_a_goal_needs_the_mean_and_the_least_or_the_bandwidth() -> None:
    def ratio(value: float) -> Any:
        return measured(timing("isamap", 1.0), timing("a", value), least=0.95)

    assert goals.judged("gemm_f32", [ratio(1.2), ratio(1.0)], 1) == "1.08, least 0.97: met"
    told = goals.judged("gemm_f32", [ratio(2.0), ratio(0.9)], 1)
    assert told == "1.08, least 0.97: not met, least 0.90, the bound is 0.95"
    several = goals.judged("gemm_f32", [ratio(2.0), ratio(0.9)], 2)
    assert several == "1.4: not met, it takes 99% of the bound"
    assert goals.judged("dw_f32", [ratio(1.75)], 1) == "1.8: not met, it takes 98% of the bound"
    # Nothing could be 1.4 times as fast as the best peer.
    near = measured(timing("isamap", 1.0), timing("a", 1.0), least=0.8)
    assert goals.judged("gemm_f32", [near], 2) == "1.4: not met, the bound is 1.25"
    # Of few columns, or of small squares, more is wanted.
    few, square, other = (
        replace(ratio(value), case=dict(zip("mnk", sizes, strict=True)))
        for value, sizes in ((1.2, (900, 32, 900)), (1.1, (64, 64, 64)), (1.4, (900, 64, 900)))
    )
    assert [goals.is_small(r.case) for r in (few, square, other)] == [True, True, False]
    told = goals.judged("gemm_bf16", [few, square, other], 1)
    assert told.startswith("1.15, small 1.3, least 0.97: not met, small 1.15, the bound is 1.21")
    assert goals.judged("gemm_bf16", [other], 1) == "1.15, least 0.97: met"
    # 0.95 s of 1 s is more than nine tenths of the bandwidth.
    assert goals.judged("softmax_f32", [ratio(1.0)], 1).endswith("of the bandwidth: met")
    assert goals.judged("dw_f32", [measured(timing("isamap", 1.0))], 1).endswith("compare with")
    # A first schedule beside what a search finds.
    searched = [measured(timing("isamap", 1.0), timing("tuned", value)) for value in (0.8, 1.1)]
    assert goals.judged("dw_f32", searched, 2) == "0.9: met"
    assert goals.judged("dw_f32", searched[:1], 1) == "0.9: not met, it takes 2% of the bound"


def test_a_section_of_a_file_is_renewed_alone(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    report.put(file, "one", ["old"])
    report.put(file, "two", ["kept"])
    file.write_text("Title\n" + file.read_text() + "End\n")
    report.put(file, "one", ["new"])
    assert " ".join(file.read_text().split()) == (
        "Title <!-- begin one --> new <!-- end one --> <!-- begin two --> kept <!-- end two --> End"
    )
    file.write_text("<!-- begin one -->")
    with pytest.raises(ValueError, match="end one"):
        report.put(file, "one", [])


def test_workers_get_threads_and_no_settings_of_the_shell() -> None:
    shell = {"PATH": "p", "OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "9", "KMP_X": "1"}
    assert process.environment(shell, [3], {"A": "b"}) == {
        "PATH": "p",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "A": "b",
    }
    two = process.environment(shell, [2, 5], {})
    assert (two["OMP_NUM_THREADS"], two["OMP_PLACES"]) == ("2", "{2},{5}")


class Library:
    """A library with a way that fails, a slow one and a fast one."""

    def __init__(self) -> None:
        self.calls = 0

    def ways(self, case: object, threads: int) -> Any:
        def fail() -> None:
            raise RuntimeError(f"no kernel for {threads} threads")

        def work(count: int) -> int:
            self.calls += 1
            return sum(range(count))

        answer = lambda: np.zeros(1)  # noqa: E731
        yield worker.Way("fails", fail, answer)
        yield worker.Way("slow", lambda: work(200_000), answer)
        yield worker.Way("fast", lambda: work(10), answer)


def test_the_fastest_way_of_a_library_is_taken_and_failures_are_told() -> None:
    timed, faults = worker.ready(Library(), {"case": {}, "window": 0.0}, 3)
    assert timed.way.name == "fast"
    assert faults == ["RuntimeError: no kernel for 3 threads"]
    assert timed.count == 1
    assert timed.seconds() > 0


def test_an_unknown_peer_is_refused() -> None:
    assert [peer.name for peer in peers.chosen("openblas,isamap")] == ["openblas", "isamap"]
    with pytest.raises(ValueError, match="unknown peer 'blas'; known: isamap, torch"):
        peers.chosen("blas")
    assert peers.TUNED not in peers.chosen("all")
    assert peers.chosen("tuned")[0].variables == {"ISAMAP_PEER_TUNE": "30s"}
    for peer in (*peers.PEERS, peers.TUNED):
        assert (BENCHMARKS / "beside" / "libraries" / f"{peer.module}.py").is_file()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "side_by_side.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_isamap_beside_numpy_from_the_command_line(tmp_path: Path) -> None:
    """One small product, and a peer whose package is not there."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no torch', name='torch')\n")
    file, page = tmp_path / "all.json", tmp_path / "page.md"
    words = ["--families", "gemm_f32", "--grep", "m=64 ", "--rounds", "3", "--window", "1"]
    core = str(min(os.sched_getaffinity(0)))
    words += ["--peers", "isamap,torch,openblas", "--env", f"PYTHONPATH={tmp_path}"]
    words += ["--json", str(file), "--markdown", str(page), "--cases", str(tmp_path / "cases.md")]
    done = run(*words, "--cores", core)
    assert done.returncode == 0, done.stderr
    assert "# torch: left out, torch is missing: pip install 'isamap[peers]'" in done.stdout
    found = json.loads(file.read_text())
    (case,) = found["families"]["gemm_f32"]
    assert case["case"] == "gemm_f32 m=64 n=64 k=64"
    assert set(case["peers"]) == {"isamap", "openblas"}
    assert case["best_peer"] == "openblas"
    assert case["absent"] == {}
    assert all(peer["wrong"] is None for peer in case["peers"].values())
    assert all(len(peer["seconds"]) == 3 for peer in case["peers"].values())
    assert case["ratio"] > 0
    assert len(case["least_s"]) == 3
    assert min(case["least_s"]) > 0
    assert case["room"] > 0
    assert "| gemm_f32 | 1 |" in page.read_text()
    assert "| m=64 n=64 k=64 |" in (tmp_path / "cases.md").read_text()


def test_help_teaches_and_mistakes_are_told() -> None:
    text = side_by_side.parser().format_help()
    assert "WRONG" in text
    assert "pip install 'isamap[peers]'" in text
    assert all(family in text.replace("\n", " ") for family in cases.families())
    made = argparse.ArgumentParser()
    with pytest.raises(SystemExit):
        side_by_side._cores(made, "0", 2)
    done = run("--families", "gemm_f33")
    assert done.returncode == 2
    assert "unknown family 'gemm_f33'" in done.stderr
