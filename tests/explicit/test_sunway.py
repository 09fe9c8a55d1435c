"""A core group of 64 cores: emitted for athread, played by headers, and simulated."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isamap.diagnostics import Source
from isamap.emit.c import emit_c
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.nodes import Call, Loop, LoweredKernel, Node, Scope, Token
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.report import make_report
from isamap.pipeline.result import Report, Result
from isamap.resources import shipped
from isamap.run.build import build_program
from isamap.run.outcome import Crash
from isamap.run.program import run_program
from isamap.schedule.reader import parse_schedule
from isamap.sim.memory import LoweredFault
from isamap.sim.run import simulate
from isamap.text.load import load_module, parse_module

HEADERS = Path(str(shipped("hwdesc") / "sunway"))
TARGETS = Path(__file__).parents[1] / "targets" / "kernels.ir"
KERNELS = {k.name: k for k in load_module(TARGETS).kernels}
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

PRODUCT = """kernel gemm { in A : f64[150, 70]  in B : f64[70, 131]  out C : f64[150, 131]
  C[i, j] += A[i, k] * B[k, j] }"""
TURNED = """kernel turned { in A : f32[140, 130]  in B : f32[150, 140]  out C : f32[130, 150]
  C[i, j] += A[k, i] * B[j, k] }"""
BIAS = """kernel bias { in A : f64[130, 140]  in B : f64[140, 150]  in D : f64[150]
  local C : f64[130, 150]  out Y : f64[130, 150]
  C[i, j] += A[i, k] * B[k, j]
  Y[i, j] = max(C[i, j] + D[j], 0) }"""
DEEP = """kernel deep { in A : f32[130, 3000]  in B : f32[3000, 40]  out C : f32[130, 40]
  C[i, j] += A[i, k] * B[k, j] }"""


def kernel_of(text: str) -> Kernel:
    (kernel,) = parse_module(text).kernels
    return kernel


def calls(nodes: tuple[Node, ...]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Call):
            found.add(node.instruction)
        for part in ("body", "otherwise"):
            found |= calls(getattr(node, part, ()))
    return found


def computed(kernel: Kernel) -> Report:
    report = make_report(kernel, load_hardware("sw26010"), Options(prove=False))
    assert report.fault is None, report.fault
    assert report.execution.way == "native"
    assert report.check is not None
    assert report.check.ok, report.check
    assert report.prediction is None  # the time is that of this CPU's threads
    return report


@needs_compiler
@pytest.mark.parametrize("text", [PRODUCT, TURNED, BIAS, DEEP])
def test_cores_compute_products_in_step(text: str) -> None:
    used = calls(computed(kernel_of(text)).result.lowered.code)
    assert any(name.startswith("product_") for name in used)
    assert not any(name.startswith("c_") for name in used)


@needs_compiler
@pytest.mark.parametrize("name", KERNELS)
def test_what_every_target_computes_is_right(name: str) -> None:
    report = computed(KERNELS[name])
    product = any(one.startswith("product_") for one in calls(report.result.lowered.code))
    assert product == (name == "symbols")  # what the others compute is not worth a transfer


def test_the_group_is_simulated_too() -> None:
    kernel = kernel_of(PRODUCT)
    machine = load_hardware("sw26010")
    result = map_kernel(kernel, machine, Options(prove=False))
    arrays = random_inputs(kernel, {}, 1)
    simulated = simulate(result.lowered, machine, arrays, kernel=result.mapped)
    expected = arrays["A"].reshape(150, 70) @ arrays["B"].reshape(70, 131)
    assert np.array_equal(simulated.outputs["C"].reshape(150, 131), expected)
    # Four products of 128 x 128 x 70, whose messages and multiplications fill the time.
    assert simulated.instructions["product_f64"] == 4
    assert simulated.busy["compute"] == 4 * 9236 + 4 * 64
    # Of the transfers only the first two and the last one are waited for.
    assert simulated.cycles < simulated.busy["compute"] + 2 * 5577 + 5855 + 278
    assert simulated.peak["ldm"] <= 64 * (56 << 10)


def test_the_code_is_athread_and_all_cores_execute_it() -> None:
    kernel = kernel_of(PRODUCT)
    machine = load_hardware("sw26010")
    text = emit_c(map_kernel(kernel, machine, Options(prove=False)).lowered, machine, kernel).text
    for call in (
        "athread_spawn(",
        "athread_join(",
        "athread_get(PE_MODE",
        "REG_PUTR(",
        "REG_GETC(",
    ):
        assert call in text
    part = text[text.index("static void gemm_part(") :].partition("\n}\n")[0]
    assert "cpe_defer(&cpe_queue, cpe_product_f64, CPE_AT(" in part
    assert "if (thread == 0)" not in part
    assert "pthread" not in text.partition("*/")[2]  # after the head, which has the flags


def test_the_first_core_copies_and_the_others_wait_for_it() -> None:
    kernel = kernel_of(
        """kernel dilated { in X : f32[20, 20, 12]  in F : f32[3, 3, 12, 30]
          out Y : f32[16, 16, 30]
          Y[p, q, k] += X[p + 2*r, q + 2*s, c] * F[r, s, c, k] }"""
    )
    machine = load_hardware("sw26010")
    lowered = map_kernel(kernel, machine, Options(prove=False)).lowered
    text = emit_c(lowered, machine, bind_extents(kernel)).text
    part = text[text.index("static void dilated_part(") :].partition("\n}\n")[0]
    copied = part.index("dilated_copy")
    assert part.rindex("if (thread == 0)", 0, copied) > 0
    assert copied < part.index("isamap_meet(threads);") < part.index("cpe_get(")


@needs_compiler
def test_threads_change_nothing_and_results_that_are_staged_are_those_of_all_cores() -> None:
    # Results that are stored turned have no instruction: they are staged, and copied by one core.
    text = """kernel staged { in A : f64[130, 40]  in B : f64[40, 140]  out C : f64[140, 130]
      C[j, i] += A[i, k] * B[k, j] }"""
    kernel, machine = kernel_of(text), load_hardware("sw26010")
    written = parse_schedule(Source("x", "schedule staged { C { axes i <- i, j <- j, k <- k } }"))
    report = make_report(kernel, machine, Options(prove=False, threads=4, schedule=written))
    assert any("stage" in a.name for a in report.result.lowered.arrays)
    assert report.check is not None
    assert report.check.ok
    assert report.result.source is not None
    assert "isamap_at(" not in report.result.source.text


# --- transfers beside the computing ---------------------------------------------------------------
LOOPS = """axes i <- i, j <- j, k <- k
  loops i/128, k/128"""


def looped(buffers: str) -> Result:
    kernel = kernel_of("""kernel gemm { in A : f32[512, 384]  in B : f32[384, 128]
      out C : f32[512, 128]
      C[i, j] += A[i, k] * B[k, j] }""")
    text = f"""schedule gemm {{ C {{
      {LOOPS}
      buffers {buffers}
    }} }}"""
    schedule = parse_schedule(Source("x", text))
    return map_kernel(kernel, load_hardware("sw26010"), Options(prove=False, schedule=schedule))


def cycles(result: Result) -> Fraction:
    arrays = random_inputs(result.kernel, {}, 1)
    machine = result.accelerator
    return simulate(result.lowered, machine, arrays, kernel=result.mapped).cycles


def test_two_places_have_blocks_come_while_the_last_ones_are_multiplied() -> None:
    one, two, results = map(cycles, map(looped, ("none", "A 2, B 2", "A 2, B 2, C 2")))
    assert two < 0.7 * one
    assert results < two
    assert 12 * 9236 < results < 12 * 9236 + 4 * 64 + 3 * 2789 + 2 * 278


def without(nodes: tuple[Node, ...], channel: str) -> tuple[Node, ...]:
    """Return nodes without the tokens of a channel."""
    kept = [n for n in nodes if not (isinstance(n, Token) and n.channel == channel)]
    return tuple(
        replace(n, body=without(n.body, channel)) if isinstance(n, Loop | Scope) else n
        for n in kept
    )


def waits(nodes: tuple[Node, ...]) -> Iterator[Token]:
    for node in nodes:
        if isinstance(node, Token) and node.waits:
            yield node
        if isinstance(node, Loop | Scope):
            yield from waits(node.body)


# Whose wait is missed where transfers are late, and where they are early.  What is deferred is done
# in order, whoever waits.
MISSED = {
    "get_compute": {"late"},
    "put_compute": {"late"},
    "compute_get": {"early"},
    "compute_put": set[str](),
}


@needs_compiler
def test_without_a_wait_the_program_computes_something_else() -> None:
    result = looped("A 2, B 2, C 2")
    arrays = random_inputs(result.kernel, {}, 1)
    machine = result.accelerator
    toolchain = machine.toolchain
    assert toolchain is not None
    hasty = replace(toolchain, flags=(*toolchain.flags, "-DSUNWAY_EARLY"))
    machines = {"late": machine, "early": replace(machine, toolchain=hasty)}

    def outputs(lowered: LoweredKernel, own: Accelerator) -> np.ndarray[Any, Any]:
        source = emit_c(lowered, own, bind_extents(result.kernel))
        got = run_program(build_program(source, own), source, own, arrays, {})
        assert not isinstance(got, Crash)
        return got["C"]

    right = outputs(result.lowered, machine)
    assert np.array_equal(outputs(result.lowered, machines["early"]), right)
    every = [token.channel for token in waits(result.lowered.body)]
    assert {channel.rpartition("_")[0] for channel in every} == MISSED.keys()
    for channel in every:
        lowered = replace(result.lowered, body=without(result.lowered.body, channel))
        with pytest.raises(LoweredFault, match="as far as"):
            simulate(lowered, machine, arrays, kernel=result.mapped)
        wrong = {name for name, own in machines.items() if (outputs(lowered, own) != right).any()}
        assert wrong == MISSED[channel.rpartition("_")[0]]


def test_the_code_says_who_waits_and_fragments_take_turns() -> None:
    result = looped("A 2, B 2, C 2")
    text = emit_c(result.lowered, result.accelerator, bind_extents(result.kernel)).text
    part = text[text.index("static void gemm_part(") :].partition("\n}\n")[0]
    assert "cpe_token t_compute_get_3[2] = {0};" in part
    assert "const int r_a = 64 + 32 * (int)(r_a_turn++ % 2);" in part
    at = [
        part.index(line)
        for line in (
            "cpe_wait(&cpe_queue, CPE_get, t_compute_get_3[t_compute_get_3_count % 2]);",
            "cpe_get(",
            "t_get_compute_2 = cpe_post(&cpe_queue, CPE_get);",
            "cpe_wait(&cpe_queue, CPE_compute, t_get_compute_2);",
            "cpe_defer(&cpe_queue, cpe_product_f32, CPE_AT(r_a), CPE_AT(r_b), CPE_AT(r_acc));",
            "t_compute_get_3[t_compute_get_3_count++ % 2] = cpe_post(&cpe_queue, CPE_compute);",
            "cpe_put(",
            "cpe_idle(&cpe_queue);",
            "ldm_free(",
        )
    ]
    assert at == sorted(at)
    # Every element is stored once: cores need not meet, and go on while results are stored.
    assert "isamap_meet(" not in part


@needs_compiler
def test_what_one_statement_puts_the_next_one_gets_and_the_host_computes_between() -> None:
    # Both products are the group's; what lies between has no instruction there.
    text = """kernel chain { in A : f64[150, 70]  in B : f64[70, 131]  in D : f64[131, 20]
      local C : f64[150, 131]  local E : f64[150, 131]  out Y : f64[150, 20]
      C[i, j] += A[i, k] * B[k, j]
      E[i, j] = exp(C[i, j] * 0.001)
      Y[i, j] += E[i, k] * D[k, j] }"""
    report = computed(kernel_of(text))
    used = calls(report.result.lowered.code)
    assert "product_f64" in used
    assert any(name.startswith("c_exp") for name in used)
    assert report.result.source is not None
    part = report.result.source.text.partition("static void chain_part(")[2].partition("\n}\n")[0]
    put, host, get = part.index("cpe_put("), part.index("if (thread == 0)"), part.rindex("cpe_get(")
    idle = part.index("cpe_idle(&cpe_queue);", put)
    assert put < idle < part.index("isamap_meet(threads);", idle) < host < get


def test_what_the_host_computes_is_simulated_and_has_one_place() -> None:
    text = """kernel scalar { in X : s32[9, 7]  in A : f64[130, 20]  in B : f64[20, 140]
      out Y : s32[9, 7]  out C : f64[130, 140]
      C[i, j] += A[i, k] * B[k, j]
      Y[i, j] = X[i, j] * 3 }"""
    kernel, machine = kernel_of(text), load_hardware("sw26010")
    result = map_kernel(kernel, machine, Options(prove=False))
    assert [any(own.buffers) for own in result.schedule.statements] == [True, False]
    arrays = random_inputs(kernel, {}, 1)
    done = simulate(result.lowered, machine, arrays, kernel=result.mapped)
    assert np.array_equal(done.outputs["Y"], arrays["X"] * 3)
    # The host begins when the group is done, or the other way round.
    both = done.busy["compute"] + max(done.busy[unit] for unit in machine.host if unit in done.busy)
    assert done.cycles > both


def test_code_without_the_scratchpad_runs_on_the_management_core() -> None:
    kernel = KERNELS["dot"]
    machine = load_hardware("sw26010")
    text = emit_c(map_kernel(kernel, machine, Options(prove=False)).lowered, machine, kernel).text
    assert "athread_spawn" not in text


# --- what the headers find ------------------------------------------------------------------------
def played(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.c"
    program.write_text(f"""#include <stdio.h>
