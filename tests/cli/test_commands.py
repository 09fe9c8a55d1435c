import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isamap.hw.native import best_shipped

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_match_lists_legal_mappings(isamap: "Run", matmul: Path) -> None:
    done = isamap("match", matmul, "--hw", "gemm16", "--all")
    assert done.code == 0
    assert "gemm_f32" in done.out
    assert "legal mappings" in done.out


def test_match_of_one_instruction(isamap: "Run", matmul: Path) -> None:
    done = isamap("match", matmul, "--hw", "gemm16", "--instruction", "gemm_f32", "--json")
    (statement,) = done.json["statements"]
    assert {m["instruction"] for m in statement["mappings"]} == {"gemm_f32"}
    assert statement["complete"] is True
    assert "chosen" not in statement


def test_match_of_an_unknown_instruction(isamap: "Run", matmul: Path) -> None:
    done = isamap("match", matmul, "--hw", "gemm16", "--instruction", "gemm_f3")
    assert done.code == 1
    assert "did you mean gemm_f32" in done.err


def test_match_without_a_mapping_is_exit_3(isamap: "Run", matmul: Path) -> None:
    done = isamap("match", matmul, "--hw", "gemm16", "--instruction", "gemm_s8")
    assert done.code == 3


def test_match_of_an_instruction_that_computes_one_statement_of_two(
    isamap: "Run", tmp_path: Path
) -> None:
    kernel = tmp_path / "k.ir"
    kernel.write_text(
        """kernel k(N = 32) {
          in X : f32[N] const F : f32[N] local S : f32[N] out Y : f32[N]
          S[n] += X[n] * F[n]
          Y[n] = max(S[n], 0)
        }"""
    )
    done = isamap("match", kernel, "--hw", "x86_avx2", "--instruction", "vmax_f32")
    assert done.code == 0
    first, second = done.out.split("\n\n")[1:]
    assert first.splitlines()[1:] == ["    no legal mapping"]
    assert "vmax_f32" in second


def test_check_tells_what_is_good(isamap: "Run", matmul: Path) -> None:
    done = isamap("check", matmul)
    assert (done.code, done.out) == (0, f"{matmul}: good: 1 kernel\n")


def test_check_of_nothing_is_no_good_kernel(isamap: "Run", tmp_path: Path) -> None:
    empty = tmp_path / "empty.ir"
    empty.write_text("# nothing yet\n")
    done = isamap("check", empty)
    assert (done.code, done.out) == (1, "")
    assert f"error[E701]: '{empty}' holds no kernel" in done.err


def test_check_goes_on_after_a_fault(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    bad, machine = tmp_path / "bad.ir", tmp_path / "bad.yaml"
    bad.write_text("kernel k( {")
    machine.write_text("format: 1\nname: x\nwhat: 1\n")
    done = isamap("check", bad, machine, matmul)
    assert done.code == 1
    assert f"{bad}:1:" in done.err
    assert f"{machine}:" in done.err
    assert f"{matmul}: good" in done.out


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"(" * 100_000, "\u202e".encode()])
def test_check_survives_anything(isamap: "Run", tmp_path: Path, content: bytes) -> None:
    for name in ("x.ir", "x.yaml"):
        (tmp_path / name).write_bytes(content)
        assert isamap("check", tmp_path / name).code in (0, 1)


def test_hw_list_names_what_ships(isamap: "Run") -> None:
    done = isamap("hw", "list")
    assert done.code == 0
    for name in ("portable_c", "x86_avx2", "x86_avx512", "gemm16"):
        assert f" {name} " in done.out
    assert done.out.splitlines()[-1] == f"'native' is {best_shipped()} here."
    assert max(map(len, done.out.splitlines())) <= 80


def test_hw_show_leaves_inherited_instructions_to_all(isamap: "Run") -> None:
    own, whole = isamap("hw", "show", "x86_avx2"), isamap("hw", "show", "x86_avx2", "--all")
    assert "(--all lists them)" in own.out
    assert "c_add_f32" not in own.out
    assert "c_add_f32" in whole.out
    assert "vfmadd_f32" in own.out


