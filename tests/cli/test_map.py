import json
import re
import shutil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import jsonschema
import pytest

from isamap.hw.load import load_hardware
from isamap.hw.native import runnable
from isamap.resources import shipped

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "map.schema.json").read_text())
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


@needs_gcc
def test_map_runs_and_checks(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "portable_c")
    assert done.code == 0
    assert "C[m, n] += A[m, k] * B[k, n]" in done.out
    assert re.search(r"^  \* \S+ ", done.out, re.MULTILINE)
    apart = r"one sample|the same in \d samples|the median of \d samples from .* to .*"
    told = rf"ran natively in \S+ \S+, ({apart}) \(\S+ iterations/s\)"
    assert re.search(told, " ".join(done.out.split()))
    assert "all 960 outputs agree" in done.out


@needs_gcc
@pytest.mark.parametrize("hardware", ["portable_c", "gemm16"])
def test_the_json_is_what_the_schema_says(isamap: "Run", matmul: Path, hardware: str) -> None:
    done = isamap("map", matmul, "--hw", hardware, "--json")
    assert done.code == 0
    document = done.json
    jsonschema.validate(document, SCHEMA)
    assert document["kernel"] == "mm"
    assert document["hardware"] == hardware
    assert document["iterations"] == 24 * 40 * 16
    assert (document["checked"], document["checked_outputs"]) == (True, 960)
    (statement,) = document["statements"]
    chosen = statement["mappings"][statement["chosen"]]
    assert document["schedule"][0]["instruction"] == chosen["instruction"]


@needs_gcc
def test_the_time_is_the_median_of_the_samples(isamap: "Run", matmul: Path) -> None:
    document = isamap("map", matmul, "--hw", "portable_c", "--no-proof", "--json").json
    execution = document["execution"]
    assert 1 <= len(execution["samples"]) <= 5
    assert execution["seconds"] == median(execution["samples"])


def test_no_line_is_wider_than_80_columns(isamap: "Run") -> None:
    path = ROOT / "examples" / "separable.ir"
    done = isamap("map", path, "--hw", "gemm16", "--set", "H=6", "--set", "W=4", "--all")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_machine_without_toolchain_is_simulated_and_says_so(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "gemm16")
    assert done.code == 0
    text = " ".join(done.out.split())
    assert "simulated" in text
    assert "names no toolchain" in text
    assert "all 960 outputs agree" in text


