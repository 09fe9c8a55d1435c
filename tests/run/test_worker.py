import time
from pathlib import Path

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.ir.dtype import DTYPES
from isamap.ir.index import const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import Copy
from isamap.run.measure import Measurement, measure
from isamap.run.outcome import Crash
from isamap.run.worker import Limits, Loaded, Worker
from tests.emit.building import emitted, loaded
from tests.emit.machines import kernel
from tests.emit.samples import (
    failing,
    gemm,
    greedy,
    increment,
    indices,
    padded,
    reversal,
    sample,
    surviving,
)

X = {"X": np.array([1], np.int64)}


def operands(m: int = 5, n: int = 37, k: int = 7) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (m, k)).astype(np.float32)
    return {"A": a, "B": rng.integers(-8, 8, (k, n)).astype(np.float32)}


EXTENTS = {"M": 5, "N": 37, "K": 7}


def test_several_kernels_take_turns() -> None:
    arrays = operands()
    with Worker() as worker:
        gemm_kernel, other = loaded(gemm()), loaded(increment())
        for threads in (1, 2, 1):
            got = worker.run(gemm_kernel, arrays, EXTENTS, threads)
            assert not isinstance(got, Crash)
            np.testing.assert_array_equal(got["C"], arrays["A"] @ arrays["B"])
            z = np.array([6], np.int64)
            changed = worker.run(other, {"Z": z}, {})
            assert not isinstance(changed, Crash)
            assert (changed["Z"][0], z[0]) == (7, 6)


def test_results_stay_when_the_next_kernel_runs() -> None:
    with Worker() as worker:
        kernel = loaded(reversal())
        x = np.arange(9 * 4, dtype=np.int32).reshape(9, 4)
        first = worker.run(kernel, {"X": x}, {"N": 4})
        second = worker.run(kernel, {"X": np.zeros((9, 50_000), np.int32)}, {"N": 50_000})
        assert not isinstance(first, Crash)
        assert not isinstance(second, Crash)
        np.testing.assert_array_equal(first["Y"], x[:, ::-1])


def test_a_crash_is_reported_and_not_the_end() -> None:
    with Worker() as worker:
        crashed = worker.run(loaded(failing("crash")), X, {})
        assert isinstance(crashed, Crash)
        assert (crashed.kind, crashed.signal) == ("crash", "SIGSEGV")
        assert crashed.diagnostic.code == "E506"
        assert not isinstance(worker.run(loaded(gemm()), operands(), EXTENTS), Crash)


def test_a_kernel_that_does_not_end_is_stopped() -> None:
    start = time.monotonic()
    with Worker(Limits(seconds=0.3)) as worker:
        stuck = worker.run(loaded(failing("hang")), X, {})
        assert isinstance(stuck, Crash)
        assert stuck.kind == "timeout"
        assert "0.3 s" in stuck.message
        assert not isinstance(worker.run(loaded(gemm()), operands(), EXTENTS), Crash)
    assert time.monotonic() - start < 20


def test_a_workspace_beyond_the_limit_is_reported() -> None:
    with Worker(Limits(memory=3 << 30)) as worker:
        x = {"X": np.array([9], np.uint8)}
        kernel = loaded(greedy())
        few = worker.run(kernel, x, {"M": 1})
        assert not isinstance(few, Crash)
        assert few["Y"][0] == 9
        many = worker.run(kernel, x, {"M": 64})
        assert isinstance(many, Crash)
        assert many.kind == "memory"
        assert not isinstance(worker.run(kernel, x, {"M": 2}), Crash)


def test_a_violated_requirement_is_told_in_words() -> None:
    kernel = loaded(indices((var("M"),), (1, 1), requires=(3 - var("M"),)))
    with Worker() as worker:
        refused = worker.run(kernel, {"T": np.zeros(4, np.int32)}, {"M": 4})
        assert isinstance(refused, Crash)
        assert refused.kind == "refused"
        assert "'-M + 3 >= 0' does not hold" in refused.message