#include <athread.h>
#include <slave.h>
#include <simd.h>
static double in[64], out[64];
static void work(void *argument)
{{
    const int id = athread_get_id(-1);
    volatile int reply = 0;
    double *own = ldm_malloc(64);
    (void)argument, (void)id, (void)reply;
{body}
    ldm_free(own, 64);
}}
int main(void)
{{
    for (int n = 0; n < 64; ++n) in[n] = n + 1;
    athread_init();
    athread_spawn(work, NULL);
    athread_join();
    for (int n = 0; n < 64; ++n) printf("%g ", out[n]);
    return 0;
}}
""")
    command = ["gcc", "-O1", "-isystem", str(HEADERS), str(program), "-o", str(tmp_path / "run")]
    subprocess.run(command, check=True)
    return subprocess.run([tmp_path / "run"], capture_output=True, text=True, timeout=60)


GET = "athread_get(PE_MODE, in + id, own, 8, &reply, 0, 0, 0);"


@needs_compiler
def test_a_transfer_is_there_when_it_was_waited_for_and_not_before(tmp_path: Path) -> None:
    late = played(tmp_path, f"{GET} dma_wait(&reply, 1); out[id] = own[0];")
    assert late.stdout.split() == [str(n + 1) for n in range(64)]
    early = played(tmp_path, f"{GET} out[id] = own[0]; dma_wait(&reply, 1);")
    assert {word.lstrip("-") for word in early.stdout.split()} == {"nan"}


@needs_compiler
def test_messages_go_along_rows_and_columns(tmp_path: Path) -> None:
    text = """doublev4 v = {id, id, id, id};
    if (COL(id) == 3) REG_PUTR(v, 8); else REG_GETR(v);
    if (ROW(id) == 5) REG_PUTC(v, 8); else REG_GETC(v);
    out[id] = v[0];"""
    assert played(tmp_path, text).stdout.split() == ["43"] * 64


@needs_compiler
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("doublev4 v; REG_GETR(v); out[id] = v[0];", "every core waits"),
        ("doublev4 v = {0}; if (id == 0) REG_PUTR(v, 8);", "with messages that it has not taken"),
        (GET, "it ends while transfers are under way"),
        ("if (id) athread_syn(ARRAY_SCOPE, 0xffff);", "every core waits"),
        ("ldm_malloc(64 << 10);", "no local memory left"),
        ("athread_get(PE_MODE, in, own + 8192, 8, &reply, 0, 0, 0);", "outside of local memory"),
        ("dma_wait(&reply, 1);", "a transfer that was not begun"),
    ],
)
def test_what_would_hang_or_go_wrong_is_told(body: str, told: str, tmp_path: Path) -> None:
    result = played(tmp_path, body)
    assert result.returncode != 0
    assert told in result.stderr
