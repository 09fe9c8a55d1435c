"""Statements that wait for caches with the rules' loops: the model's are estimated as well."""

from functools import cache
from pathlib import Path

import pytest

from isamap.interp.compare import compare
from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.cost import estimate
from isamap.lower.lower import lower
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.prove import prove_result
from isamap.pipeline.result import Result
from isamap.pipeline.source import load_hardware
from isamap.schedule.first import first_schedule
from isamap.schedule.schedule import Schedule
from isamap.schedule.space import space
from isamap.sim.lowered import run_lowered
from isamap.text.load import parse_module

HW = "x86_amx"


def product(m: int, n: int, k: int) -> Kernel:
    """C[m, n] += A[m, k] B[k, n] in bf16."""
    text = f"""kernel product(M = {m}, N = {n}, K = {k}) {{
      in A : bf16[M, K]  const B : bf16[K, N]  out C : f32[M, N]
      C[m, n] += f32(A[m, k]) * f32(B[k, n])
    }}"""
    return parse_module(text, "t.ir").kernels[0]


@cache
def mapped(m: int, n: int, k: int, threads: int = 1) -> Result:
    options = Options(rewrite=(), threads=threads)
    return map_kernel(product(m, n, k), load_hardware(HW), options)


def by_rules(result: Result, kernel: Kernel) -> Schedule:
    """The schedule that the rules make of the mapping that was chosen."""
    hardware = load_hardware(HW)
    (own,) = result.schedule.statements
    return Schedule((first_schedule(own.mapping, hardware, Producers(hardware), kernel),))


def test_what_waits_for_a_cache_gets_loops_of_the_model() -> None:
    result, kernel = mapped(2048, 4096, 1024), bind_extents(product(2048, 4096, 1024))
    hardware = load_hardware(HW)
    ruled = by_rules(result, kernel)
    least = estimate(lower(kernel, hardware, ruled, Producers(hardware)), hardware)
    assert least.least < least.cycles
    # Panels that the second cache holds come from beyond it more seldom.
    waits = [e.parts["l3"] for e in (result.estimate, least)]
    assert waits[0] < 0.6 * waits[1]
    # What is left is the second cache itself, of which each block takes both operands, and what it
    # waits for while the first pass over a panel brings that from beyond.
    assert result.estimate.cycles < 1.2 * result.estimate.parts["l2"]
    assert result.estimate.cycles < least.cycles
    (own,) = result.schedule.statements
    names = [level.variable for level in own.levels]
    assert names.count("m") + names.count("n") > 2, "a panel for the second cache"
    assert names[-1] == "k", "results are complete when they leave the registers"
    assert names[-2] == "n", "blocks follow each other along the rows of the result"


def test_what_computes_all_the_time_keeps_the_loops_of_the_rules() -> None:
    result = mapped(64, 64, 64)
    assert result.schedule == by_rules(result, bind_extents(product(64, 64, 64)))


def test_rows_of_a_fragment_that_push_each_other_out_are_packed() -> None:
    packed = mapped(1024, 1024, 1024).schedule.statements[0].operands
    assert packed == ("packed", "packed")
    # Rows of 2000 bytes fall into all sets.
    assert mapped(1024, 1024, 1000).schedule.statements[0].operands[0] == "direct"


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_point_of_a_search_is_the_first_schedule(threads: int) -> None:
    result = mapped(1024, 1024, 1000, threads)
    hardware = load_hardware(HW)
    (own,) = result.schedule.statements
    kernel = bind_extents(product(1024, 1024, 1000))
    found = space(hardware, kernel, ((own,),), Producers(hardware), threads, result.schedule)
    assert found.build(found.first) == result.schedule
    blocks = next(choice for choice in found.choices if choice.name == "0.block")
    assert len(blocks.options) > 1
    other = found.build(found.first | {"0.block": 1})
    assert other != result.schedule


def test_loops_of_the_model_compute_the_product_and_are_proved(tmp_path: Path) -> None:
    # Caches so small and slow that a product of this size needs panels.
    lines = ["format: 1", "name: other", f"extends: {HW}", "storages:"]
    for name, size, rate in (("l1", 4, 64), ("l2", 128, 40), ("l3", 1024, 2)):
        lines += [f"  {name}: {{kind: cache, size: {size} KiB, read: {rate} B/cycle}}"]
    (tmp_path / "other.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    machine = load_hardware(str(tmp_path / "other.yaml"), trust=True)
    kernel = product(400, 400, 130)
    result = map_kernel(kernel, machine, Options(rewrite=()))
    (own,) = result.schedule.statements
    names = [level.variable for level in own.levels]
    assert len(names) > len(set(names)), "a variable has two loops"
    arrays = random_inputs(result.kernel, {}, seed=1)
    expected = {"C": interpret(result.kernel, arrays)["C"]}
    found = run_lowered(result.lowered, machine, arrays, kernel=result.kernel)
    assert compare(result.kernel, arrays, expected, {"C": found["C"]}, {}).ok
    assert prove_result(result).verdict != "refuted"