def test_hw_show_tells_storages_and_instructions(isamap: "Run") -> None:
    done = isamap("hw", "show", "gemm16")
    assert done.code == 0
    assert "scratchpad" in done.out
    assert "gemm_f32" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_run_computes_given_arrays(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    a = np.arange(24 * 16, dtype=np.float32).reshape(24, 16) % 7
    b = np.arange(16 * 40, dtype=np.float32).reshape(16, 40) % 5
    np.savez(tmp_path / "in.npz", A=a, B=b)
    arguments = ["--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz"]
    done = isamap("run", matmul, "--hw", "gemm16", *arguments)
    assert done.code == 0
    assert "simulated, because" in done.err
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_array_equal(out["C"], a @ b)


def test_run_takes_symbols_from_the_arrays(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    matmul.write_text(matmul.read_text().replace("M = 24, N = 40, K = 16", "M, N, K"))
    np.savez(tmp_path / "in.npz", A=np.ones((3, 5), np.float32), B=np.ones((5, 2), np.float32))
    done = isamap("run", matmul, "--hw", "portable_c", "--inputs", tmp_path / "in.npz")
    assert done.code == 0
    assert "C[3, 2] float32: min 5, max 5, mean 5" in done.out


def test_run_without_inputs_takes_random_ones(isamap: "Run", matmul: Path) -> None:
    first = isamap("run", matmul, "--hw", "gemm16", "--seed", "1")
    again = isamap("run", matmul, "--hw", "gemm16", "--seed", "1")
    other = isamap("run", matmul, "--hw", "gemm16", "--seed", "2")
    assert first.code == 0
    assert first.out == again.out != other.out


def test_run_without_sizes_is_exit_1(isamap: "Run", matmul: Path) -> None:
    matmul.write_text(matmul.read_text().replace("M = 24", "M"))
    done = isamap("run", matmul, "--hw", "portable_c")
    assert done.code == 1
    assert "--set M=64" in done.err


def test_run_with_wrong_arrays_is_exit_1(isamap: "Run", matmul: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", A=np.ones((24, 15), np.float32), B=np.ones((16, 40), np.float32))
    done = isamap("run", matmul, "--hw", "portable_c", "--inputs", tmp_path / "in.npz")
    assert done.code == 1
    assert "'A' has shape [24, 16] in the kernel but [24, 15] here" in done.err


def test_run_that_would_take_too_long_is_exit_6(isamap: "Run", matmul: Path) -> None:
    sizes = ["--set", "M=2048", "--set", "N=2048", "--set", "K=2048"]
    done = isamap("run", matmul, "--hw", "gemm16", *sizes)
    assert done.code == 6
    assert "--simulate" in done.err


def test_a_certificate_is_saved_and_checked_in_another_process(
    isamap: "Run", tmp_path: Path
) -> None:
    path = tmp_path / "mm.proof.json"
    kernel = str(Path(__file__).parent / "golden" / "mm.ir")
    machine = str(Path(__file__).parent / "golden" / "toy.yaml")
    saved = isamap("prove", kernel, "--hw", machine, "--save", str(path))
    assert saved.code == 0
    assert f"saved     {path}" in saved.out
    command = [sys.executable, "-m", "isamap", "prove", "--check", str(path)]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "proved: of its claims" in again.stdout
    assert isamap("prove", "--check", str(path), kernel, "--hw", machine).code == 0
    foreign = isamap("prove", "--check", str(path), "--hw", "gemm16")
    assert foreign.code == 1
    assert "error[E775]" in foreign.err
    assert foreign.out == ""  # nothing is proved of it
    other = tmp_path / "other.ir"
    other.write_text(Path(kernel).read_text().replace("kernel mm", "kernel nn"))
    foreign = isamap("prove", "--check", str(path), other, "--json")
    assert (foreign.code, len(foreign.json["differences"])) == (1, 1)
    assert "another kernel than nn" in foreign.err
    path.write_text(path.read_text().replace("one element of the kernel's", "no element"))
    wrong = isamap("prove", "--check", str(path))
    assert wrong.code == 1
    assert "error[E775]" in wrong.err
    assert isamap("prove", "--check", str(tmp_path / "none.json")).code == 1
    assert isamap("prove", "--check", str(path), "--save", str(path)).code == 2
    assert isamap("prove", "--hw", machine).code == 2


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000, "[" * 5000 + "]" * 5000])
def test_a_certificate_without_end_is_told(isamap: "Run", tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text)
    done = isamap("prove", "--check", str(path))
    assert done.code == 1
    assert "error[E771]" in done.err


def test_an_extent_has_one_value(isamap: "Run") -> None:
    twice = isamap("match", "examples/matmul.ir", "--set", "M=3", "--set", "M=4")
    assert twice.code == 2
    assert "M is given two values, 3 and 4" in twice.err
    assert isamap("check", "examples/matmul.ir").code == 0


def test_arrays_that_nothing_can_address_are_told_at_once(isamap: "Run", tmp_path: Path) -> None:
    path = tmp_path / "huge.ir"
    path.write_text(
        "kernel k(N = 4611686018427387904) { in A : f32[N]  out C : f32[N]  C[n] = A[n] }"
    )
    for command in ("map", "run"):
        done = isamap(command, str(path), "--hw", "portable_c")
        assert done.code == 6
        assert "error[E753]: the arrays of k take 36893488147419103232 bytes" in done.err
