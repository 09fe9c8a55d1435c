import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import isamap
from isamap.diagnostics import ArgumentsError, NoMappingError, ParseError, ToolError

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def _kernel(folder: Path, text: str) -> "isamap.Kernel":
    (folder / "k.ir").write_text(text)
    return isamap.load_kernel(folder / "k.ir")


def _matmul(folder: Path, dtype: str = "f32", total: str = "f32") -> "isamap.Kernel":
    cast = "" if dtype == total else total
    return _kernel(
        folder,
        f"kernel mm(M, N, K) {{ in A : {dtype}[M, K] in B : {dtype}[K, N] out C : {total}[M, N]"
        f" C[m, n] += {cast}(A[m, k]) * {cast}(B[k, n]) }}",
    )


def test_a_kernel_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    one = "kernel one { in X : f32[4] out Y : f32[4] Y[i] = X[i] }\n"
    (tmp_path / "k.ir").write_text(one + one.replace("one", "other"))
    assert isamap.load_kernel(tmp_path / "k.ir", name="other").name == "other"
    with pytest.raises(ArgumentsError, match=r"2 kernels: one, other\n.*--kernel NAME.*name="):
        isamap.load_kernel(tmp_path / "k.ir")


def test_every_name_is_there() -> None:
    for name in isamap.__all__:
        assert getattr(isamap, name) is not None
    assert dir(isamap) == sorted(isamap.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        isamap.nonsense  # noqa: B018


@needs_gcc
def test_a_mapped_kernel_is_a_function(tmp_path: Path) -> None:
    result = isamap.map(_matmul(tmp_path), isamap.load_hardware("portable_c"))
    generator = np.random.default_rng(0)
    f = result.compile()
    for m, n, k in ((1, 1, 1), (7, 9, 11), (33, 16, 8)):
        a = generator.integers(-4, 5, (m, k)).astype(np.float32)
        b = generator.integers(-4, 5, (k, n)).astype(np.float32)
        np.testing.assert_array_equal(f(A=a, B=b)["C"], a @ b)
        np.testing.assert_array_equal(f(a, b)["C"], a @ b)


@needs_gcc
def test_bf16_arrays_are_ml_dtypes(tmp_path: Path) -> None:
    result = isamap.map(_matmul(tmp_path, "bf16"), isamap.load_hardware("portable_c"))
    a = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    b = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(result.compile()(a, b)["C"], expected)


@needs_gcc
def test_a_scalar_of_numpy_is_an_array(tmp_path: Path) -> None:
    text = "kernel k { in a : f32[] in X : f32[4] out Y : f32[4] Y[i] = a[] * X[i] }"
    f = isamap.map(_kernel(tmp_path, text), isamap.load_hardware("portable_c")).compile()
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(f(a=np.float32(3), X=x)["Y"], 3 * x)
    with pytest.raises(ArgumentsError, match=r"E521.*a .*found float64"):
        f(a=np.float64(3), X=x)


@needs_gcc
def test_an_array_that_nobody_gives_is_told_what_it_is(tmp_path: Path) -> None:
    text = (
        "kernel k { in X : f32[4] const V : f32[4] const W : f32[2] = [1, 2] local T : f32[4] "
        "out Y : f32[4] T[i] = X[i] * W[1]\n Y[i] = T[i] + V[i] }"
    )
    f = isamap.map(_kernel(tmp_path, text), isamap.load_hardware("portable_c")).compile()
    x = np.ones(4, np.float32)
    for name, what in (
        ("W", "W is a table: its elements are written in the kernel, leave it out"),
        ("T", "T is local: it exists within the kernel only, leave it out"),
        ("Y", "Y is an output: an array to write it to is given with out="),
        ("Z", "the inputs are: X, V"),
    ):
        with pytest.raises(ArgumentsError, match=rf"E531.*k has no input {name}\n  help: {what}"):
            f(X=x, V=x, **{name: x})  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match=r"V is a constant that was given ahead, to prepare"):
        f.prepare(V=x).call({"X": x, "V": x})


@pytest.mark.parametrize(
    ("name", "reason"),
    [("aarch64_neon", "'qemu-aarch64' runs it"), ("wasm_relaxed", "'wasmtime' runs it")],
)
def test_code_that_another_machine_runs_is_no_function(
    tmp_path: Path, name: str, reason: str
) -> None:
    result = isamap.map(_matmul(tmp_path), isamap.load_hardware(name))
    with pytest.raises(ToolError, match=rf"E546.*{name} is no function.*{reason}") as caught:
        result.compile()
    assert caught.value.exit_code == 5


