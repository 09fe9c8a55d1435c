"""States of the machine: set where they change, out of loops, and found by the simulator if not."""

from dataclasses import replace

import numpy as np
import pytest

from isamap.diagnostics import HardwareError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Literal
from isamap.lower.nodes import (
    Array,
    Call,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Setting,
    Window,
)
from isamap.lower.printer import print_lowered
from isamap.lower.states import with_states
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.sim.lowered import LoweredFault
from isamap.sim.run import simulate
from isamap.text.load import parse_module

S8, S32 = DTYPES["s8"], DTYPES["s32"]
MACHINE = load_hardware("gemmini")
ONE = replace(MACHINE, states=tuple(replace(state, count=1) for state in MACHINE.states))
TILE = Register("a", "spad", S8, (16, 16), 0)


def load(pitch: Index | int) -> Call:
    own = pitch if isinstance(pitch, Index) else const(pitch)
    symbols = (("P", own), ("cols", const(1)), ("rows", const(1)))
    return Call("mvin", (("m", Window("A", const(0))), ("r", TILE)), symbols)


def lines(*body: Node, machine: Accelerator = ONE) -> list[str]:
    """Return the nodes of a body with their states set, one a line, without calls' operands."""
    lowered = LoweredKernel("k", (), (Array("A", "in", S8, const(256)),), body)
    text = print_lowered(with_states(lowered, machine))
    found = [line.strip().partition("(")[0] for line in text.splitlines()]
    return [
        line for line in found if line.startswith(("set", "mvin", "for", "parallel", "if", "}"))
    ]


def loop(*body: Node, parallel: bool = False, counter: str = "i") -> Loop:
    return Loop(counter, const(3), body, parallel)


def test_what_stays_is_set_once() -> None:
    assert lines(load(16), load(16), load(32), load(16))[:-1] == [
        "set load_pitch = 16",
        "mvin",
        "mvin",
        "set load_pitch = 32",
        "mvin",
        "set load_pitch = 16",
        "mvin",
    ]


def test_what_does_not_change_in_a_loop_is_set_before_it() -> None:
    inner = loop(load(16), counter="j")
    assert lines(loop(inner), load(16))[:2] == ["set load_pitch = 16", "for i in 0..3 {"]
    assert lines(loop(inner), load(16)).count("set load_pitch = 16") == 1


def test_what_changes_in_a_loop_is_set_in_it() -> None:
    turns = lines(loop(load(16), load(32)))
    assert turns[:4] == ["for i in 0..3 {", "set load_pitch = 16", "mvin", "set load_pitch = 32"]
    moving = lines(loop(load(16 * var("i") + 16)))
    assert moving[:2] == ["for i in 0..3 {", "set load_pitch = 16*i + 16"]
    # What the last round has set is not known where no round may have been done.
    assert lines(loop(load(16), load(32)), load(32)).count("set load_pitch = 32") == 2


def test_a_state_of_two_values_holds_both() -> None:
    assert lines(loop(load(16), load(32)), machine=MACHINE)[:3] == [
        "set load_pitch = 16",
        "set load_pitch 1 = 32",
        "for i in 0..3 {",
    ]
    third = lines(loop(load(16), load(32), load(48)), machine=MACHINE)
    assert third[:3] == ["set load_pitch = 16", "for i in 0..3 {", "mvin"]
    assert third[3] == "set load_pitch 1 = 32"
    assert "set load_pitch 1 = 48" in third


def test_rounds_of_other_cores_set_their_own() -> None:
    found = lines(load(16), loop(load(16), parallel=True))
    assert found[2:4] == ["parallel for i in 0..3 {", "set load_pitch = 16"]


def test_branches_agree_or_it_is_set_again() -> None:
    condition = (var("n"),)
    same = lines(Guard(condition, (load(16),), (load(16),)), load(16))
    assert same.count("set load_pitch = 16") == 2
    other = lines(Guard(condition, (load(16),)), load(16))
    assert other.count("set load_pitch = 16") == 2


