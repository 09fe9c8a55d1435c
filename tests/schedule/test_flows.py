"""Operands that no second cache holds: what they make of blocks, and what is asked for ahead."""

from fractions import Fraction
from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator, Storage
from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.schedule.flows import LOADED, SHARING, Flow, driven_out
from isamap.schedule.schedule import Early
from isamap.schedule.shape import read_shape
from isamap.schedule.space import space
from isamap.schedule.treatment import Treatments, inputs
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

HW = "x86_avx512"


def product(m: int, n: int, k: int) -> Kernel:
    """C[m, n] += A[m, k] B[n, k], B constant."""
    text = f"""kernel product(M = {m}, N = {n}, K = {k}) {{
      in A : f32[M, K]  const B : f32[N, K]  out C : f32[M, N]
      C[m, n] += A[m, k] * B[n, k]
    }}"""
    return parse_module(text, "t.ir").kernels[0]


def mapped(m: int, n: int, k: int) -> Result:
    return map_kernel(product(m, n, k), load_hardware(HW), Options(rewrite=()))


def with_caches(folder: Path, *caches: str) -> Accelerator:
    text = f"format: 1\nname: other\nextends: {HW}\nstorages:\n"
    text += "".join(f"  {cache}\n" for cache in caches)
    (folder / "other.yaml").write_text(text, encoding="utf-8")
    return load_hardware(str(folder / "other.yaml"), trust=True)


def steps(result: Result) -> dict[str, int]:
    return {level.variable: level.step for level in result.schedule.statements[0].levels}


def test_what_comes_slowly_is_passed_once(tmp_path: Path) -> None:
    # Rows of 4000 bytes: those of 4096 would push each other out of the first cache.
    slow = "l3: {kind: cache, size: 32 MiB, read: 6 B/cycle, latency: 50}"
    options, kernel = Options(rewrite=()), product(16, 1024, 1000)
    once = steps(map_kernel(kernel, with_caches(tmp_path, slow), options))
    assert "m" not in once, "a block has all rows"
    # Where it comes as fast as it is used, a block is chosen that needs fewer loads.
    assert steps(map_kernel(kernel, load_hardware(HW), options))["m"] < 16