def test_a_library_that_is_none_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "gemm.so"
    path.write_bytes(b"no library")
    with Worker() as worker:
        found = worker.run(Loaded(path, emitted(gemm())), operands(), EXTENTS)
    assert isinstance(found, Crash)
    assert found.kind == "unloadable"


def test_a_library_without_the_function_is_reported() -> None:
    with Worker() as worker:
        kernel = Loaded(loaded(gemm()).path, emitted(increment()))
        found = worker.run(kernel, {"Z": np.array([6], np.int64)}, {})
    assert isinstance(found, Crash)
    assert found.kind == "unloadable"
    assert "increment" in found.detail


def test_wrong_arrays_are_refused_before_anything_runs() -> None:
    with Worker() as worker, pytest.raises(ArgumentsError) as caught:
        worker.run(
            loaded(gemm()), {"A": np.zeros((5, 7)), "B": np.zeros((2, 2), np.float32)}, EXTENTS
        )
    assert [d.code for d in caught.value.diagnostics] == ["E521", "E522"]


def test_unwritten_elements_are_not_a_number() -> None:
    fill = Copy((("i", const(2)),), "Y", var("i"), None, const(0), (), Literal("1", DTYPES["bf16"]))
    made = sample(kernel("half", [("Y", "out", "bf16", [4])]), (fill,))
    with Worker() as worker:
        got = worker.run(loaded(made), {}, {})
    assert not isinstance(got, Crash)
    assert np.isnan(got["Y"].astype(np.float32)).tolist() == [False, False, True, True]


def test_samples_of_every_kernel_are_taken() -> None:
    with Worker() as worker:
        kernels = [loaded(gemm()), loaded(gemm(parallel=True))]
        taken = worker.time(kernels, operands(), EXTENTS, repeats=3, window=0.0005)
        assert not isinstance(taken, Crash)
        assert [len(samples) for samples in taken] == [3, 3]
        assert all(0 < seconds < 0.1 for samples in taken for seconds in samples)


def test_slow_kernels_are_sampled_less_often() -> None:
    with Worker(Limits(seconds=4)) as worker:
        kernel = loaded(gemm())
        taken = worker.time([kernel], operands(), EXTENTS, repeats=1000, window=0.5)
    assert not isinstance(taken, Crash)
    assert 1 <= len(taken[0]) <= 6


def test_longer_work_takes_longer() -> None:
    with Worker() as worker:
        kernel = loaded(gemm())
        small = worker.time([kernel], operands(), EXTENTS)
        sizes = {"M": 100, "N": 370, "K": 70}
        large = worker.time([kernel], operands(100, 370, 70), sizes)
        assert not isinstance(small, Crash)
        assert not isinstance(large, Crash)
        assert min(large[0]) > 10 * min(small[0])


def test_candidates_are_measured_by_turns() -> None:
    with Worker() as worker:
        found = measure(worker, [loaded(padded())] * 2, {"X": padded_input()}, {}, repeats=3)
        assert all(isinstance(m, Measurement) for m in found)
        first = found[0]
        assert isinstance(first, Measurement)
        assert first.best <= first.typical
        assert first.typical in first.samples


def padded_input() -> np.ndarray:
    dtype = padded().kernel.buffer("X").dtype.numpy
    return np.ones((5, 5), dtype)


def test_a_mixed_comparison_keeps_its_order() -> None:
    # Both take one s64 and write one: same parameters, one of them deadly.
    with Worker(Limits(seconds=1.0)) as worker:
        kernels = [loaded(failing("crash")), loaded(surviving()), loaded(failing("hang"))]
        crashed, measured, stuck = measure(worker, kernels, X, {}, repeats=3)
    assert isinstance(crashed, Crash)
    assert isinstance(measured, Measurement)
    assert isinstance(stuck, Crash)
    assert (crashed.kind, stuck.kind) == ("crash", "timeout")
