"""Several places in a scratchpad: transfers go on beside the computing, results stay the same."""

from fractions import Fraction
from pathlib import Path

import pytest

from isamap.diagnostics import Source
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.lower.printer import print_lowered
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.schedule.reader import parse_schedule
from isamap.sim.run import SimResult, simulate
from isamap.text.load import parse_module


def product(m: int, n: int, k: int) -> Kernel:
    text = f"""kernel mm {{ in A : s8[{m}, {k}]  in B : s8[{k}, {n}]  out C : s32[{m}, {n}]
      C[i, j] += s32(A[i, k]) * s32(B[k, j]) }}"""
    (kernel,) = parse_module(text).kernels
    return kernel


def mapped(kernel: Kernel, loops: str, buffers: str = "") -> Result:
    said = f"buffers {buffers}" if buffers else ""
    text = f"""schedule mm {{
      C {{
        axes i <- i, j <- j, k <- k
        loops {loops}
        {said}
      }}
    }}"""
    schedule = parse_schedule(Source("x.schedule", text))
    return map_kernel(kernel, load_hardware("gemmini"), Options(schedule=schedule))


def simulated(result: Result) -> SimResult:
    arrays = random_inputs(result.kernel, {}, 1)
    return simulate(result.lowered, result.accelerator, arrays, kernel=result.mapped)


def cycles(buffers: str) -> Fraction:
    return simulated(mapped(product(16, 16, 320), "k/16", buffers)).cycles


def test_each_further_place_takes_less_time_until_the_sums_are_what_is_waited_for() -> None:
    one, two, three, eight = (cycles(text) for text in ("none", "A 2, B 2", "A 3, B 3", "A 8, B 8"))
    assert two < 0.6 * one
    assert three < two
    chain = 20 * 48  # each sum waits for the one before it
    assert chain < eight < chain + 116 + 16 + 164 + 48


def test_the_first_schedule_gives_two_places_to_what_a_loop_brings() -> None:
    (own,) = mapped(product(64, 64, 64), "i/32, j/32, k/16").schedule.statements
    assert own.buffers == (2, 2, 2)


def test_results_have_one_place_where_two_have_no_room() -> None:
    # 64 KiB of sums are all that the machine holds.
    result = mapped(product(256, 256, 32), "i/128, j/128, k/16")
    assert result.schedule.statements[0].buffers == (2, 2, 1)


def test_places_are_printed_and_what_is_computed_is_the_same() -> None:
    result = mapped(product(33, 35, 70), "i/32, j/32, k/32", "A 3, C 2")
    text = print_lowered(result.lowered)
    assert "a = 0 in 3 places" in text
    assert "acc = 0 in 2 places" in text
    kernel = product(33, 35, 70)
    report = make_report(
        kernel,
        load_hardware("gemmini"),
        Options(schedule=parse_schedule(Source("x.schedule", "schedule mm { C { buffers A 3 } }"))),
    )
    assert report.check is not None
    assert report.check.ok


@pytest.mark.parametrize("machine", ["gemmini", "vta"])
def test_a_search_goes_through_places(machine: str) -> None:
    kernel = product(40, 40, 40)
    if machine == "vta":
        text = """kernel mm { in A : s8[20, 40]  in B : s8[40, 20]  local C : s32[20, 20]
          out Y : s8[20, 20]
          C[i, j] += s32(A[i, k]) * s32(B[k, j])
          Y[i, j] = s8(C[i, j]) }"""
        (kernel,) = parse_module(text).kernels
    from isamap_search.budget import Budget

    report = make_report(kernel, load_hardware(machine), Options(tune=Budget(trials=6)))
    assert report.check is not None
    assert report.check.ok


OUTER = load_hardware(str(Path(__file__).parent / "outer16.yaml"))
REGISTERS = {
    "product": "in A : f32[37, 29]  in B : f32[29, 43]  out Y : f32[37, 43]\n"
    "Y[i, j] += A[i, k] * B[k, j]",
    "vector": "in A : f32[53, 71]  in B : f32[71]  out Y : f32[53]\nY[i] += A[i, k] * B[k]",
    "window": "in A : f32[19, 23, 12]  in B : f32[3, 3, 12, 20]  out Y : f32[9, 11, 20]\n"
    "Y[h, w, k] += A[2*h + r, 2*w + s, c] * B[r, s, c, k]",
}


@pytest.mark.parametrize("name", REGISTERS)
def test_registers_are_one_place_each_and_the_estimate_knows(name: str) -> None:
    (kernel,) = parse_module(f"kernel k {{ {REGISTERS[name]} }}").kernels
    result = map_kernel(kernel, OUTER)
    assert all(own.buffers == () for own in result.schedule.statements)
    assert 0.8 < result.estimate.cycles / float(simulated(result).cycles) < 1.25


def test_a_schedule_of_a_machine_without_scratchpads_is_read_back() -> None:
    (kernel,) = parse_module(f"kernel k {{ {REGISTERS['product']} }}").kernels
    result = map_kernel(kernel, OUTER)
    text = schedule_text(result)
    again = map_kernel(kernel, OUTER, Options(schedule=parse_schedule(Source("x.schedule", text))))
    assert again.lowered == result.lowered