def test_weights_from_beyond_the_second_cache_are_asked_for() -> None:
    rows = 8
    result = mapped(rows, 1024, 1024)
    (own,) = result.schedule.statements
    (early,) = (early for early in own.early if not early.shared)
    assert (early.access, early.variable) == (1, "k")
    # Ahead by the latency of the third cache, in which 4 MiB are, under load.
    machine = load_hardware(HW)
    calls = rows * (steps(result)["n"] // 16)
    cycles = calls * float(machine.entry("vfmadd_f32").throughput)
    latency = float(machine.storage("l3").latency) * LOADED
    assert early.count * cycles >= latency > early.count // 2 * cycles


def test_passes_over_a_panel_share_in_asking_for_the_next() -> None:
    (own,) = mapped(64, 1024, 1000).schedule.statements
    block = next(level.step for level in own.levels if level.variable == "m")
    assert 1 < -(-64 // block) <= SHARING
    assert Early(1, 1, "n", shared=True) in own.early
    # One pass has nobody to share with, and hundreds find that hardware does it.
    for rows in (8, 4096):
        (other,) = mapped(rows, 1024, 1000).schedule.statements
        assert not any(early.shared for early in other.early)


def test_this_panel_and_the_next_one_stay_in_the_second_cache() -> None:
    result = mapped(64, 2048, 8192)
    (own,) = result.schedule.statements
    cut, panel = own.levels[0], own.levels[1]
    assert (cut.variable, panel.variable) == ("k", "n")
    held = 4 * cut.step * (2 * panel.step + 64)
    assert held <= (load_hardware(HW).second_cache or 0)


def test_what_a_cache_holds_is_not_asked_for() -> None:
    (own,) = mapped(16, 128, 256).schedule.statements
    assert own.early == ()


def test_what_many_passes_find_near_is_not_asked_for() -> None:
    (own,) = mapped(1024, 1024, 1024).schedule.statements
    assert own.early == ()


def test_a_pass_waits_for_what_comes_and_the_next_ones_do_not() -> None:
    mapping = mapped(16, 1024, 1024).schedule.statements[0].mapping
    shape = read_shape(mapping)
    source = Storage("far", "cache", read=Fraction(8), latency=Fraction(50))
    flow = Flow(1, "b", frozenset("nk"), bytes=64, source=source, reuse=("m",))
    # A fragment comes in 8 cycles and is used by as many calls as a block has rows.
    whole = {"m": 16, "n": 1, "k": 1}
    assert flow.passes(shape, whole) == 1
    assert flow.paced(0.5, shape, whole, 1) == 0.5
    assert flow.paced(0.25, shape, whole, 1) == 0.5
    half = {"m": 8, "n": 1, "k": 1}
    assert flow.passes(shape, half) == 2
    # 8 calls in 8 cycles, then 8 at their own pace.
    assert flow.paced(0.5, shape, half, 1) == (8 + 8 * 0.5) / 16


@pytest.mark.parametrize(("m", "packed"), [(8, False), (4096, True)])
def test_what_many_blocks_weave_is_woven_once(m: int, packed: bool) -> None:
    # Four rows of B are four bytes of each lane.
    text = f"""kernel bytes(M = {m}, N = 48, K = 512) {{
      in A : u8[M, K]  in B : s8[K, N]  out C : s32[M, N]
      C[m, n] += s32(A[m, k]) * s32(B[k, n])
    }}"""
    kernel = parse_module(text, "t.ir").kernels[0]
    (own,) = map_kernel(kernel, load_hardware(HW), Options(rewrite=())).schedule.statements
    assert own.mapping.matching.needle.name == "vpdpbusd"
    assert own.operands == ("direct", "packed" if packed else "direct")


def test_a_row_that_streams_drive_out_comes_again() -> None:
    text = """kernel chain(R = 4096, C = {columns}) {{
      in X : f32[R, C]  in F : f32[C]  out Y : f32[R, C]
      Y[r, c] = X[r, c] * F[c]
    }}"""
    machine = load_hardware(HW)
    for columns, again in ((1000, ()), (5000, ("F",)), (500_000, ())):
        kernel = parse_module(text.format(columns=columns), "t.ir").kernels[0]
        result = map_kernel(kernel, machine, Options(rewrite=()))
        (own,) = result.schedule.statements
        buffers = {buffer.name: buffer for buffer in bind_extents(kernel).buffers}
        treatments = Treatments(own.mapping, Producers(machine), buffers, kernel.permissions)
        shape = read_shape(own.mapping)
        names = [access.buffer for _, access in inputs(own.mapping)]
        found = driven_out(shape, own.operands, machine, treatments)
        assert tuple(names[flow.access] for flow in found) == again


def test_a_search_takes_it_or_leaves_it() -> None:
    result = mapped(16, 1024, 1024)
    (own,) = result.schedule.statements
    around = space(
        result.accelerator, bind_extents(result.kernel), ((own,),), Producers(result.accelerator)
    )
    (prefetch,) = [c for c in around.choices if c.name.endswith("prefetch")]
    found = {
        option: around.build({**around.first, prefetch.name: n}).statements[0].early
        for n, option in enumerate(prefetch.options)
    }
    assert found["rule"] == own.early
    assert found["none"] == ()
    assert Early(1, 16, "k") in found["inputs 16"]


def test_the_result_is_right_and_proved(tmp_path: Path) -> None:
    machine = with_caches(tmp_path, "l2: {kind: cache, size: 49 KiB, read: 8 B/cycle}")
    result = map_kernel(product(11, 83, 130), machine, Options(rewrite=()))
    assert result.schedule.statements[0].early
    arrays = random_inputs(result.kernel, {}, seed=1)
    expected = {"C": interpret(result.kernel, arrays)["C"]}
    found = run_lowered(result.lowered, machine, arrays, kernel=result.kernel)
    assert compare(result.kernel, arrays, expected, {"C": found["C"]}, {}).ok
    assert prove_result(result).verdict != "refuted"
