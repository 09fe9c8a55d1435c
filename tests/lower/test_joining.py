"""Mappings that keep their statement out of the rounds of others."""

import pytest

from isamap.lower import choose
from isamap.lower.joining import shortening
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.text.load import parse_module

SOFTMAX = """
kernel softmax permit approximate(1.2e-7) {
  in    X : f32[197, 197]
  local M : f32[197]
  local E : f32[197, 197]
  local S : f32[197]
  out   Y : f32[197, 197]
  M[r] max= X[r, c]
  E[r, c] = exp(X[r, c] - M[r])
  S[r] += E[r, c]
  Y[r, c] = E[r, c] / S[r]
}
"""


def softmax() -> Result:
    (kernel,) = parse_module(SOFTMAX).kernels
    return map_kernel(kernel, load_hardware("x86_avx512_zen4"), Options(prove=False))


def test_what_is_faster_alone_gives_way_to_what_goes_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = softmax()
    statements = range(1, len(found.mapped.statements))
    assert found.schedule.companions(0) == tuple(statements)
    # Five terms of each row are added for sixteen rows at once, if nobody asks what that is worth.
    monkeypatch.setattr(choose, "joining", lambda *_: iter(()))
    alone = softmax()
    assert alone.schedule.companions(0) != tuple(statements)
    assert found.estimate.cycles < alone.estimate.cycles
    (told,) = {s.why for s in found.statements if s.why.startswith("part of")}
    assert told == "part of the lowest estimate of all statements together"


def test_what_is_faster_alone_gives_way_to_shorter_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SOFTMAX.replace("197, 197", "2048, 1000").replace("197", "2048")
    machine = load_hardware("x86_amx")
    (kernel,) = parse_module(text).kernels
    found = map_kernel(kernel, machine, Options(prove=False))
    # Eight terms of each row are left over, which are added for sixteen rows at once otherwise.
    monkeypatch.setattr(choose, "shortening", lambda *_: iter(()))
    before = map_kernel(kernel, machine, Options(prove=False))
    rounds = [result.schedule.statements[0].levels[0].step for result in (found, before)]
    assert rounds[0] < 16 <= rounds[1]
    assert found.schedule.companions(0) == before.schedule.companions(0)
    assert found.estimate.cached < before.estimate.cached
    assert found.estimate.cycles <= before.estimate.cycles * 1.02
    # All of them have to be shortened, or none is.
    nothing = [()] * len(before.schedule.statements)
    assert not [*shortening(before.mapped, before.schedule, nothing)]
