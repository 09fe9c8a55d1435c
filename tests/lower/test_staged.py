"""Staged results of machines whose units are queues: copied together, and not too late."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, var
from isamap.lower.nodes import (
    Array,
    Call,
    Copy,
    Guard,
    Loop,
    LoweredKernel,
    Node,
    Register,
    Scope,
    Window,
)
from isamap.lower.printer import print_lowered
from isamap.lower.staged import ROOM, copy_together
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.text.load import load_module

S8, S32 = DTYPES["s8"], DTYPES["s32"]
MACHINE = load_hardware("vta")
ACC = Register("c", "acc", S32, (16,))
SUMS = Path(__file__).parents[1] / "explicit" / "bytes.ir"


def store(array: str = "S") -> Call:
    return Call("store", (("r", ACC), ("m", Window(array, const(0)))))


def copied(offset: Index | int = 0, source: str = "S", target: str = "Y") -> Copy:
    at = offset if isinstance(offset, Index) else const(offset)
    return Copy((("n", const(16)),), target, at + var("n"), source, var("n"))


def together(*body: Node, machine: str = "vta") -> list[str]:
    """Return the lines of a lowered kernel with a stage S, after the pass; registers are left out.

    The first line is the stage's.
    """
    arrays = (
        Array("Y", "out", S8, const(1 << 20)),
        Array("S", "local", S8, const(16), private=True),
    )
    lowered = LoweredKernel("k", (), arrays, (Scope((ACC,), body),))
    lines = print_lowered(copy_together(lowered, load_hardware(machine))).splitlines()
    (stage,) = (line.strip() for line in lines if "local S" in line)
    kinds = ("store(", "copy Y", "for ")
    return [stage, *(own for line in lines if (own := line.strip()).startswith(kinds))]


def test_each_result_has_a_place_and_copies_come_last() -> None:
    assert together(store(), copied(0), store(), copied(16)) == [
        "private local S : s8[32]",
        "store(r = c, m = S[0])",
        "store(r = c, m = S[16])",
        "copy Y[n] = S[n] for n in 0..16",
        "copy Y[n + 16] = S[n + 16] for n in 0..16",
    ]


def test_copies_leave_a_loop() -> None:
    loop = Loop("i", const(4), (store(), copied(var("i") * 16)))
    assert together(loop, store(), copied(64)) == [
        "private local S : s8[80]",
        "for i in 0..4 {",
        "store(r = c, m = S[16*i])",
        "store(r = c, m = S[64])",
        "for i_copied in 0..4 {",
        "copy Y[16*i_copied + n] = S[16*i_copied + n] for n in 0..16",
        "copy Y[n + 64] = S[n + 64] for n in 0..16",
    ]


@pytest.mark.parametrize(
    ("count", "parallel"), [(const(ROOM // 16 + 1), False), (var("N"), False), (const(4), True)]
)
def test_copies_stay_in_a_loop_that_is_long_or_shared(count: Index, parallel: bool) -> None:
    loop = Loop("i", count, (store(), copied(var("i") * 16)), parallel)
    stage, *_, last = together(loop)
    assert stage == "private local S : s8[16]"
    assert last == "copy Y[16*i + n] = S[n] for n in 0..16"


def test_places_of_what_is_copied_inside_a_loop_or_a_branch_are_used_again() -> None:
    pair = (store(), copied(0), store(), copied(16))
    guards = [Guard((var("N") - n,), pair) for n in range(5)]
    assert together(*guards)[0] == "private local S : s8[32]"


def test_what_is_read_is_copied_before() -> None:
    reading = replace(copied(32, "Y", "Y"), counters=(("n", const(16)),))
    lines = together(store(), copied(0), reading, store(), copied(16))
    assert lines[1:] == [
        "store(r = c, m = S[0])",
        "copy Y[n] = S[n] for n in 0..16",
        "copy Y[n + 32] = Y[n] for n in 0..16",
        "store(r = c, m = S[16])",
        "copy Y[n + 16] = S[n + 16] for n in 0..16",
    ]


def test_what_a_loop_reads_again_is_copied_inside() -> None:
    loop = Loop("i", const(4), (copied(32, "Y", "Y"), store(), copied(var("i") * 16)))
    stage, *_, last = together(loop)
    assert stage == "private local S : s8[16]"
    assert last == "copy Y[16*i + n] = S[n] for n in 0..16"


@pytest.mark.parametrize(
    "body",
    [
        (store(), Loop("i", const(2), (copied(var("i") * 16),))),  # copied twice
        (copied(0), store()),  # before it is written
        (store(), copied(0), copied(16)),
        (store(), copied(0), copied(0, "Y", "S")),  # and written by a copy
    ],
)
def test_an_array_that_is_used_otherwise_is_left_alone(body: tuple[Node, ...]) -> None:
    assert together(*body)[0] == "private local S : s8[16]"


def test_where_nothing_is_a_queue_nothing_changes() -> None:
    scope = Scope((ACC,), (store(), copied(0), store(), copied(16)))
    arrays = (Array("S", "local", S8, const(16), private=True),)
    lowered = LoweredKernel("k", (), arrays, (scope,))
    assert copy_together(lowered, replace(MACHINE, queues=None)) is lowered


@pytest.mark.parametrize(("name", "least", "most"), [("bias", 700, 1000), ("clamped", 300, 500)])
def test_results_do_not_wait_for_each_other_s_copies(name: str, least: int, most: int) -> None:
    (kernel,) = (k for k in load_module(SUMS).kernels if k.name == name)
    report = make_report(kernel, MACHINE, Options())
    assert report.fault is None
    assert report.check is not None
    assert report.check.ok
    assert report.execution.cycles is not None
    assert least < report.execution.cycles < most  # 3247 and 3108 if they do
