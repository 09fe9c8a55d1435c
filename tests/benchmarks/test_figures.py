"""Times of instructions beside what a description says of them."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import isamap
from isamap.hw.native import elsewhere

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
script: Any = import_module("figures")
NATIVE = isamap.load_hardware("native")


def test_what_is_told_is_the_busiest_unit_or_the_issue() -> None:
    machine = isamap.load_hardware("x86_avx512_zen4")
    entries = {entry.name: entry for entry in machine.entries}
    assert script.told([entries["vfmadd_f32"]], machine) == 1.0
    assert script.told([entries["vfmadd_f32"], entries["vdpbf16ps"]], machine) == 2.0
    assert script.told([entries["vfmadd_f32"], entries["vload_f32"]], machine) == 1.0
    assert script.told([entries["vu8_of_s8"]] * 12, machine) >= 2.0


@pytest.mark.skipif(bool(elsewhere(NATIVE)), reason="native code runs elsewhere")
@pytest.mark.parametrize(
    ("role", "kind"), [("in", "memory"), ("out", "memory"), ("inout", "registers")]
)
def test_loads_stores_and_sums_take_time(role: str, kind: str) -> None:
    found = [
        entry
        for entry in NATIVE.entries
        for operand in entry.instruction.places
        if operand.role == role
        and NATIVE.storage(entry.storage(operand.name)).kind == kind
        and script.uses_vectors(entry, NATIVE)
    ]
    if not found:
        pytest.skip(f"{NATIVE.name} has no vectors")
    # Some take what is no register of a compiler, as tiles of matrices do.
    timed = (script.measured([entry], NATIVE) for entry in found)
    assert (
        next(cycles for cycles in timed if cycles is not None) > 0.05
    )  # no CPU starts twenty a cycle: the compiler has not left it out