def test_code_for_another_cpu_is_no_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = isamap.map(_matmul(tmp_path), isamap.load_hardware("x86_avx512"))
    monkeypatch.setattr("isamap.hw.native.cpu_features", frozenset)
    with pytest.raises(ToolError, match=r"E546.*this CPU lacks avx512f"):
        result.compile()


@needs_gcc
def test_several_threads_may_call(tmp_path: Path) -> None:
    f = isamap.map(_matmul(tmp_path), isamap.load_hardware("portable_c")).compile()
    a, b = np.ones((40, 50), np.float32), np.ones((50, 60), np.float32)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda scale: f(a * scale, b)["C"], range(16)))
    for scale, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full((40, 60), 50.0 * scale, np.float32))


def test_a_result_tells_what_was_found(tmp_path: Path) -> None:
    kernel = isamap.load_kernel(_saved(tmp_path), set={"M": 32})
    result = isamap.map(kernel, isamap.load_hardware("gemm16"))
    (statement,) = result.statements
    assert statement.name == "C"
    assert result.mappings == (statement.mappings[statement.chosen],)
    assert result.mappings[0].matching.needle.name == "gemm_f32"
    assert result.estimate.cycles > 0
    assert result.c is None
    assert "toolchain" in result.no_c
    with pytest.raises(FrozenInstanceError):
        result.no_c = ""  # type: ignore[misc]


def test_a_report_is_run_and_checked(tmp_path: Path) -> None:
    kernel = isamap.load_kernel(_saved(tmp_path), set={"M": 20})
    report = isamap.report(kernel, isamap.load_hardware("gemm16"))
    assert report.check is not None
    assert report.check.ok
    assert report.check.outputs == report.check.total == 20 * 16
    assert report.exit_code == 0


def test_what_is_printed_of_a_report_is_its_gist(tmp_path: Path) -> None:
    kernel = _kernel(
        tmp_path,
        "kernel k { in X : s32[8] out Y : s32[8] out Z : s32[] Y[i] = X[i]\n Z[] += X[i] }",
    )
    report = isamap.report(
        kernel, isamap.load_hardware("portable_c"), isamap.Options(simulate=True)
    )
    first, *statements, last = str(report).splitlines()
    estimate = report.result.estimate
    told = f"{estimate.cycles:.4g} cycles estimated, bound by {estimate.bound_by}"
    assert first == f"k on portable_c: {told}"
    assert [line.split(":")[0] for line in statements] == ["  Y", "  Z"]
    assert last.startswith("simulated, ")
    assert last.endswith("; bit for bit")
    assert repr(report) == f"<Report <Result {first}>, {last}>"


def test_a_sampled_check_finds_a_wrong_tail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isamap.interp.inputs import random_inputs
    from isamap.interp.run import interpret
    from isamap.pipeline import verify

    monkeypatch.setattr(verify, "WHOLE_ITERATIONS", 0)
    kernel = isamap.load_kernel(_saved(tmp_path), set={"M": 300})
    result = isamap.map(kernel, isamap.load_hardware("gemm16"))
    arrays = random_inputs(kernel, {}, 0)
    check = verify.prepare_check(result, arrays, {}, 0)
    right = interpret(kernel, arrays)
    found = check(right)
    assert found.ok
    assert found.total == 300 * 16
    assert found.outputs < found.total
    right["C"][299, 15] += 1.0
    assert not check(right).ok


def test_faults_have_their_class(tmp_path: Path) -> None:
    (tmp_path / "bad.ir").write_text("kernel {")
    with pytest.raises(ParseError):
        isamap.load_kernel(tmp_path / "bad.ir")
    (tmp_path / "none.ir").write_text("# nothing")
    with pytest.raises(ArgumentsError, match="holds no kernel"):
        isamap.load_kernel(tmp_path / "none.ir")
    kernel = _kernel(tmp_path, "kernel k(N=4) {in X : f64[N] out Y : f64[N] Y[n] = exp(X[n])}")
    with pytest.raises(NoMappingError) as caught:
        isamap.map(kernel, isamap.load_hardware("gemm16"))
    assert isinstance(caught.value, isamap.IsamapError)
    assert caught.value.exit_code == 3


def _saved(folder: Path) -> Path:
    path = folder / "mm.ir"
    path.write_text(
        "kernel mm(M = 16, N = 16, K = 24) { in A : f32[M, K] in B : f32[K, N] out C : f32[M, N]"
        " C[m, n] += A[m, k] * B[k, n] }"
    )
    return path
