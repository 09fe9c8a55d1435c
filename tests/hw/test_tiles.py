"""Tiles of matrices: what is made of them from the description, and that it computes the product.

The simulator executes everything here on any machine; what has tiles executes it, too.
"""

import shutil
import subprocess
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import isamap
from isamap.diagnostics import Source
from isamap.hw.accelerator import Accelerator
from isamap.interp.run import interpret
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import Call
from isamap.lower.number import used
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.way import native_choice
from isamap.proof.walk import sites
from isamap.schedule.reader import parse_schedule
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

KINDS = {
    "tdpbf16ps": ("bf16", "bf16", "f32"),
    "tdpbusd": ("u8", "s8", "s32"),
    "tdpbsud": ("s8", "u8", "s32"),
    "tdpbssd": ("s8", "s8", "s32"),
    "tdpbuud": ("u8", "u8", "s32"),
}

CONVOLUTION = """kernel convolution(H = 9, W = 21, C = 40, F = 20) {
  in    X : u8[H, W, C] pad 0
  const P : s8[3, 3, C, F]
  out   Y : s32[H, W, F]
  Y[h, w, f] += s32(X[h + r - 1, w + s - 1, c]) * s32(P[r, s, c, f])
}"""


@cache
def machine() -> Accelerator:
    return isamap.load_hardware("x86_amx")


def mapped(text: str, instruction: str | None = None, threads: int = 1) -> Result:
    (kernel,) = parse_module(text, "t.ir").kernels
    options = Options(threads=threads, instruction=instruction, rewrite=())
    return map_kernel(kernel, machine(), options)


@cache
def product(name: str, m: int, n: int, k: int, role: str = "in", threads: int = 1) -> Result:
    a, b, c = KINDS[name]
    text = f"""kernel mm(M = {m}, N = {n}, K = {k}) {{
      in A : {a}[M, K]  {role} B : {b}[K, N]  out C : {c}[M, N]
      C[m, n] += {c}(A[m, k]) * {c}(B[k, n])
    }}"""
    return mapped(text, name, threads)


def inputs(result: Result) -> dict[str, np.ndarray]:
    """Return inputs of which sums are exact: small floats, bytes of all values."""
    rng = np.random.default_rng(3)
    found = {}
    for buffer in bind_extents(result.kernel).buffers:
        if buffer.role not in ("in", "const"):
            continue
        shape = [int(extent.evaluate({})) for extent in buffer.shape]
        low, high = (-8, 9) if buffer.dtype.is_float else (buffer.dtype.lowest, 127)
        values = rng.integers(int(low), int(high) + 1, shape)
        found[buffer.name] = values.astype(buffer.dtype.numpy)
    return found


def instructions(result: Result) -> set[str]:
    found = sites(result.lowered)
    return {site.node.instruction for site in found if isinstance(site.node, Call)}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sizes", [(32, 32, 128), (37, 21, 75), (1, 1, 1), (16, 50, 3)])
def test_products_are_computed_by_tiles(name: str, sizes: tuple[int, int, int]) -> None:
    result = product(name, *sizes)
    assert name in instructions(result)
    arrays = inputs(result)
    expected = interpret(result.kernel, arrays)["C"]
    found = run_lowered(result.lowered, machine(), arrays, kernel=result.kernel)["C"]
    np.testing.assert_array_equal(found, expected)
    if native_choice(machine()).way == "native":
        np.testing.assert_array_equal(result.compile().call(arrays)["C"], expected)


def test_a_padded_convolution_is_computed_by_tiles() -> None:
    result = mapped(CONVOLUTION, "tdpbusd")
    arrays = inputs(result)
    expected = interpret(result.kernel, arrays)["Y"]
    found = run_lowered(result.lowered, machine(), arrays, kernel=result.kernel)["Y"]
    np.testing.assert_array_equal(found, expected)
    if native_choice(machine()).way == "native":
        np.testing.assert_array_equal(result.compile().call(arrays)["Y"], expected)


