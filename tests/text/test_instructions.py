"""Instructions: type parameters, storages, parts, and places in a YAML file."""

import time

import pytest

from isamap.diagnostics import IsamapError, Source, VerifyError
from isamap.ir.printer import print_instruction
from isamap.text.load import parse_instructions, parse_module

STORAGES = frozenset(("memory", "reg"))


def instructions(text: str) -> list[str]:
    return [i.name for i in parse_instructions(Source("hw.yaml", text), STORAGES)]


def test_an_instruction_is_made_for_every_combination_of_types() -> None:
    text = """
        instruction cast<S = f32 s8, T = f64 u8> {
          in a : S[4] @ reg    out r : T[4] @ reg
          r[i] = T(a[i])
        }
        instruction nop { in a : f32[] @ reg    out r : f32[] @ reg    r[] = a[] }
    """
    found = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert [i.name for i in found] == [
        "cast_f32_f64", "cast_f32_u8", "cast_s8_f64", "cast_s8_u8", "nop",
    ]  # fmt: skip
    assert [str(o.dtype) for o in found[2].operands] == ["s8", "f64"]
    assert dict(found[2].types)["T"].name == "f64"
    assert {i.generic for i in found} == {"cast", "nop"}
    for instruction in found:
        assert parse_module(print_instruction(instruction)).instructions == (instruction,)


def test_a_cast_to_the_same_type_is_none() -> None:
    text = """instruction cast<S = f32 s8, T = s8> {
        in a : S[4] @ reg    out r : T[4] @ reg
        r[i] = T(a[i])
    }"""
    wide, same = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert print_instruction(wide).count("s8(a[i])") == 1
    assert print_instruction(same).count("s8(a[i])") == 0


def test_literals_take_the_bound_type() -> None:
    text = """instruction clear<T = f32 s8 bool> {
        in m : T[4] @ memory pad 0    out r : T[4] @ reg
        r[i] = m[i]
    }"""
    found = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert [i.operands[0].pad.text for i in found if i.operands[0].pad] == ["0.0", "0", "false"]


def test_an_error_is_told_once_with_the_types_for_which_it_holds() -> None:
    text = "instruction add<T = s8 bool> { in a : T[] @ reg  out r : T[] @ reg\n r[] = a[] + a[] }"
    with pytest.raises(VerifyError) as caught:
        instructions(text)
    (told,) = caught.value.diagnostics
    assert told.notes[-1].message == "with T = bool"


def test_a_part_of_a_register_is_stored() -> None:
    text = """instruction store(n in 1..17) {
        in r : f32[16] @ reg    out m : f32[n] @ memory
        m[i] = r[i]
    }"""
    (found,) = parse_instructions(Source("hw.yaml", text), STORAGES)
    (variable,) = found.statements[0].variables
    assert str(variable.extent) == "n"
    assert found.extents[0].range == (1, 17)


def test_an_open_extent_is_proved_for_all_its_values() -> None:
    text = """instruction low(V >= 4) {
        in a : f32[V] @ reg    out r : f32[4] @ reg
        for i in 0..4
        r[i] = a[i]
    }"""
    (found,) = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert (found.extents[0].least, found.extents[0].power) == (4, False)
    longer = text.replace("f32[4]", "f32[5]").replace("0..4", "0..5")
    with pytest.raises(VerifyError, match="V = 4"):
        parse_instructions(Source("hw.yaml", longer), STORAGES)


def test_a_part_must_fit_the_register() -> None:
    text = """instruction store(n in 1..18) {
        in r : f32[16] @ reg    out m : f32[n] @ memory
        m[i] = r[i]
    }"""
    with pytest.raises(VerifyError, match="i is 16 at n = 17, i = 16"):
        instructions(text)


def test_a_free_pitch_is_an_extent_of_strides_only() -> None:
    text = """instruction dma(rows in 1..17, P) {
        in m : s8[rows, 16] @ memory strides [P, 1] pad 0    out r : s8[16, 16] @ reg
        for i in 0..16
        r[i, j] = m[i, j]
    }"""
    (found,) = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert [str(s) for s in found.operands[0].strides or ()] == ["P", "1"]


def test_machine_state_is_kept() -> None:
    text = """instruction tile {
        state in config : u64
        in m : f32[4] @ memory    out r : f32[4] @ reg
        r[i] = m[i]
    }"""
    (found,) = parse_instructions(Source("hw.yaml", text), STORAGES)
    assert [(s.role, s.name, s.dtype.name) for s in found.states] == [("in", "config", "u64")]
    assert parse_module(print_instruction(found)).instructions == (found,)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("instruction m { in m : f32[4] @ zmm  out r : f32[4] @ reg  r[i] = m[i] }", "E038"),
        ("instruction m { in m : f32[4]  out r : f32[4] @ reg  r[i] = m[i] }", "E038"),
        ("kernel m { out r : f32[4]  r[i] = 1 }", "E007"),
        ('include "x.ir"', "E031"),
        ("instruction m<T = f32 f32> { out r : T[4] @ reg  r[i] = 1 }", "E039"),
        ("instruction m<T = f32, T = f32> { out r : T[4] @ reg  r[i] = 1 }", "E014"),
        ("instruction m<T = f32> { out T : T[4] @ reg  T[i] = 1 }", "E014"),
        ("instruction m<T = f32> { in a : T[4] @ reg  out r : T[4] @ reg  r[i] = a[T] }", "E019"),
        ("instruction m<T = f32> { in a : T[4] @ reg  out r : T[4] @ reg  r[i] = a[i] + T }",
         "E015"),
        ("instruction m<T = f32> { in a : T[4] @ reg  out r : T[4] @ reg  r[i] = T(a[i], 2) }",
         "E034"),
        ("instruction m<T = f32> { in a : T[4] @ reg  out r : T[4] @ reg  r[i] = T() }", "E034"),
        ("instruction m { state in s : f31  out r : f32[4] @ reg  r[i] = 1 }", "E013"),
        ("instruction m<T = s8 f32> { in a : T[4] @ reg  in x : s8[9] @ reg  out r : s8[4] @ reg"
         "  r[i] = x[a[i]] }", "E033"),
    ],
)  # fmt: skip
def test_wrong_instructions(text: str, code: str) -> None:
    with pytest.raises(IsamapError) as caught:
        instructions(text)
    assert code in [d.code for d in caught.value.diagnostics]


def test_places_are_those_of_the_file_around_the_text() -> None:
    whole = "- name: x\n  semantics: |\n      instruction m {\n        $\n      }\n"
    text = "instruction m {\n  $\n}\n"
    with pytest.raises(IsamapError) as caught:
        parse_instructions(Source("hw.yaml", text, 3, 6, whole), STORAGES)
    rendered = caught.value.diagnostics[0].render().splitlines()
    assert rendered[0].startswith("hw.yaml:4:9: error[E005]")
    assert rendered[1:3] == ["          $", "          ^"]


def test_many_instances_are_fast() -> None:
    types = "f64 f32 f16 bf16 s64 s32 s16 s8 s4 u64 u32 u16 u8 u4"
    text = "".join(
        f"instruction i{n}<S = {types}, T = {types}> {{\n"
        "  in a : S[] @ reg  in b : T[] @ reg  out r : T[] @ reg\n  r[] = max(T(a[]), b[])\n}\n"
        for n in range(5)
    )
    parse_instructions(Source("hw.yaml", text), STORAGES)
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        found = parse_instructions(Source("hw.yaml", text), STORAGES)
        best = min(best, time.perf_counter() - start)
    assert len(found) == 5 * 14 * 14
    assert best < 0.6  # 0.1 s on an idle machine
