"""An interruption while the solver works is one."""

import os
import signal
import threading

import pytest
import z3

from isamap.solver.check import check


def _hard() -> z3.Solver:
    """Return a question about 64 bits that takes long."""
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    a, b, c, d, e, f = (z3.BitVec(name, 64) for name in "abcdef")
    solver.add(a * b * c == d * e * f + 12345671, a * a * b == c * d + 7, b * c * e == f * a + 3)
    solver.add(a & 1 == 1, b & 1 == 1, a != b, z3.UGT(c, f), z3.ULT(d, e))
    return solver


def test_an_interruption_is_no_unknown_answer() -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            check(_hard())
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_other_answers_are_the_solver_s() -> None:
    x = z3.Int("x")
    solver = z3.Solver()
    solver.add(x > 0)
    assert check(solver) == z3.sat
    assert check(solver, x < 0) == z3.unsat
    solver = _hard()
    solver.set("timeout", 1)
    assert check(solver) == z3.unknown