def test_an_untrusted_machine_is_simulated_and_the_flag_is_named(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    mine = _copied("portable_c", tmp_path)
    done = isamap("map", matmul, "--hw", mine, "--json")
    assert done.code == 0
    assert done.json["execution"]["way"] == "simulated"
    text = " ".join(isamap("map", matmul, "--hw", mine).out.split())
    assert "--trust compiles and runs it" in text


@needs_gcc
def test_trust_compiles(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    done = isamap("map", matmul, "--hw", _copied("portable_c", tmp_path), "--trust", "--json")
    assert done.json["execution"]["way"] == "native"
    assert done.json["checked"] is True


def test_a_missing_compiler_means_simulation(
    isamap: "Run", matmul: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = isamap("map", matmul, "--hw", "portable_c", "--json")
    assert done.code == 0
    assert done.json["execution"]["way"] == "simulated"
    assert "is not installed" in done.json["execution"]["reason"]
    assert done.json["checked"] is True


@needs_gcc
def test_a_compiler_that_fails_is_exit_5(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("format: 1\nname: mine\nextends: portable_c\ntoolchain: {flags: [-no-such]}\n")
    done = isamap("map", matmul, "--hw", mine, "--trust")
    assert done.code == 5
    assert "the compiler refuses the emitted C" in done.err
    assert f"to repeat: cd {mine.parent} && gcc" in " ".join(done.err.split())


@needs_gcc
def test_a_result_that_differs_is_exit_4(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = _scalar(tmp_path, "if ({a} > 0.9f) {c} += 1.0f; else {c} += {a} * {b};")
    done = isamap("map", matmul, "--hw", mine, "--trust")
    assert done.code == 4
    assert "error[E761]: the result differs" in done.err
    assert re.search(r"C\[\d+, \d+\] is ", done.out)
    assert "are wrong)" in " ".join(done.out.split())
    assert isamap("map", matmul, "--hw", mine, "--trust", "--json").json["checked"] is False


@needs_gcc
def test_a_crash_is_exit_5(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = _scalar(tmp_path, "{c} += *(volatile float *)({a} > 9.0f ? 0 : 8) + {b};")
    done = isamap("map", matmul, "--hw", mine, "--trust")
    assert done.code == 5
    assert "SIGSEGV" in done.err
    assert "compiled by: gcc" in done.err
    assert "run       failed: the kernel crashed (SIGSEGV)" in done.out
    told = isamap("map", matmul, "--hw", mine, "--trust", "--json").json
    assert (told["execution"]["way"], told["checked"]) == ("failed", False)


@needs_gcc
def test_a_crash_while_tuning_is_exit_5(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = _scalar(tmp_path, "{c} += *(volatile float *)({a} > 9.0f ? 0 : 8) + {b};")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--tune", "2")
    assert done.code == 5
    assert "SIGSEGV" in done.err


@needs_gcc
def test_a_runner_runs_a_program(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = _scalar(tmp_path, "{c} += {a} * {b};", "runner: [env, ISAMAP=1]")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--json")
    assert done.code == 0
    assert done.json["execution"]["way"] == "program"
    assert done.json["checked"] is True


def test_a_missing_runner_means_simulation(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    mine = _scalar(tmp_path, "{c} += {a} * {b};", "runner: [no-such-runner]")
    done = isamap("map", matmul, "--hw", mine, "--trust", "--json")
    assert done.json["execution"]["way"] == "simulated"
    assert "no-such-runner" in done.json["execution"]["reason"]


def test_nothing_maps_is_exit_3(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "k.ir"
    path.write_text("kernel k(N = 8) { in X : f64[N] out Y : f64[N] Y[n] = exp(X[n]) }")
    done = isamap("map", path, "--hw", "gemm16")
    assert done.code == 3
    assert "Y" in done.err
    assert done.out == ""


def test_wrong_text_is_exit_1(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "k.ir"
    path.write_text("kernel k(N = 8) { in X : f32[N] out Y : f32[N] Y[n] = Z[n] }")
    done = isamap("map", path, "--hw", "portable_c")
    assert done.code == 1
    assert f"{path}:1:" in done.err
    assert "error[E" in done.err


@pytest.mark.parametrize("arguments", [["none.ir", "--hw", "portable_c"], ["MM", "--hw", "none"]])
def test_missing_files_are_exit_1(isamap: "Run", matmul: Path, arguments: list[str]) -> None:
    done = isamap("map", *[matmul if a == "MM" else a for a in arguments])
    assert done.code == 1
    assert done.err.strip()


def test_several_kernels_need_a_name(isamap: "Run", matmul: Path) -> None:
    matmul.write_text(matmul.read_text() + matmul.read_text().replace("mm(", "other("))
    done = isamap("map", matmul, "--hw", "gemm16")
    assert done.code == 1
    assert "holds 2 kernels: mm, other" in done.err
    assert "--kernel" in done.err
    assert isamap("match", matmul, "--hw", "gemm16", "--kernel", "other").code == 0
    done = isamap("map", matmul, "--hw", "gemm16", "--kernel", "third")
    assert done.code == 1
    assert "no kernel 'third'" in done.err


def test_a_named_kernel_is_not_stopped_by_what_others_mean(isamap: "Run", matmul: Path) -> None:
    good = matmul.read_text()
    wrong = good.replace("mm(", "wrong(").replace("* B[", "* Q[")
    assert wrong != good.replace("mm(", "wrong(")
    for others in (wrong + wrong, wrong):
        matmul.write_text(good + others)
        assert isamap("match", matmul, "--hw", "gemm16", "--kernel", "mm").code == 0
    for kernel in ("wrong", "third"):  # of a name that there is not, all is told
        done = isamap("match", matmul, "--hw", "gemm16", "--kernel", kernel)
        assert done.code == 1
        assert "unknown buffer 'Q'" in done.err
    matmul.write_text(good + good + wrong)
    assert "mm is defined twice" in isamap("match", matmul, "--hw", "gemm16", "--kernel", "mm").err
    matmul.write_text(good + "kernel unreadable {\n  Y[i] = = 2\n}\n")
    assert "error[E007]" in isamap("match", matmul, "--hw", "gemm16", "--kernel", "mm").err


def test_set_changes_an_extent(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "gemm16", "--set", "M=7", "--set", "N=3", "--json")
    assert done.json["sizes"] == {"M": 7, "N": 3, "K": 16}
    assert done.json["outputs"] == 21


def test_set_changes_an_extent_of_the_kernel_that_is_named(isamap: "Run", tmp_path: Path) -> None:
    two = tmp_path / "two.ir"
    two.write_text(
        "kernel a(N = 64) {\n  in A : f32[N]\n  out Y : f32[N]\n  Y[n] = A[n] * 2\n}\n"
        "kernel b(N = 64) {\n  in A : f32[N]\n  out Y : f32[N - 40]\n  for n in 0..N - 40\n"
        "  Y[n] = A[n] * 2\n}\n"
    )
    done = isamap("map", two, "--hw", "portable_c", "--kernel", "a", "--set", "N=32")
    assert done.code == 0
    assert "a(N = 32)" in done.out
    done = isamap("map", two, "--hw", "portable_c", "--set", "N=32", "--kernel", "b")
    assert done.code == 1
    assert "E029" in done.err


def test_set_of_an_unknown_extent_is_exit_1(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "gemm16", "--set", "Q=7")
    assert done.code == 1
    assert "Q" in done.err


@needs_gcc
def test_symbols_are_given_a_size_and_told(isamap: "Run", matmul: Path) -> None:
    matmul.write_text(matmul.read_text().replace("M = 24, N = 40", "M, N"))
    done = isamap("map", matmul, "--hw", "portable_c", "--json")
    assert done.code == 0
    assert done.json["sizes"] == {"M": None, "N": None, "K": 16}
    assert done.json["execution"]["sizes"] == {"M": 37, "N": 37}
    assert done.json["checked"] is True


def test_c_is_written_to_a_file(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.c"
    assert isamap("map", matmul, "--hw", "portable_c", "--emit", target).code == 0
    assert "mm(" in target.read_text()
    assert not (tmp_path / "mm.h").exists()


def test_c_and_header_are_written_to_a_folder(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    assert isamap("map", matmul, "--hw", "portable_c", "--emit", tmp_path / "c").code == 0
    assert {p.name for p in (tmp_path / "c").iterdir()} == {"mm.c", "mm.h"}


def test_an_unwritable_place_is_exit_1(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "portable_c", "--emit", matmul / "below")
    assert done.code == 1
    assert "cannot write" in done.err


def test_no_c_can_be_written_for_a_simulated_machine(
    isamap: "Run", matmul: Path, tmp_path: Path
) -> None:
    done = isamap("map", matmul, "--hw", "gemm16", "--emit", tmp_path / "x.c")
    assert done.code == 5
    assert "no C to write" in done.err


def test_simulate_asks_for_the_simulator(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "portable_c", "--set", "M=3", "--simulate", "--json")
    assert done.json["execution"]["way"] == "simulated"
    assert done.json["execution"]["cycles"] > 0
    assert done.json["checked"] is True


def test_a_simulation_that_takes_long_is_not_begun(isamap: "Run", matmul: Path) -> None:
    done = isamap(
        "map", matmul, "--hw", "gemm16", "--set", "M=4096", "--set", "N=4096", "--set", "K=4096",
        "--json",
    )  # fmt: skip
    assert done.code == 0
    assert done.json["execution"]["way"] == "none"
    assert done.json["checked"] is False


@needs_gcc
def test_threads_change_nothing_but_the_time(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "portable_c", "--threads", "2", "--json")
    assert done.code == 0
    assert done.json["checked"] is True


def test_tuning_by_the_model_is_reproducible(isamap: "Run", matmul: Path) -> None:
    arguments = ["map", matmul, "--hw", "gemm16", "--tune", "6", "--seed", "3", "--json"]
    first, second = isamap(*arguments).json, isamap(*arguments).json
    assert first["schedule"] == second["schedule"]
    assert first["tuning"]["trials"] == 6
    assert first["tuning"]["measured"] is False
    assert first["tuning"]["best"] <= first["tuning"]["first"]
    assert first["checked"] is True


@needs_gcc
def test_tuning_measures_and_keeps_records(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    arguments = ["map", matmul, "--hw", "portable_c", "--tune", "4", "--records", records]
    done = isamap(*arguments, "--json")
    assert done.code == 0
    tuning = done.json["tuning"]
    assert tuning["measured"] is True
    assert tuning["best"] <= tuning["first"]
    lines = len(records.read_text().splitlines())
    assert lines == tuning["trials"] - tuning["failed"]
    arguments[5] = "7"  # goes on
    assert isamap(*arguments).code == 0
    assert len(records.read_text().splitlines()) == lines + 3 + tuning["failed"]


@pytest.mark.skipif(runnable(load_hardware("x86_avx2")) is not None, reason="this CPU has no AVX2")
def test_native_is_a_machine_that_runs_here(isamap: "Run", matmul: Path) -> None:
    done = isamap("map", matmul, "--hw", "native", "--json")
    assert done.json["hardware"].startswith("x86_")
    assert done.json["checked"] is True


def _copied(name: str, folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text((shipped("hwdesc") / f"{name}.yaml").read_text())
    return path


def _scalar(folder: Path, mac: str, toolchain: str = "") -> Path:
    """Write the description of a machine that multiplies and adds numbers as ``mac`` says."""
    path = folder / "scalar.yaml"
    path.write_text(f"""\
format: 1
name: scalar
title: a machine of its own
clock: 1 GHz
storages:
  reg: {{kind: registers, count: 16, bits: 32, types: {{f32: float}}}}
  imm: {{kind: immediate}}
  memory: {{kind: memory}}
instructions:
  - semantics: |
      instruction ld {{ in m : f32[] @ memory   out r : f32[] @ reg   r[] = m[] }}
    emit: "{{r}} = *{{m}};"
    throughput: 1
    latency: 4
  - semantics: |
      instruction st {{ in r : f32[] @ reg   out m : f32[] @ memory   m[] = r[] }}
    emit: "*{{m}} = {{r}};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction set {{ in v : f32[] @ imm   out r : f32[] @ reg   r[] = v[] }}
    emit: "{{r}} = {{v}};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction mac {{
        in a : f32[] @ reg   in b : f32[] @ reg   inout c : f32[] @ reg   c[] += a[] * b[]
      }}
    emit: "{mac}"
    throughput: 1
    latency: 4
toolchain:
  compiler: gcc
  flags: [-std=gnu11, -O1, -ffp-contract=off]
  headers: [stdint.h, string.h]
  {toolchain}
""")
    return path