def test_rows_behind_a_padded_copy_are_read_whole() -> None:
    text = CONVOLUTION.replace("C = 40", "C = 64")
    result = mapped(text, "tdpbusd")
    own = result.schedule.statements[0]
    assert own.operands[0] == "padded"
    # Along w, whose elements lie closer than along h; of the last tile 5 rows are in use.
    assert own.mapping.tile["w"] == 16
    assert "tile_load_u8" in instructions(result)
    assert "tile_part_u8" not in instructions(result)
    arrays = inputs(result)
    expected = interpret(result.kernel, arrays)["Y"]
    found = run_lowered(result.lowered, machine(), arrays, kernel=result.kernel)["Y"]
    np.testing.assert_array_equal(found, expected)
    assert prove_result(result).verdict != "refuted"


@pytest.mark.parametrize(
    ("a", "b", "total", "out", "value"),
    [
        ("bf16", "bf16", "f32", "bf16", "bf16(S[m, n])"),
        ("bf16", "bf16", "f32", "f32", "max(S[m, n] + Z[n], 0)"),
        ("u8", "s8", "s32", "u8", "sat[u8](f32(S[m, n]) * 0.00390625)"),
        ("u8", "s8", "s32", "s8", "sat[s8](S[m, n])"),
    ],
)
def test_results_are_finished_as_they_leave_a_tile(
    a: str, b: str, total: str, out: str, value: str
) -> None:
    text = f"""kernel finished(M = 45, N = 40, K = 70) {{
      in A : {a}[M, K]  const B : {b}[K, N]  in Z : f32[N]
      local S : {total}[M, N]  out Y : {out}[M, N]
      S[m, n] += {total}(A[m, k]) * {total}(B[k, n])
      Y[m, n] = {value}
    }}"""
    if "Z" not in value:
        text = text.replace("  in Z : f32[N]", "")
    result = mapped(text, {"bf16": "tdpbf16ps", "u8": "tdpbusd"}[a])
    assert result.schedule.fused == {1: 0}
    assert any(name.startswith("tdp") for name in instructions(result))
    arrays = inputs(result)
    expected = interpret(result.kernel, arrays)["Y"]
    found = run_lowered(result.lowered, machine(), arrays, kernel=result.kernel)["Y"]
    np.testing.assert_array_equal(found, expected)
    if native_choice(machine()).way == "native":
        np.testing.assert_array_equal(result.compile().call(arrays)["Y"], expected)


def test_the_block_is_two_by_two_tiles() -> None:
    result = product("tdpbf16ps", 512, 512, 512, "const")
    (own,) = result.schedule.statements
    steps = {level.variable: level.step for level in own.levels}
    assert (steps["m"], steps["n"], steps["k"]) == (32, 32, 32)
    assert {register.number for register in used(result.lowered.body)} <= set(range(8))


@pytest.mark.parametrize(("name", "size"), [("tdpbf16ps", 256), ("tdpbusd", 256)])
def test_tiles_are_chosen_where_they_are_faster(name: str, size: int) -> None:
    a, b, c = KINDS[name]
    text = f"""kernel mm(N = {size}) {{
      in A : {a}[N, N]  in B : {b}[N, N]  out C : {c}[N, N]
      C[m, n] += {c}(A[m, k]) * {c}(B[k, n])
    }}"""
    assert name in instructions(mapped(text))


def test_a_schedule_with_tiles_is_read_as_it_was_written() -> None:
    result = product("tdpbf16ps", 40, 32, 64, "const")
    text = schedule_text(result)
    assert "k*p <- k" in text
    written = parse_schedule(Source("x.schedule", text))
    again = map_kernel(result.kernel, machine(), Options(schedule=written, rewrite=()))
    assert again.schedule == result.schedule


def test_what_tiles_do_not_compute_is_left_to_vectors() -> None:
    text = "kernel add(N = 70) { in X : f32[N] in Y : f32[N] out Z : f32[N] Z[n] = X[n] + Y[n] }"
    result = mapped(text)
    assert {"vadd_f32"} <= instructions(result)
    assert result.source is not None
    assert "tile" not in result.source.text


