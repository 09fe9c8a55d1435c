"""The order in which mappings are tried is that of their whole counts, however few are counted."""

from functools import cache
from math import inf

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.nodes import Kernel
from isamap.mapping.find import enumerate_statement
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.matching import Mapping
from isamap.mapping.needles.needles import needles
from isamap.schedule.rank import Ranking, least_cycles, quick_cycles
from isamap.schedule.treatment import Treatments
from isamap.text.load import parse_module

KERNELS = {
    "convolution": """
        in X : f32[12, 13, 6] pad 0
        const W : f32[3, 3, 6, 9]
        out Y : f32[12, 13, 9]
        Y[h, w, k] += X[h + r - 1, w + s - 1, c] * W[r, s, c, k]""",
    "combination": """
        in X : f32[5, 27, 8]
        out Y : f32[5, 13, 8]
        Y[a, t, c] = X[a, 2*t, c] * 4.0 + X[a, 2*t + 2, c] - X[a, 2*t + 1, c] * 5.0""",
    "product of bytes": """
        in A : u8[20, 33]
        in B : s8[33, 24]
        out C : s32[20, 24]
        C[i, j] += s32(A[i, k]) * s32(B[k, j])""",
}
MACHINES = ("x86_avx2", "x86_avx512", "gemm16")


@cache
def _machine(name: str) -> Accelerator:
    return load_hardware(name)


def _mappings(text: str, machine: Accelerator) -> tuple[Kernel, tuple[Mapping, ...]]:
    (kernel,) = parse_module(f"kernel k {{{text}\n}}").kernels
    return kernel, enumerate_statement(kernel, 0, needles(machine)).mappings


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", KERNELS)
def test_mappings_come_in_the_order_of_their_counts(name: str, machine: str) -> None:
    hardware = _machine(machine)
    kernel, mappings = _mappings(KERNELS[name], hardware)
    buffers = {b.name: b for b in kernel.buffers}
    producers = Producers(hardware)
    whole = []
    for number, mapping in enumerate(mappings):
        treatments = Treatments(mapping, Producers(hardware), buffers, kernel.permissions)
        counts = list(quick_cycles(mapping, treatments))
        assert counts == sorted(counts)
        whole.append((counts[-1], number))
    ranking = Ranking(mappings, producers, buffers, kernel.permissions)
    found = [(ranked.cycles, mappings.index(ranked.mapping)) for ranked in ranking]
    assert found == sorted(whole)
    possible = [cycles for cycles, _ in found if cycles < inf]
    assert possible
    for limit in (0.0, possible[0], possible[0] * 1.01, possible[-1]):
        fresh = Ranking(mappings, producers, buffers, kernel.permissions)
        first = fresh.at(0, limit)
        assert (first is not None) == (possible[0] < limit)
        # Having been asked with a limit changes nothing.
        assert [ranked.cycles for ranked in fresh] == [cycles for cycles, _ in found]


def test_a_count_is_that_of_the_cheapest_treatment() -> None:
    # Lanes go along j, of which each element of B has a row of its own: copied once, it is read as
    # often as there are rows of A.
    hardware = _machine("x86_avx2")
    kernel, mappings = _mappings(
        """
        in A : f32[512, 64]
        in B : f32[512, 64]
        out C : f32[512, 512]
        C[i, j] += A[i, k] * B[j, k]""",
        hardware,
    )
    buffers = {b.name: b for b in kernel.buffers}
    (along,) = (
        m
        for m in mappings
        if {v for v, n in m.tile.items() if n > 1} == {"j"}
        and m.matching.needle.name == "vfmadd_f32"
    )
    treatments = Treatments(along, Producers(hardware), buffers, kernel.permissions)
    gathered, packed = (treatments.cost("b", kind) for kind in ("direct", "packed"))
    assert gathered is not None
    assert packed is not None
    calls = 512 * 64 * 64
    *_, count = quick_cycles(along, treatments)
    assert count < least_cycles(along) + calls * 0.1 * gathered


@pytest.mark.parametrize("value", ["B[k]", "X[y, x, k]"])
def test_results_that_no_instruction_writes_where_they_belong_are_counted(value: str) -> None:
    """Stores along k leave half of the last lanes idle, others are copied out of a stage."""
    hardware = _machine("x86_avx512")
    kernel, mappings = _mappings(
        f"in B : f32[17]  in X : f32[14, 14, 17]  out Y : f32[14, 14, 17]  Y[y, x, k] = {value}",
        hardware,
    )
    buffers = {b.name: b for b in kernel.buffers}
    ranking = Ranking(mappings, Producers(hardware), buffers, kernel.permissions)
    first, second = (
        next(r for r in ranking if (r.mapping.tile.get("k", 1) == 16) == along)
        for along in (True, False)
    )
    assert first.mapping.matching.needle.name == "vstore_f32"
    assert first.mapping.tile["k"] == 16
    assert first.cycles < second.cycles


def test_loads_count_as_often_as_a_block_needs_them() -> None:
    """Each element of a matrix serves one call of a product with a vector, and many of one with
    another matrix: there the calls hide the loads."""
    hardware = _machine("x86_avx512_zen4")
    shares = []
    for columns in ("1", "160"):
        text = f"""
            in A : f32[64, 64]
            in B : f32[64, {columns}]
            out C : f32[64, {columns}]
            C[j, i] += A[k, j] * B[k, i]"""
        kernel, mappings = _mappings(text, hardware)
        buffers = {b.name: b for b in kernel.buffers}
        lanes = next(
            m
            for m in mappings
            if m.matching.needle.name == "vfmadd_f32"
            and {v: n for v, n in m.tile.items() if n > 1} == {"j": 16}
        )
        treatments = Treatments(lanes, Producers(hardware), buffers, kernel.permissions)
        shares.append([*quick_cycles(lanes, treatments)][-2] / least_cycles(lanes))
    assert shares[1] < 1.1 < 1.2 < shares[0]


def test_what_windows_have_in_common_counts_once() -> None:
    """Outputs side by side share all but one of the elements that three taps read."""
    hardware = _machine("x86_avx512_zen4")
    counts = []
    for step in ("x + r", "3*x + r"):
        text = f"""
            in X : f32[400, 32]
            const F : f32[3, 32]
            out Y : f32[100, 32]
            Y[x, k] += X[{step}, k] * F[r, k]"""
        kernel, mappings = _mappings(text, hardware)
        buffers = {b.name: b for b in kernel.buffers}
        lanes = next(
            m
            for m in mappings
            if m.matching.needle.name == "vfmadd_f32"
            and {v: n for v, n in m.tile.items() if n > 1} == {"k": 16}
        )
        treatments = Treatments(lanes, Producers(hardware), buffers, kernel.permissions)
        counts.append([*quick_cycles(lanes, treatments)][-2] - least_cycles(lanes))
    assert 0 < counts[0] < counts[1] / 3
