"""Constants are given once: to the callable, in the worker and in a program."""

import numpy as np
import pytest

from isamap.diagnostics import ArgumentsError
from isamap.run.build import build_program
from isamap.run.callable import Compiled
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from isamap.run.worker import Worker
from tests.emit.building import MACHINE, compiled, emitted, loaded
from tests.emit.samples import increment, prepared

W, V = np.arange(5, dtype=np.int32), np.arange(10, 15, dtype=np.int32)
X = np.zeros(3, np.int32)


@pytest.fixture(scope="module")
def function() -> Compiled:
    return compiled(prepared())


def is_right(found: dict[str, np.ndarray], rows: int = 3) -> bool:
    y, z = found["Y"].tolist(), found["Z"].tolist()
    return (y, z) == ([[4, 3, 2, 1, 0]] * rows, [[10, 11, 12, 13, 14]] * rows)


def test_a_call_with_everything_prepares_and_computes(function: Compiled) -> None:
    assert is_right(function(W, V, X))
    assert is_right(function(W=W, V=V, X=X, threads=2))


def test_constants_are_given_once(function: Compiled) -> None:
    for ready in (function.prepare(W, V), function.prepare(W, V=V), function.prepare(V=V, W=W)):
        assert is_right(ready(X))
        assert is_right(ready(X=X))
        # Another extent, of which the constants know nothing.
        assert is_right(ready(np.zeros(7, np.int32)), 7)


def test_what_is_only_prepared_is_not_held(function: Compiled) -> None:
    own = W.copy()
    ready = function.prepare(own, V)
    own[:] = 99
    assert is_right(ready(X))


def test_a_bound_call_computes_again(function: Compiled) -> None:
    y, z = np.empty((3, 5), np.int32), np.empty((3, 5), np.int32)
    again = function.prepare(W, V).bind(X, out={"Y": y, "Z": z})
    for _ in range(2):
        y[:] = z[:] = -1
        assert again()["Y"] is y
        assert is_right({"Y": y, "Z": z})
    y[:] = -1
    assert again.call() == 0
    assert is_right(again.outputs)
    assert is_right(function.bind(W, V, X)())


def test_a_kernel_that_prepares_nothing_can_be_prepared_all_the_same() -> None:
    z = np.array([1], np.int64)
    ready = compiled(increment()).prepare()
    assert ready(z)["Z"][0] == 2


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        ({"W": W}, "E520", "V"),
        ({"W": W, "V": V, "X": X}, "E531", "no constant X"),
        ({"W": W.astype(np.int64), "V": V}, "E521", "W"),
        ({"W": W, "V": V[:3]}, "E522", "V"),
        ({"W": W, "V": V, "symbols": {"N": 7}}, "E522", "W"),
    ],
)
def test_wrong_constants_are_refused(
    function: Compiled, given: dict[str, np.ndarray], code: str, told: str
) -> None:
    with pytest.raises(ArgumentsError, match=f"{code}.*{told}"):
        function.prepare(**given)  # type: ignore[arg-type]


def test_constants_given_again_or_for_other_extents_are_refused(function: Compiled) -> None:
    ready = function.prepare(W, V)
    with pytest.raises(ArgumentsError, match=r"E527.*W is given twice"):
        ready(X, W=W)
    with pytest.raises(ArgumentsError, match=r"E531.*no input W"):
        ready.call({"W": W, "X": X})
    with pytest.raises(ArgumentsError, match=r"E535.*for N = 5, not 6"):
        ready(X, symbols={"N": 6})
    with pytest.raises(ArgumentsError, match=r"E526.*2 constants \(W, V\), found 3"):
        function.prepare(W, V, V)
    with pytest.raises(ArgumentsError, match=r"E527.*W is given twice"):
        function.prepare(W, W=W)


def test_the_worker_prepares_before_it_runs_and_times() -> None:
    arrays, symbols = {"W": W, "V": V, "X": X}, {"M": 3, "N": 5}
    kernel = loaded(prepared())
    with Worker() as worker:
        found = worker.run(kernel, arrays, symbols)
        assert not isinstance(found, Crash)
        assert is_right(found)
        times = worker.time([kernel, kernel], arrays, symbols, repeats=2)
        assert not isinstance(times, Crash)
        assert [len(samples) for samples in times] == [2, 2]
        # Other constants, in the same process.
        other = worker.run(kernel, {**arrays, "W": W + 1}, symbols)
        assert not isinstance(other, Crash)
        assert other["Y"].tolist() == [[5, 4, 3, 2, 1]] * 3


def test_a_program_prepares_before_it_computes() -> None:
    source = emitted(prepared())
    path = build_program(source, MACHINE)
    arrays, symbols = {"W": W, "V": V, "X": X}, {"M": 3, "N": 5}
    found = run_program(path, source, MACHINE, arrays, symbols)
    assert not isinstance(found, Crash)
    assert is_right(found)
