"""Which instructions bring a fragment into its storage."""

from dataclasses import replace
from pathlib import Path

import pytest

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware
from isamap.ir.dtype import DTYPES
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Access, Expr, Literal, Op
from isamap.mapping.fragments.fragment import Digit, Fragment, Reference
from isamap.mapping.fragments.produce import Producers
from isamap.mapping.fragments.steps import FromImmediate, FromMemory, Step

F32 = DTYPES["f32"]
MACHINE = """
format: 1
name: toy
title: Four lanes, a scratchpad, no gather
clock: 1 GHz
storages:
  v: {kind: registers, count: 8, bits: 128}
  spm: {kind: scratchpad, size: 4 KiB}
  memory: {kind: memory}
  imm: {kind: immediate}
instructions:
  - semantics: "instruction load { in m : f32[4] @ memory out r : f32[4] @ v  r[i] = m[i] }"
    throughput: 1
    latency: 4
  - semantics: |
      instruction part(n in 1..5) {
        in m : f32[n] @ memory pad 0  out r : f32[4] @ v  for i in 0..4  r[i] = m[i]
      }
    throughput: 2
    latency: 4
  - semantics: |
      instruction apart(n in 1..5, P in 3..5) {
        in m : f32[n] @ memory strides [P] pad 0  out r : f32[4] @ v  for i in 0..4  r[i] = m[i]
      }
    throughput: 2
    latency: 4
  - semantics: "instruction dup { in m : f32[] @ memory out r : f32[4] @ v  r[i] = m[] }"
    throughput: 1
    latency: 4
  - semantics: "instruction put { in x : f32[] @ imm out r : f32[4] @ v  r[i] = x[] }"
    throughput: 1
    latency: 1
  - semantics: |
      instruction less {
        in a : f32[4] @ v in b : f32[4] @ v out r : f32[4] @ v  r[i] = a[i] - b[i]
      }
    throughput: 1
    latency: 4
  - semantics: |
      instruction folded { in a : f32[4] @ v out r : f32[4] @ v  r[i] = a[i] * a[3 - i] }
    throughput: 1
    latency: 4
  - semantics: |
      instruction fetch(P) {
        in m : f32[2, 2] @ memory strides [P, 1]  out s : f32[2, 2] @ spm  s[i, j] = m[i, j]
      }
    throughput: 8
    latency: 30
  - semantics: |
      instruction down { in s : f32[2, 2] @ spm out m : f32[2, 2] @ memory  m[i, j] = s[i, j] }
    throughput: 8
    latency: 30
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Accelerator:
    path: Path = tmp_path_factory.mktemp("hw") / "toy.yaml"
    path.write_text(MACHINE)
    return load_hardware(str(path))


def lanes(tile: int = 4, partial: bool = False, filler: Literal | None = None) -> Fragment:
    """A fragment of four lanes along x."""
    cut = frozenset({"x"} if partial else ())
    filled = frozenset({0} if filler else ())
    return Fragment("v", F32, (4,), ((Digit("x", tile),),), cut, filled, filler)


def made(machine: Accelerator, expr: Expr, wanted: Fragment, offset: Index) -> Step | None:
    known: dict[Access, Reference] = {}
    for access in [expr, *getattr(expr, "args", ())]:
        if isinstance(access, Access):
            known[access] = Reference(access.buffer, offset)
    return Producers(machine).make(expr, wanted, known)


def element(name: str = "A") -> Access:
    return Access(name, (var("x"), var("y")), F32)


def test_unit_pitch_is_a_load(machine: Accelerator) -> None:
    step = made(machine, element(), lanes(), var("x") + 9 * var("y"))
    assert step is not None
    assert step.entry.name == "load"


def test_no_pitch_is_a_broadcast(machine: Accelerator) -> None:
    step = made(machine, element(), lanes(), 9 * var("y"))
    assert step is not None
    assert step.entry.name == "dup"


def test_a_pitch_that_no_movement_has_is_refused(machine: Accelerator) -> None:
    assert made(machine, element(), lanes(), 2 * var("x")) is None


@pytest.mark.parametrize("pitch", [3, 4])
def test_a_pitch_with_a_range_takes_its_values(machine: Accelerator, pitch: int) -> None:
    step = made(machine, element(), lanes(), pitch * var("x"))
    assert step is not None
    assert (step.entry.name, step.limits) == ("apart", (("n", 0),))
    assert step.pitches == (("P", const(pitch)),)


@pytest.mark.parametrize("pitch", [const(2), const(5), var("P")])
def test_a_pitch_with_a_range_takes_no_others(machine: Accelerator, pitch: Index) -> None:
    assert made(machine, element(), lanes(), pitch * var("x")) is None


def test_a_cut_tile_needs_a_movement_with_a_limit(machine: Accelerator) -> None:
    step = made(machine, element(), lanes(partial=True), var("x"))
    assert step is not None
    assert (step.entry.name, step.limits) == ("part", (("n", 0),))


def test_dead_elements_must_get_the_filler(machine: Accelerator) -> None:
    zero, one = Literal("0.0", F32), Literal("1.0", F32)
    step = made(machine, element(), lanes(tile=3, filler=zero), var("x"))
    assert step is not None
    assert step.entry.name == "part"
    assert made(machine, element(), lanes(tile=3, filler=one), var("x")) is None


def test_a_broadcast_leaves_no_room_for_a_filler(machine: Accelerator) -> None:
    zero = Literal("0.0", F32)
    assert made(machine, element(), lanes(tile=3), var("y")) is not None
    assert made(machine, element(), lanes(tile=3, filler=zero), var("y")) is None


def test_a_constant_comes_from_an_immediate(machine: Accelerator) -> None:
    step = Producers(machine).make(Literal("2.5", F32), lanes(), {})
    assert step is not None
    assert step.inputs == (("x", FromImmediate(Literal("2.5", F32))),)


def test_an_operation_is_computed_from_fragments_of_its_own(machine: Accelerator) -> None:
    expr = Op("-", (element("A"), element("B")), F32)
    step = made(machine, expr, lanes(), var("x"))
    assert step is not None
    assert step.entry.name == "less"
    assert [s.entry.name for _, s in step.inputs if isinstance(s, Step)] == ["load", "load"]


def test_an_operand_read_at_two_places_is_not_the_one_fragment(machine: Accelerator) -> None:
    # folded(a) multiplies each lane with another one, which holds another element.
    expr = Op("*", (element("A"), element("A")), F32)
    assert made(machine, expr, lanes(), var("x")) is None


def test_what_was_asked_before_changes_no_answer(machine: Accelerator) -> None:
    difference = Op("-", (element("A"), element("B")), F32)
    nested = Op("-", (difference, element("A")), F32)
    zero = Literal("0.0", F32)
    offsets = (var("x"), 2 * var("x"), 9 * var("y"))
    asked = [
        (expr, wanted, {a: Reference(a.buffer, offset) for a in (element("A"), element("B"))})
        for expr in (nested, difference, element("A"), zero)
        for wanted in (lanes(), lanes(partial=True), lanes(tile=3, filler=zero))
        for offset in offsets
    ]
    fresh = [Producers(machine).make(*one) for one in asked]
    assert None in fresh
    shared = Producers(machine)
    assert [shared.make(*one) for one in asked] == fresh
    assert [shared.make(*one) for one in reversed(asked)] == fresh[::-1]
    stored = [
        (lanes(partial=cut), Reference("C", offset)) for cut in (False, True) for offset in offsets
    ]
    assert [shared.store(*one) for one in stored + stored] == [
        Producers(machine).store(*one) for one in stored + stored
    ]


def test_what_becomes_of_a_callers_places_changes_no_answer(machine: Accelerator) -> None:
    """Where an operand is packed inside loops, its place is another one in each pass."""
    producers, place = Producers(machine), Reference("array", var("x"))
    places = {element(): place}
    assert producers.make(element(), lanes(), places) is not None
    places[element()] = replace(place, offset=var("x") - 16)
    step = producers.make(element(), lanes(partial=True), {element(): place})
    assert step is not None
    assert [source for _, source in step.inputs] == [FromMemory(place)]


def test_an_operation_without_an_instruction_is_refused(machine: Accelerator) -> None:
    expr = Op("*", (element("A"), element("B")), F32)
    assert made(machine, expr, lanes(), var("x")) is None


def test_a_free_pitch_takes_that_of_the_buffer(machine: Accelerator) -> None:
    wanted = Fragment("spm", F32, (2, 2), ((Digit("y", 2),), (Digit("x", 2),)))
    step = made(machine, element(), wanted, var("x") + 17 * var("y"))
    assert step is not None
    assert step.pitches == (("P", Index((((), 17),))),)
    assert isinstance(step.inputs[0][1], FromMemory)


def test_digits_share_a_pitch_only_if_they_nest(machine: Accelerator) -> None:
    both = Fragment("v", F32, (4,), ((Digit("y", 2), Digit("x", 2)),))
    assert made(machine, element(), both, var("x") + 2 * var("y")) is not None
    assert made(machine, element(), both, var("x") + 3 * var("y")) is None


def test_a_store_takes_only_its_own_pitches(machine: Accelerator) -> None:
    kept = Fragment("spm", F32, (2, 2), ((Digit("y", 2),), (Digit("x", 2),)))
    dense, wide = var("x") + 2 * var("y"), var("x") + 9 * var("y")
    assert Producers(machine).store(kept, Reference("C", dense)) is not None
    assert Producers(machine).store(kept, Reference("C", wide)) is None


def test_a_movement_that_demands_alignment_takes_aligned_arrays_only(
    machine: Accelerator,
) -> None:
    strict = replace(
        machine,
        entries=tuple(
            replace(e, align={"m": 16}) if e.name == "load" else e for e in machine.entries
        ),
    )
    loose = Reference("A", var("x"))
    fit = Producers(strict).make(element(), lanes(), {element(): loose})
    assert fit is not None
    assert fit.entry.name == "part"
    tight = Producers(strict).make(element(), lanes(), {element(): replace(loose, alignment=64)})
    assert tight is not None
    assert tight.entry.name == "load"


def test_a_faster_instruction_for_another_shape_of_the_same_elements_is_taken(
    tmp_path: Path,
) -> None:
    rows = """  - semantics: |
      instruction rows(P) {
        in m : f32[2, 2] @ memory strides [P, 1]  out r : f32[2, 2] @ v  r[i, j] = m[i, j]
      }
    throughput: 4
    latency: 8
"""
    path = tmp_path / "toy.yaml"
    path.write_text(MACHINE + rows)
    producers = Producers(load_hardware(str(path)))
    wanted = Fragment("v", F32, (2, 2), ((Digit("y", 2),), (Digit("x", 2),)))
    access = element()

    def used(pitch: int) -> str:
        step = producers.make(access, wanted, {access: Reference("A", var("y") * pitch + var("x"))})
        assert step is not None
        return step.entry.name

    assert used(2) == "load"  # four that lie together
    assert used(5) == "rows"
