"""Rounds in which a statement asks for what the next one reads."""

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.lower import next_round
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.schedule.schedule import Early, StatementSchedule
from isamap.schedule.treatment import inputs
from isamap.text.load import parse_module

MACHINE = "x86_avx512_intel"


def softmax(rows: int, columns: int) -> Kernel:
    (kernel,) = parse_module(
        f"""kernel softmax permit approximate(1e-6) {{
          in X : f32[{rows}, {columns}]
          local M : f32[{rows}]
          local E : f32[{rows}, {columns}]
          local S : f32[{rows}]
          out Y : f32[{rows}, {columns}]
          M[r] max= X[r, c]
          E[r, c] = exp(X[r, c] - M[r])
          S[r] += E[r, c]
          Y[r, c] = E[r, c] / S[r]
        }}"""
    ).kernels
    return kernel


def mapped(kernel: Kernel) -> Result:
    return map_kernel(kernel, load_hardware(MACHINE), Options(prove=False))


def exponential(result: Result) -> StatementSchedule:
    """Return how the statement of the exponentials runs."""
    statements = result.schedule.statements
    (own,) = (s for s in statements if s.mapping.matching.statement.target.buffer == "E")
    return own


def asked(result: Result) -> list[Early]:
    """Return what it asks for of X."""
    own = exponential(result)
    pairs = inputs(own.mapping)
    return [e for e in own.early if e.access is not None and pairs[e.access][1].buffer == "X"]


def test_the_busiest_statement_that_reads_it_again_asks_for_the_next_round() -> None:
    result = mapped(softmax(4096, 1000))
    (early,) = asked(result)
    steps = [level.step for level in exponential(result).levels if level.variable == "r"]
    # As many iterations of its own loop as a round has.
    assert (early.variable, early.count) == ("r", steps[0] // steps[-1])


@pytest.mark.parametrize(("rows", "columns"), [(128, 128), (64, 32000)])
def test_what_is_near_and_what_has_no_room_is_not_asked_for(rows: int, columns: int) -> None:
    assert asked(mapped(softmax(rows, columns))) == []


def test_a_statement_without_time_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_round, "HINT", 1000)
    assert asked(mapped(softmax(4096, 1000))) == []
