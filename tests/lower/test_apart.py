"""Constants are packed, padded and transformed once, ahead of all calls."""

from dataclasses import replace

import numpy as np
import pytest

from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.index import const, var
from isamap.ir.nodes import Kernel
from isamap.lower.apart import faults_ahead
from isamap.lower.cost import estimate, estimate_ahead
from isamap.lower.lower import lower
from isamap.lower.nodes import Copy, LoweredKernel
from isamap.lower.printer import print_lowered
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.sim.lowered import LoweredFault, run_lowered
from isamap.text.load import parse_module
from tests.emit.building import MACHINE
from tests.emit.samples import prepared

TURNED = """kernel turned(M, N = 37, K = 19) {{
  in A : f32[M, K]  {} B : f32[N, K]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[n, k]
}}"""
SCALED = """kernel scaled(N = 21, K = 33) {
  in A : u8[7, K]  const B : s8[K, N]  const Z : s32[1]  out C : s32[7, N]  local S : s32[N]
  S[n] += Z[0] * s32(B[k, n])
  C[m, n] += s32(A[m, k]) * s32(B[k, n])
  C[m, n] += S[n]
}"""


def kernel(text: str) -> Kernel:
    (found,) = parse_module(text).kernels
    return found


def mapped(text: str, hardware: str = "x86_avx512") -> Result:
    return map_kernel(kernel(text), load_hardware(hardware), Options(rewrite=()))


def copies(lowered: LoweredKernel) -> list[str | None]:
    return [node.source for node in lowered.body if isinstance(node, Copy)]


def agrees(result: Result, symbols: dict[str, int]) -> None:
    arrays = random_inputs(result.kernel, symbols, 3)
    expected = interpret(result.kernel, arrays, symbols)
    found = run_lowered(result.lowered, result.accelerator, arrays, symbols, kernel=result.kernel)
    np.testing.assert_allclose(found["C"], expected["C"], rtol=1e-5, atol=1e-5)


def with_input(found: Result) -> LoweredKernel:
    """Return what the schedule of a kernel gives if its constant is an input."""
    given = kernel(TURNED.format("in"))
    return lower(given, found.accelerator, found.schedule)


def test_a_constant_is_packed_ahead_and_an_input_in_every_call() -> None:
    ahead = mapped(TURNED.format("const"))
    assert [a.name for a in ahead.lowered.prepared] == ["B_packed"]
    assert copies(ahead.lowered) == []
    agrees(ahead, {"M": 5})
    each = with_input(ahead)
    assert (each.prepare, each.prepared) == ((), ())
    assert copies(each) == ["B"]


def test_an_estimate_is_of_a_call_alone() -> None:
    ahead = mapped(TURNED.format("const"))
    each = estimate(with_input(ahead), ahead.accelerator)
    assert ahead.estimate.parts["copies"] == 0
    both = ahead.estimate.cycles + each.parts["copies"]
    assert both <= each.cycles < 1.1 * both  # what is copied must come, too
    assert ahead.preparation is not None
    assert ahead.preparation.bytes == 4 * 48 * 19
    once = estimate_ahead(ahead.lowered, ahead.accelerator)
    assert ahead.preparation.estimate == once
    assert once.parts["copies"] == each.parts["copies"] > 0


def test_a_constant_lets_a_faster_mapping_win() -> None:
    few = TURNED.replace("turned(M, N", "turned(M = 3, N")  # rows for which no copy would pay
    const, given = mapped(few.format("const")), mapped(few.format("in"))
    assert const.estimate.cycles < 0.7 * given.estimate.cycles
    agrees(given, {})


def test_a_sum_of_constants_is_taken_ahead() -> None:
    result = mapped(SCALED)
    assert {a.name for a in result.lowered.prepared} & {"S", "S_packed"}
    assert [s.ahead for s in result.statements] == [True, False, False]
    assert "prepare {" in print_lowered(result.lowered)
    alone = replace(result.lowered, body=result.lowered.code, prepare=())
    cycles = [estimate(one, result.accelerator).cycles for one in (result.lowered, alone)]
    assert cycles[0] < cycles[1]
    agrees(result, {})


def test_without_constants_nothing_changes() -> None:
    result = mapped(SCALED.replace("const", "in"))
    assert (result.lowered.prepare, result.lowered.prepared) == ((), ())
    assert result.preparation is None
    agrees(result, {})


LONG = """kernel long(M = 8, N = {}, K = 256) {{
  in A : f32[M, K]  {} B : f32[K, N]  out C : f32[M, N]
  C[m, n] += A[m, k] * B[k, n]
}}"""


@pytest.mark.parametrize(
    ("role", "n", "packed"),
    [
        ("const", 400, True),  # a panel is a strip of each row
        ("in", 400, False),  # loads reach it where it lies, and packing takes time
        ("const", 16, False),  # the whole matrix is one panel
    ],
)
def test_a_constant_is_packed_where_that_gains_something(role: str, n: int, packed: bool) -> None:
    result = mapped(LONG.format(n, role))
    assert (result.schedule.statements[0].operands[1] == "packed") == packed


# --- what ties the two bodies together ----------------------------------------------------------
def faults(lowered: LoweredKernel) -> tuple[str, ...]:
    return faults_ahead(lowered, {entry.name: entry for entry in MACHINE.entries})


def arrays(symbols: dict[str, int]) -> dict[str, np.ndarray]:
    return random_inputs(prepared().kernel, symbols)


def test_what_is_prepared_is_found_by_the_call() -> None:
    symbols = {"M": 3, "N": 5}
    given = arrays(symbols)
    assert faults(prepared().lowered) == ()
    found = run_lowered(prepared().lowered, MACHINE, given, symbols, kernel=prepared().kernel)
    assert found["Y"].tolist() == [given["W"][::-1].tolist()] * 3
    assert found["Z"].tolist() == [given["V"].tolist()] * 3


def copy(target: str, source: str) -> Copy:
    return Copy((("j", const(1)),), target, var("j"), source, var("j"))


@pytest.mark.parametrize(
    ("ahead", "call", "told"),
    [
        ((copy("turned", "X"),), (), "X is read ahead of the call that gives it"),
        ((copy("Y", "W"),), (), "Y is written ahead of the calls"),
        ((), (copy("turned", "V"),), "turned is prepared, and changed by a call"),
        ((), (copy("Y", "row"),), "row is written ahead of the calls and not kept"),
    ],
)
def test_bodies_that_depend_on_each_other_are_faulty(
    ahead: tuple[Copy, ...], call: tuple[Copy, ...], told: str
) -> None:
    good = prepared().lowered
    wrong = replace(good, prepare=(*good.prepare, *ahead), body=(*good.body, *call))
    assert faults(wrong) == (told,)
    symbols = {"M": 3, "N": 5}
    with pytest.raises(LoweredFault, match=told):
        run_lowered(wrong, MACHINE, arrays(symbols), symbols, kernel=prepared().kernel)


def test_prepared_by_nothing_is_faulty() -> None:
    wrong = replace(prepared().lowered, prepare=())
    assert faults(wrong) == ("turned is prepared by nothing",)