@pytest.mark.parametrize("sizes", [(32, 32, 128), (37, 21, 75)])
def test_code_with_tiles_is_proved(sizes: tuple[int, int, int]) -> None:
    certificate = prove_result(product("tdpbusd", *sizes))
    assert certificate.verdict != "refuted"
    assert [c.verdict for c in certificate.claims if c.name == "numbers"] == ["proved"]


def test_the_code_of_a_product(golden: Callable[[Path, str], None], tmp_path: Path) -> None:
    source = product("tdpbf16ps", 40, 32, 64, "const").source
    assert source is not None
    golden(Path(__file__).parent / "golden" / "tiles.c", source.functions)
    toolchain = machine().toolchain
    assert toolchain is not None
    if shutil.which(toolchain.compiler[0]) is None:
        pytest.skip(f"{toolchain.compiler[0]} is not installed")
    path = tmp_path / "tiles.c"
    path.write_text(source.text, encoding="utf-8")
    command = [
        *toolchain.compiler,
        *toolchain.flags,
        "-Wall",
        "-Wextra",
        "-S",
        "-o",
        "-",
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if "unrecognized command-line option" in done.stderr:
        pytest.skip("the compiler is for another machine")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    lines = done.stdout.split()
    # One by two tiles in two steps of k, written out for both iterations of a loop, then the last
    # eight rows in the same way.
    assert source.functions.count("isamap_tile_multiply(tdpbf16ps, ") == 2 * (2 * 2) + 2 * 2
    assert "tdpbf16ps" in lines
    assert lines.count("ldtilecfg") == lines.count("tilerelease") == 1


# --- on a machine that has tiles ----------------------------------------------------------------
@pytest.fixture
def tiles() -> Accelerator:
    if (choice := native_choice(machine())).way != "native":
        pytest.skip(f"this CPU does not run x86_amx itself: {choice.reason}")
    return machine()


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_has_tiles(threads: int) -> None:
    result = product("tdpbusd", 200, 130, 96, "in", threads)
    arrays = inputs(result)
    expected = arrays["A"].astype(np.int32) @ arrays["B"].astype(np.int32)
    compiled = result.compile()
    wrong: list[str] = []

    def several() -> None:
        for _ in range(20):
            if not np.array_equal(compiled.call(arrays, threads=threads)["C"], expected):
                wrong.append("differs")

    several()
    callers = [threading.Thread(target=several) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def flushed(values: np.ndarray) -> np.ndarray:
    """Return values with subnormal numbers replaced by zero of their sign."""
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), values), values).astype(np.float32)


@pytest.mark.usefixtures("tiles")
def test_sums_of_bf16_are_rounded_as_the_description_says() -> None:
    """Even k and odd k are summed from zero, fused; both are added, and that to c."""
    result = product("tdpbf16ps", 16, 16, 32)
    rng = np.random.default_rng(5)
    compiled = result.compile()
    for turn in range(20):
        scale = np.exp2(rng.integers(-70 if turn % 2 else -4, 3, (2, 16, 32)))
        a, b = (rng.normal(size=(2, 16, 32)) * scale).astype(ml_dtypes.bfloat16)
        found = compiled.call({"A": a, "B": np.ascontiguousarray(b.T)})["C"]
        left, right = flushed(a.astype(np.float32)), flushed(b.astype(np.float32))
        sums = [np.zeros((16, 16), np.float32) for _ in range(2)]
        for k in range(32):
            # The product of two bf16 is exact in f64, and the sum with an f32 nearly always is.
            exact = left[:, None, k].astype(np.float64) * right[None, :, k].astype(np.float64)
            sums[k % 2] = flushed((exact + sums[k % 2]).astype(np.float32))
        expected = flushed(sums[0] + sums[1])
        same = found.view(np.int32) == expected.view(np.int32)
        assert same.mean() > 0.99, f"turn {turn}: {same.mean()}"
