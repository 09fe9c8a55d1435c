"""Short innermost loops are repeated where the toolchain asks for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.hw.accelerator import Accelerator
from isamap.run.build import build_shared
from isamap.run.callable import Compiled
from tests.emit.building import MACHINE, emitted
from tests.emit.samples import gemm, padded


def asking(unroll: int, length: int = 1) -> Accelerator:
    """Return the toy machine with a toolchain that asks, of instructions of one length."""
    assert MACHINE.toolchain is not None
    entries = tuple(replace(e, length=length, throughput=Fraction(1)) for e in MACHINE.entries)
    return replace(MACHINE, entries=entries, toolchain=replace(MACHINE.toolchain, unroll=unroll))


def apart() -> Accelerator:
    """Return the toy machine whose load names the two parts of an address."""
    written = "{r} = *(const v16u *)({m.base} + {m.offset})"
    entries = (replace(e, emit=written) if e.name == "load" else e for e in MACHINE.entries)
    return replace(MACHINE, entries=tuple(entries))


def text(unroll: int, length: int = 1) -> CSource:
    made = gemm()
    return emit_c(made.lowered, asking(unroll, length), made.kernel)


def times(source: CSource) -> set[int]:
    """Return how often loops are repeated."""
    lines = source.functions.splitlines()
    found = {n: int(line.split()[-1]) for n, line in enumerate(lines) if "#pragma GCC" in line}
    assert all(lines[n + 1].lstrip().startswith("for (") for n in found)
    return set(found.values())


@pytest.mark.parametrize(
    ("unroll", "length", "expected"),
    [
        (0, 1, set()),  # not asked for
        (1, 1, set()),  # long enough
        (4, 1, {2}),  # a body of three
        (4, 2, set()),  # of six
        (7, 1, {4}),
        (1000, 1, {8}),
    ],
)
def test_a_body_is_repeated_until_it_is_long_enough(
    unroll: int, length: int, expected: set[int]
) -> None:
    assert times(text(unroll, length)) == expected


def test_nothing_else_changes() -> None:
    source = text(1000).functions
    rest = [line for line in source.splitlines() if "#pragma GCC" not in line]
    assert rest == emitted(gemm()).functions.splitlines()


def test_loops_with_conditions_are_left() -> None:
    made = padded()
    assert not times(emit_c(made.lowered, asking(1000), made.kernel))


def test_what_is_repeated_computes_the_same() -> None:
    machine, source = asking(1000), text(1000)
    kernel = Compiled(source, build_shared(source, machine))
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (5, 7)).astype(np.float32)
    b = rng.integers(-8, 8, (7, 37)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a, b)["C"], a @ b)


def test_what_is_written_out_has_the_addresses_of_a_round_as_constants() -> None:
    made = gemm()
    source = emit_c(made.lowered, apart(), made.kernel).functions
    load = "r_b = *(const v16u *)((p_packed + n_K * i_j * 16 + i_k * 16) + {});"
    assert [source.count(load.format(16 * n)) for n in range(9)] == [2, *[1] * 7, 0]  # 2: the rest
    assert "i_k + 7 < n_K; i_k += 8" in source
    assert "#pragma" not in source


def test_what_is_written_out_computes_the_same() -> None:
    made, machine = gemm(), apart()
    source = emit_c(made.lowered, machine, made.kernel)
    kernel = Compiled(source, build_shared(source, machine))
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (5, 7)).astype(np.float32)
    b = rng.integers(-8, 8, (7, 37)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a, b)["C"], a @ b)
