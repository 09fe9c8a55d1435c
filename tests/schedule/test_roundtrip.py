"""A schedule that is printed and read again is the same schedule, and lowers to the same code."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from isamap.diagnostics import ScheduleError, Source
from isamap.hw.load import load_hardware
from isamap.ir.statements import bind_extents
from isamap.lower.capacity import excess
from isamap.lower.lower import lower
from isamap.lower.ordered import as_ordered
from isamap.mapping.fragments.produce import Producers
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options, silent
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.source import load_kernel
from isamap.pipeline.written import Writer
from isamap.schedule.early import EARLY, early_of
from isamap.schedule.reader import parse_schedule
from isamap.schedule.schedule import Level, Schedule, StatementSchedule
from isamap.schedule.space import Space, space
from isamap.schedule.written import WrittenSchedule
from tests.profiles import examples

ROOT = Path(__file__).parents[2]
CASES = {
    "examples/matmul.ir": ("x86_avx512", "x86_avx2", "portable_c"),
    "examples/operators/residual_relu.ir": ("x86_avx512",),
    "examples/operators/softmax.ir": ("x86_avx512", "portable_c"),
    "examples/operators/u8s8_gemm.ir": ("x86_avx512",),
    "examples/operators/symbolic_gemm.ir": ("x86_avx512",),
    "examples/operators/bf16_gemm.ir": ("x86_avx512",),
    "tests/cli/golden/chain.ir": ("gemm16",),
    "tests/schedule/blocks.ir": ("gemmini", "gemm16"),
}
PAIRS = [(path, machine) for path, machines in CASES.items() for machine in machines]


@dataclass(frozen=True)
class Case:
    result: Result
    space: Space
    writer: Writer


@cache
def case(path: str, machine: str) -> Case:
    hardware = load_hardware(machine)
    result = map_kernel(load_kernel(ROOT / path), hardware, Options(threads=2))
    mapped = result.mapped
    enumerations = tuple(statement.enumeration for statement in result.statements)
    writer = Writer(mapped, hardware, enumerations, 2, result.symbols)
    starts = tuple((own,) for own in result.schedule.statements)
    producers = Producers(hardware)
    around = space(hardware, bind_extents(mapped), starts, producers, 2, result.schedule)
    return Case(result, around, writer)


def read(text: str) -> WrittenSchedule:
    return parse_schedule(Source("x.schedule", text))


def said(schedule: Schedule) -> tuple[object, ...]:
    """Return a schedule without what statements in registers would do on their own."""
    return tuple(own if own.within is None else own.within for own in schedule.statements)


@pytest.mark.parametrize(("path", "machine"), PAIRS)
def test_first_schedule_is_read_as_it_was(path: str, machine: str) -> None:
    result = case(path, machine).result
    text = schedule_text(result)
    again = map_kernel(result.kernel, result.accelerator, Options(schedule=read(text)))
    assert said(again.schedule) == said(result.schedule)
    assert again.mapped == result.mapped
    assert again.lowered == result.lowered
    assert again.source == result.source
    assert schedule_text(again) == text


@examples(0.1)
@given(st.sampled_from(PAIRS), st.data())
def test_every_schedule_of_a_space_is_read_as_it_was(
    pair: tuple[str, str], data: st.DataObject
) -> None:
    own = case(*pair)
    choices = own.space.choices
    point = {c.name: data.draw(st.integers(0, len(c.options) - 1), c.name) for c in choices}
    order = st.sampled_from([None, False, True])
    try:
        schedule = own.space.build(point)
        schedule = replace(schedule, abreast=data.draw(order), once=data.draw(order))
        lowered = lower(own.result.mapped, own.result.accelerator, schedule)
    except ScheduleError:
        reject()
    if excess(lowered, own.result.accelerator) is not None:
        reject()
    done = as_ordered(schedule, lowered)
    text = schedule_text(replace(own.result, schedule=done))
    choice, _ = own.writer.choice(read(text), silent)
    assert said(choice.schedule) == said(schedule)
    assert (choice.lowered.abreast, choice.lowered.once) == (done.abreast, done.once)
    assert choice.lowered == lowered


@examples(0.25)
@given(st.data())
def test_every_mapping_and_treatment_has_a_text_of_its_own(data: st.DataObject) -> None:
    """Also those that no first schedule has: any mapping, loops in any order, any stream."""
    own = case("examples/matmul.ir", "x86_avx512")
    mappings = own.result.statements[0].mappings
    mapping = data.draw(st.sampled_from(mappings))
    variables = data.draw(st.permutations(["m", "n", "k"]))
    levels = tuple(
        Level(v, data.draw(st.integers(1, 4)) * mapping.tile.get(v, 1), v == variables[0] != "k")
        for v in variables
    )
    stream = data.draw(st.sampled_from([None, 0, 1]))
    made = StatementSchedule(mapping, levels, ("packed", "packed"), stream)
    option = data.draw(st.sampled_from(EARLY[1:]))
    bypass = data.draw(st.sampled_from([None, False, True]))
    made = replace(made, early=early_of(option, mapping, levels), bypass=bypass)
    schedule = Schedule((made,))
    text = schedule_text(replace(own.result, schedule=schedule))
    try:
        lower(own.result.mapped, own.result.accelerator, schedule)
    except ScheduleError:
        reject()
    choice, _ = own.writer.choice(read(text), silent)
    assert choice.schedule == schedule
