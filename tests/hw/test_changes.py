"""What a description changes of instructions that it inherits."""

from fractions import Fraction
from pathlib import Path

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware

BASE = """\
format: 1
name: base
source: the base's manual
clock: 2 GHz
units: {a: 1, b: 2}
parameters:
  N: {default: 4, values: [4, 8]}
storages:
  v: {kind: registers, count: 4, bits: 512, types: {f32: vec, s32: ints}}
instructions:
  - semantics: |
      instruction add<T = f32 s32> {
        in x : T[N] @ v    in y : T[N] @ v    out r : T[N] @ v
        r[i] = x[i] + y[i]
      }
    emit: "{r} = add({x}, {y});"
    throughput: 1
    latency: 3
    length: 2
    units: a
"""


def child(of: str, *lines: str) -> str:
    return "\n".join(["format: 1", "name: child", f"extends: {of}", *lines, ""])


def load(folder: Path, **texts: str) -> Accelerator:
    """Return the description of the last text; each is a file beside the others."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_hardware(str(folder / f"{[*texts][-1]}.yaml"))


def test_given_fields_are_others_and_the_rest_stays(tmp_path: Path) -> None:
    change = 'change: {add_f32: {emit: "{r} = more{N}({x}, {y});", throughput: N/2, units: [b]}}'
    found = load(tmp_path, base=BASE, child=child("base.yaml", change))
    changed, other = found.entry("add_f32"), found.entry("add_s32")
    assert changed.emit == "{r} = more4({x}, {y});"
    assert changed.units == {"b": Fraction(1)}
    assert changed.latency == 3
    assert changed.length == 2
    assert changed.instruction == load(tmp_path, base=BASE).entry("add_f32").instruction
    assert other.emit == "{r} = add({x}, {y});"
    assert other.units == {"a": Fraction(1)}


def test_registers_that_instructions_take_besides_are_those_of_the_nearest(tmp_path: Path) -> None:
    base = BASE.replace("length: 2", "besides: {v: 2}")
    assert load(tmp_path, base=base).entry("add_f32").besides == {"v": 2}
    change = child("base.yaml", "change: {add_f32: {besides: {v: 1}}, add_s32: {besides: {}}}")
    found = load(tmp_path, base=base, child=change)
    assert found.entry("add_f32").besides == {"v": 1}
    assert found.entry("add_s32").besides == {}


def test_a_changed_instruction_counts_as_the_description_s_own(tmp_path: Path) -> None:
    found = load(tmp_path, base=BASE, child=child("base.yaml", "change: {add_s32: {latency: 9}}"))
    assert [entry.name for entry in found.own_entries] == ["add_s32"]
    own = found.entry("add_s32")
    assert own.span is not None
    assert Path(own.span.source.name).name == "base.yaml"


def test_figures_come_from_where_the_change_does(tmp_path: Path) -> None:
    change = "change: {add_s32: {latency: 9}, add_f32: {latency: 8, source: measured}}"
    found = load(tmp_path, base=BASE, child=child("base.yaml", "source: ours", change))
    assert found.entry("add_s32").source == "ours"
    assert found.entry("add_f32").source == "measured"
    silent = load(tmp_path, child=child("base.yaml", change))
    assert silent.entry("add_s32").source == "the base's manual"


def test_a_name_with_types_is_said_last(tmp_path: Path) -> None:
    for order in (("add", "add_f32"), ("add_f32", "add")):
        latency = {"add": 5, "add_f32": 7}
        text = ", ".join(f"{name}: {{latency: {latency[name]}}}" for name in order)
        found = load(tmp_path, base=BASE, child=child("base.yaml", f"change: {{{text}}}"))
        assert found.entry("add_f32").latency == 7
        assert found.entry("add_s32").latency == 5


def test_the_nearest_description_says_the_last_word_on_each_field(tmp_path: Path) -> None:
    middle = child("base.yaml", "change: {add_f32: {latency: 5, length: 1}}")
    near = child("middle.yaml", "change: {add: {latency: 6, numeric: {flush: after}}}")
    near = near.replace("add: ", "add_f32: ")
    found = load(tmp_path, base=BASE, middle=middle, near=near).entry("add_f32")
    assert found.latency == 6
    assert found.length == 1
    assert found.numeric[0].flush == "after"


def test_the_nearest_description_s_word_counts_where_it_names_no_types(tmp_path: Path) -> None:
    middle = child("base.yaml", "change: {add_f32: {latency: 5}}")
    near = child("middle.yaml", "change: {add: {latency: 6}}")
    found = load(tmp_path, base=BASE, middle=middle, near=near)
    assert found.entry("add_f32").latency == 6


def test_the_content_of_a_change_is_part_of_the_digest(tmp_path: Path) -> None:
    texts = (child("base.yaml", f"change: {{add: {{latency: {n}}}}}") for n in (5, 6))
    first, second = (load(tmp_path, base=BASE, child=text).digest for text in texts)
    assert first != second


def test_units_are_busy_for_unlike_times_where_a_description_says_so(tmp_path: Path) -> None:
    unlike = "units: {a: 3, b: N}"
    base = BASE.replace("    throughput: 1\n", "").replace("units: a\n", f"{unlike}\n")
    found = load(tmp_path, base=base).entry("add_f32")
    assert found.units == {"a": Fraction(3), "b": Fraction(4, 2)}
    assert found.throughput == 3
    changes = {
        f"{{{unlike}}}": {"a": Fraction(3), "b": Fraction(2)},
        "{throughput: 5}": {"a": Fraction(5), "b": Fraction(5, 2)},
        "{units: b}": {"b": Fraction(2)},
        "{units: b, throughput: 7}": {"b": Fraction(7, 2)},
    }
    for text, units in changes.items():
        change = child("base.yaml", f"change: {{add_f32: {text}}}")
        found = load(tmp_path, base=base, child=change).entry("add_f32")
        assert found.units == units, text
        assert found.throughput == max(units.values())
    alike = load(tmp_path, base=BASE, child=child("base.yaml", f"change: {{add: {{{unlike}}}}}"))
    assert alike.entry("add_f32").units == changes[f"{{{unlike}}}"]


def test_times_of_units_that_are_one_add_up(tmp_path: Path) -> None:
    base = BASE.replace("    throughput: 1\n", "").replace("units: a\n", "units: {a: 3, b: 1}\n")
    merged = load(tmp_path, base=base, child=child("base.yaml", "merge: {b: a}"))
    assert merged.entry("add_f32").units == {"a": Fraction(4)}


def test_a_name_of_an_instruction_is_not_that_of_others_before_their_types(tmp_path: Path) -> None:
    base = (
        BASE
        + """\
  - semantics: |
      instruction add_f32<S = s8 u8> {
        in x : S[N] @ memory    out r : f32[N] @ v
        r[i] = f32(x[i])
      }
    throughput: 1
    latency: 3
    units: a
"""
    )
    base = base.replace("storages:\n", "storages:\n  memory: {kind: memory}\n")
    one = child("base.yaml", "change: {add_f32: {latency: 9}, add_f32_u8: {latency: 8}}")
    found = load(tmp_path, base=base, child=one)
    latencies = {e.name: e.latency for e in found.entries}
    assert latencies == {"add_f32": 9, "add_s32": 3, "add_f32_s8": 3, "add_f32_u8": 8}
    left = load(tmp_path, base=base, child=child("base.yaml", "without: [add_f32]"))
    assert [e.name for e in left.entries] == ["add_s32", "add_f32_s8", "add_f32_u8"]
    rest = load(tmp_path, base=base, child=child("base.yaml", "without: [add]"))
    assert [e.name for e in rest.entries] == ["add_f32_s8", "add_f32_u8"]