def test_modes_and_scales_are_states_too() -> None:
    text = """kernel both { in A : s8[17, 33]  in B : s8[33, 9]  local C : s32[17, 9]
      out Y : s8[17, 9]  out Z : s32[17, 9]
      C[i, j] += s32(A[i, k]) * s32(B[k, j])
      Y[i, j] = max(sat[s8](f32(C[i, j]) * 0.03125), 0)
      Z[i, j] = C[i, j] }"""
    (kernel,) = parse_module(text).kernels
    result = map_kernel(kernel, MACHINE, Options(prove=False))
    printed = print_lowered(result.lowered)
    assert "set store_activation = 1" in printed
    assert "set store_scale = f32(0.03125)" in printed
    assert printed.count("set transposer = 0") == 1


def test_a_product_sets_each_state_once_however_many_tiles_it_has() -> None:
    text = """kernel mm { in A : s8[64, 64]  in B : s8[64, 48]  out C : s32[64, 48]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    (kernel,) = parse_module(text).kernels
    result = map_kernel(kernel, MACHINE, Options(prove=False))
    arrays = random_inputs(kernel, {}, 1)
    done = simulate(result.lowered, MACHINE, arrays, kernel=result.mapped)
    assert done.instructions["mvin"] >= 28
    # The pitches of A and of B.
    once = dict.fromkeys(("transposer", "store_pitch", "store_activation", "store_pool"), 1)
    assert done.settings == {**once, "load_pitch": 2}


def test_what_is_not_set_or_set_for_another_one_is_a_fault() -> None:
    zero = Call(
        "set_acc", (("v", Literal("0", S32)), ("r", Register("c", "acc", S32, (16, 16), 0)))
    )
    registers = (TILE, Register("c", "acc", S32, (16, 16), 0))
    arrays = (Array("A", "in", S8, const(256)), Array("C", "out", S32, const(1)))
    out = Call(
        "mvout",
        (("r", registers[1]), ("m", Window("C", const(0)))),
        (("P", const(0)), ("cols", const(1)), ("rows", const(1))),
    )
    inputs = {"A": np.ones(256, np.int8)}
    body = (Scope(registers, (load(16), zero, out)),)
    whole = with_states(LoweredKernel("k", (), arrays, body), MACHINE)
    assert simulate(whole, MACHINE, inputs).settings["load_pitch"] == 1
    bare = LoweredKernel("k", (), arrays, body)
    with pytest.raises(LoweredFault, match="mvin: the state load_pitch has no value, not 16"):
        simulate(bare, MACHINE, inputs)
    wrong = replace(bare, body=(Setting("load_pitch", const(32)), *body))
    with pytest.raises(LoweredFault, match="mvin: the state load_pitch has 32, not 16"):
        simulate(wrong, MACHINE, inputs)


def test_setting_takes_its_units_time() -> None:
    text = """kernel mm { in A : s8[16, 16]  in B : s8[16, 16]  out C : s32[16, 16]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }"""
    (kernel,) = parse_module(text).kernels
    result = map_kernel(kernel, MACHINE, Options(prove=False))
    done = simulate(result.lowered, MACHINE, random_inputs(kernel, {}, 1), kernel=result.mapped)
    # Of the load queue: the sums are cleared, two tiles come, one pitch is set.
    assert done.busy["load"] == 16 + 2 * 16 + 1


def test_descriptions_of_states_are_checked(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = """format: 1
name: x
clock: 1 GHz
units: {load: 1, other: 1}
states:
  pitch: {units: load, throughput: 1}
storages:
  v: {kind: registers, count: 4, bits: 128}
  memory: {kind: memory}
instructions:
  - semantics: |
      instruction get(P) {
        in m : f32[2, 2] @ memory strides [P, 1]    out r : f32[2, 2] @ v
        r[i, j] = m[i, j]
      }
    throughput: 1
    latency: 1
    units: UNIT
    states: {STATE: NAME}
"""
    path = tmp_path / "x.yaml"
    for words, told in (
        (("load", "pitch", "P"), ""),
        (("load", "pitch", "7"), ""),
        (("other", "pitch", "P"), "does not occupy what setting 'pitch' does"),
        (("load", "scale", "P"), "there is no state 'scale'"),
        (("load", "pitch", "Q"), "'Q' is no extent and no immediate operand of 'get'"),
    ):
        filled = text
        for place, word in zip(("UNIT", "STATE", "NAME"), words, strict=True):
            filled = filled.replace(place, word)
        path.write_text(filled)
        if not told:
            assert load_hardware(str(path)).entries[0].states
            continue
        with pytest.raises(HardwareError, match=told):
            load_hardware(str(path))
