"""The differential test finds what is wrong, on this CPU and under an emulator."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import settings

from isamap.cli.group import group
from isamap.diagnostics import HardwareError, Source, ToolError
from isamap.hw.accelerator import Accelerator
from isamap.hw.faults import Fault, faults_of, recorded_faults
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.native import runnable
from isamap.hw.needed import Needed
from isamap.ir.numeric import Numeric
from isamap.targets.known import known_faults
from isamap.targets.probe.arrays import elements, span_of
from isamap.targets.probe.deviation import deviation_of
from isamap.targets.probe.extents import combinations, largest
from isamap.targets.probe.finding import Finding
from isamap.targets.probe.probe import probe
from isamap.targets.state import emulated as emulated_targets
from isamap.targets.test import check_target, every
from isamap.text.load import parse_instructions

ROOT = Path(__file__).parents[2]
SETS = max(100, settings().max_examples // 2)
EMULATED = [target.name for target in emulated_targets()]
OTHER_SIZES = [name for name in every(EMULATED) if name not in EMULATED]

BFDOT = Numeric(sums=(("k", "apart"),), rounding="odd", flush="before")
NEEDED = ("c_load_s8", "c_store_s16", "c_load_s16")


def emulated(name: str) -> Accelerator:
    machine = load_hardware(name)
    if missing := runnable(machine):
        pytest.skip(f"{missing}: isamap targets install {name.partition(':')[0]}")
    return machine


def changed(machine: Accelerator, name: str, **fields: object) -> Accelerator:
    """Return a machine that says something else of one of its instructions."""
    entries = (replace(e, **fields) if e.name == name else e for e in machine.entries)  # type: ignore[arg-type]
    return replace(machine, entries=tuple(entries))


def found(machine: Accelerator, names: Sequence[str], samples: int = 400) -> dict[str, Finding]:
    return {finding.name: finding for finding in probe(machine, names, samples)}


@pytest.mark.parametrize("name", EMULATED)
def test_every_instruction_of_a_target_does_what_it_says(name: str) -> None:
    machine = emulated(name)
    tested = check_target(machine, SETS)
    assert tested.ok, [(f.name, f.status, f.text) for f in tested.findings if f.is_fault]
    assert [f.name for f in tested.findings if not f.origin] == [
        e.name for e in machine.own_entries
    ]
    assert {f.name for f in tested.findings} == {e.name for e in machine.entries}
    assert all(f.sets >= SETS for f in tested.findings)


@pytest.mark.parametrize("name", OTHER_SIZES)
def test_every_instruction_does_what_it_says_in_another_size(name: str) -> None:
    machine = emulated(name)
    tested = check_target(machine, SETS, own=True)
    assert tested.ok, [(f.name, f.status, f.text) for f in tested.findings if f.is_fault]
    assert [f.name for f in tested.findings] == [e.name for e in machine.own_entries]


def test_descriptions_with_a_parameter_are_tested_in_two_sizes() -> None:
    assert every(["x86_avx2", "riscv_rvv"]) == ["x86_avx2", "riscv_rvv", "riscv_rvv:VL=128"]
    sized = {name for name in EMULATED if any(p.values[1:] for p in load_hardware(name).parameters)}
    assert {name.partition(":")[0] for name in OTHER_SIZES} == sized


def test_a_wrong_template_is_found_with_its_operands() -> None:
    machine = changed(load_hardware("portable_c"), "c_max_f32", emit="{r} = {a} > {b} ? {a} : {b};")
    finding = found(machine, ["c_max_f32"])["c_max_f32"]
    assert finding.status == "wrong"
    assert finding.is_fault
    lines = finding.text.splitlines()
    assert [line.split(" = ")[0] for line in lines[:2]] == ["a", "b"]
    assert "should be 0x7fc00000 (nan)" in lines[2]


@pytest.mark.parametrize(
    ("numeric", "right"),
    [
        ((BFDOT,), True),
        ((replace(BFDOT, rounding="nearest"),), False),
        ((replace(BFDOT, flush="never"),), False),
        ((replace(BFDOT, sums=()),), False),
        ((), False),
        ((Numeric(fused=True), BFDOT), True),
        ((Numeric(fused=True), replace(BFDOT, sums=())), False),
    ],
)
def test_each_numeric_field_of_bfdot_decides_bits(
    numeric: tuple[Numeric, ...], right: bool
) -> None:
    machine = changed(emulated("aarch64_neon"), "bfdot", numeric=numeric)
    assert (found(machine, ["bfdot"], 1000)["bfdot"].status == "right") == right


@pytest.mark.parametrize(
    ("emit", "right"),
    [
        ("{c} = fmaf({a}, {b}, {c});", True),
        ("{c} += {a} * {b};", True),
        ("if ({a} > 0) {c} = fmaf({a}, {b}, {c}); else {c} += {a} * {b};", False),
        ("{c} = fmaf({a}, -{b}, {c});", False),
    ],
)
def test_of_several_ways_one_is_gone_each_time(emit: str, right: bool) -> None:
    ways = (Numeric(fused=True), Numeric())
    machine = changed(load_hardware("portable_c"), "c_mac_f32", emit=emit, numeric=ways)
    finding = found(machine, ["c_mac_f32"])["c_mac_f32"]
    assert (finding.status == "right") == right
    assert right == ("should be" not in finding.text)


@pytest.mark.parametrize(
    ("emit", "text"),
    [
        ("*(volatile char *)0 = 0; {r} = {a} + {b};", "SIGSEGV"),
        ("{r} = {a} + not_declared;", "not_declared"),
    ],
)
def test_what_crashes_or_does_not_compile_is_told_and_the_others_go_on(
    emit: str, text: str
) -> None:
    machine = changed(load_hardware("portable_c"), "c_add_s32", emit=emit)
    names = ["c_sub_s32", "c_add_s32", "c_mul_s32"]
    findings = found(machine, names, 50)
    assert list(findings) == names
    assert [f.status == "right" for f in findings.values()] == [True, False, True]
    assert text in findings["c_add_s32"].text


def test_reading_or_writing_beside_an_operand_is_found() -> None:
    machine = load_hardware("portable_c")
    beyond = changed(
        machine, "c_load_s32", emit="{r} = {m}[0] + 0 * *(volatile int32_t *)({m} + 1);"
    )
    assert "SIGSEGV" in found(beyond, ["c_load_s32"], 50)["c_load_s32"].text
    strays = changed(machine, "c_store_s32", emit="*{m} = {r}; {m}[-1] = 0;")
    assert "beside" in found(strays, ["c_store_s32"], 50)["c_store_s32"].text


WRONG = """\
format: 1
name: wrong
title: instructions that are right on most operands
extends: vector_c
source: none
instructions:
  - semantics: |
      instruction spoils {
        in a : f32[4] @ v    in b : f32[4] @ v    inout c : f32[4] @ v
        c[i] += a[i] * b[i]
      }
    emit: "{a} = {a} * {b}; {c} = {c} + {a};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction rows(P) {
        in m : f32[2, 2] @ memory strides [P, 1]    out r : f32[4] @ v
        r[2*i + j] = m[i, j]
      }
    emit: "{r} = (isamap_v_f32){{ {m}[0], {m}[1], {m}[{P} ? {P} : 1], {m}[({P} ? {P} : 1) + 1] }};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction lapping(P) {
        in m : f32[2, 2] @ memory strides [P, 1]    out r : f32[4] @ v
        r[2*i + j] = m[i, j]
      }
    emit: "{r} = (isamap_v_f32){{ {m}[0], {m}[1], {m}[{P} == 1 ? 0 : {P}], {m}[{P} + 1] }};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction scales {
        in a : s32[4] @ v    in f : s32[] @ imm    out r : s32[4] @ v
        r[i] = a[i] * f[]
      }
    emit: "{r} = {a} * ({f} > 100 && {f} < 1000 ? 0 : {f});"
    throughput: 1
    latency: 1
"""


@pytest.mark.parametrize("name", ["spoils", "rows", "lapping", "scales"])
def test_what_is_wrong_on_some_uses_only_is_found(name: str, tmp_path: Path) -> None:
    """Inputs that do not stay what they are, rows in one place or over each other, numbers."""
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    finding = found(load_hardware(str(path), trust=True), [name])[name]
    assert finding.status == "wrong"
    if name == "spoils":
        assert "after it a[0] is " in finding.text


BOUNDED = """\
format: 1
name: bounded
extends: portable_c
instructions:
  - semantics: |
      instruction mul7 {{
        in a : s8[] @ reg values 0 .. 127    in b : s8[] @ reg    out r : s16[] @ reg
        r[] = s16(a[]) * s16(b[])
      }}
    emit: "{{r}} = (int16_t)({mask} * {{b}});"
    throughput: 1
    latency: 4
    units: alu
"""


@pytest.mark.parametrize(
    ("mask", "right"), [("({a} & 127)", True), ("(uint8_t){a}", True), ("({a} & 126)", False)]
)
def test_an_operand_has_only_the_values_that_it_may_have(
    mask: str, right: bool, tmp_path: Path
) -> None:
    path = tmp_path / "bounded.yaml"
    path.write_text(BOUNDED.format(mask=mask), encoding="utf-8")
    machine = load_hardware(str(path), trust=True)
    assert (found(machine, ["mul7"])["mul7"].status == "right") == right
    # Only a movement leaves values as they are.
    kept = tuple(e for e in machine.entries if e.name != "c_load_s8")
    finding = found(replace(machine, entries=kept), ["mul7"])["mul7"]
    assert finding.status == "not tried"
    assert "is no movement" in finding.text


SEEN = """\
format: 1
name: seen
title: bytes that only an instruction for seven bits takes out of their registers
extends: portable_c
source: none
storages:
  bytes: {kind: registers, count: 8, bits: 8, types: {u8: uint8_t}}
instructions:
  - semantics: |
      instruction load7 { in m : u8[] @ memory  out r : u8[] @ bytes  r[] = m[] }
    emit: "{r} = *{m};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction widen7 {
        in a : u8[] @ bytes values 0 .. 127    out r : s16[] @ reg
        r[] = s16(a[])
      }
    emit: "{r} = (int8_t){a};"
    throughput: 1
    latency: 1
  - semantics: |
      instruction flip { in a : u8[] @ bytes  out r : u8[] @ bytes  r[] = ~a[] }
    emit: "{r} = ~{a};"
    throughput: 1
    latency: 1
"""
STORE = """\
  - semantics: |
      instruction store7 { in a : u8[] @ bytes  out m : u8[] @ memory  m[] = a[] }
    emit: "*{m} = {a};"
    throughput: 1
    latency: 1
"""


def test_what_is_seen_through_bounded_operands_has_such_values(tmp_path: Path) -> None:
    path = tmp_path / "seen.yaml"
    path.write_text(SEEN, encoding="utf-8")
    machine = load_hardware(str(path), trust=True)
    names = ["load7", "widen7", "flip"]
    findings = found(machine, names)
    assert [findings[name].status for name in names] == ["right", "right", "not tried"]
    told = "r is seen only by a of widen7, which is for values 0 .. 127"
    assert findings["flip"].text == told
    wrong = changed(machine, "load7", emit="{r} = *{m} / 2;")
    assert found(wrong, ["load7"])["load7"].status == "wrong"
    # A store that takes any byte is the better look at it.
    path.write_text(SEEN + STORE, encoding="utf-8")
    more = load_hardware(str(path), trust=True)
    assert [one.status for one in found(more, names).values()] == ["right"] * 3


def test_what_is_inherited_is_tested_and_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "bounded.yaml"
    path.write_text(BOUNDED.format(mask="{a}"), encoding="utf-8")
    machine = load_hardware(str(path), trust=True)
    kept = tuple(e for e in machine.entries if e.name in ("mul7", *NEEDED))
    few = replace(machine, entries=kept)
    tested = check_target(few, 200)
    assert {f.name: (f.origin, f.sets) for f in tested.findings} == {
        "mul7": ("", 200),
        **{name: ("portable_c", 200) for name in NEEDED},
    }
    assert [f.name for f in check_target(few, 50, own=True).findings] == ["mul7"]


def test_what_has_no_way_to_memory_is_not_tried() -> None:
    machine = load_hardware("portable_c")
    kept = tuple(e for e in machine.entries if not e.name.startswith("c_store"))
    finding = found(replace(machine, entries=kept), ["c_add_s32"])["c_add_s32"]
    assert finding.status == "not tried"
    assert finding.is_fault
    assert finding.text == "nothing takes 1 s32 from reg to memory"


PRIMED = """\
format: 1
name: primed
title: wide sums of eight products that are set, added to and read out
extends: vector_c
source: none
storages:
  sums: {{kind: registers, count: 4, bits: 512, types: {{s64: wide_sums}}}}
instructions:
  - semantics: |
      instruction begin {{ in k : s64[] @ imm  out c : s64[8] @ sums  c[i] = k[] }}
    emit: "{{c}} = (wide_sums){{{{0}}}} + {{k}};"
    throughput: 1
    latency: 1
{adding}  - semantics: |
      instruction end {{ in c : s64[8] @ sums  out m : s64[8] @ memory  m[i] = c[i] >> 1 }}
    emit: "for (int i = 0; i < 8; i++) {{m}}[i] = {factor} * ({{c}}[i] >> 1);"
    throughput: 1
    latency: 2
toolchain:
  prelude: |
    typedef int64_t wide_sums __attribute__((vector_size(64)));
"""
ADDING = """\
  - semantics: |
      instruction add { in a : s64[8] @ memory  inout c : s64[8] @ sums  c[i] += a[i] }
    emit: "for (int i = 0; i < 8; i++) {c}[i] += {a}[i];"
    throughput: 1
    latency: 3
"""


@pytest.mark.parametrize(
    ("adding", "factor", "status"),
    [
        (ADDING, "1", "right"),
        (ADDING, "0", "wrong"),
        ("", "1", "not tried"),
        ("", "0", "not tried"),
    ],
)
def test_what_only_constants_come_to_is_not_called_right(
    adding: str, factor: str, status: str, tmp_path: Path
) -> None:
    """An accumulator that nothing loads is set, and filled by what adds to it."""
    path = tmp_path / "primed.yaml"
    path.write_text(PRIMED.format(adding=adding, factor=factor), encoding="utf-8")
    finding = found(load_hardware(str(path), trust=True), ["end"])["end"]
    assert finding.status == status
    if status == "wrong":
        assert "c by add = " in finding.text
    if status == "not tried":
        assert finding.text == "nothing but constants comes to sums for c, by begin"


def test_every_partial_count_and_pitches_are_tried() -> None:
    machine = load_hardware("x86_avx512")
    generator = np.random.default_rng(0)
    counts = combinations(machine.entry("vmaskload_f32"), generator)
    assert [c["n"] for c in counts] == list(range(1, 17))
    parts = combinations(machine.entry("vweave2_part_bf16"), generator)
    assert {(c["n"], c["d"]) for c in parts} == {(n, d) for n in range(1, 17) for d in (1, 2)}
    assert sum(c["P"] < c["n"] for c in parts) == 3
    assert {c["P"] for c in parts if c["P"] < c["n"]} == {0, 8}
    assert any(c["P"] == c["n"] for c in parts)
    assert any(c["P"] > c["n"] + 8 for c in parts)


@pytest.mark.parametrize(
    ("pitches", "strides"),
    [("P, Q", "[P, Q]"), ("P, Q", "[Q, P]"), ("P", "[1, P]"), ("P", "[P, 1]")],
)
def test_elements_do_not_overlap_at_any_pitches(pitches: str, strides: str) -> None:
    text = f"""
        instruction put(rows in 1..4, cols in 1..6, {pitches}) {{
          in r : f32[3, 5] @ acc    out m : f32[rows, cols] @ memory strides {strides}
          for i in 0..rows    for j in 0..cols
          m[i, j] = r[i, j]
        }}"""
    machine = load_hardware("gemm16")
    (put,) = parse_instructions(Source("put", text), frozenset(s.name for s in machine.storages))
    store = replace(machine.entry("acc_put_f32"), instruction=put)
    most = largest(store)
    tried = combinations(store, np.random.default_rng(0))
    assert len(tried) == 3 * 5
    for symbols in tried:
        found = np.zeros((1, span_of(put.places[1], symbols)), bool)
        elements(found, put.places[1], symbols)[...] = True
        assert found.sum() == symbols["rows"] * symbols["cols"]
        assert all(symbols[name] <= most[name] for name in symbols)


def test_operands_are_the_same_for_the_same_seed() -> None:
    machine = changed(load_hardware("portable_c"), "c_add_f32", emit="{r} = {b};")
    one, same, other = (probe(machine, ["c_add_f32"], 50, seed)[0] for seed in (1, 1, 2))
    assert one == same
    assert one.text != other.text


# --- recorded faults ------------------------------------------------------------------------------
def fault(**fields: str) -> Fault:
    given = {"tool": "qemu-aarch64", "target": "aarch64_neon", "instruction": "sdot"}
    return Fault.model_validate({**given, "what": "it is off by one", **fields})


@pytest.mark.parametrize(
    ("fields", "version", "has"),
    [
        ({}, "10.0.2", True),
        ({"before": "10"}, "7.2.13", True),
        ({"before": "10"}, "10.0", False),
        ({"from": "8"}, "7.2.13", False),
        ({"from": "8.1", "before": "9.0"}, "8.1", True),
        ({"from": "8.1", "before": "9.0"}, "9.0.0", False),
    ],
)
def test_a_fault_is_of_a_range_of_versions(fields: dict[str, str], version: str, has: bool) -> None:
    assert fault(**fields).is_of(version) == has


def test_a_difference_that_is_recorded_is_known() -> None:
    machine = changed(
        emulated("aarch64_neon"), "sdot", emit="{c} = vdotq_s32({c}, {a}, {a}); (void){b};"
    )
    (known,) = check_target(machine, 50, instruction="sdot", faults=[fault()]).findings
    assert (known.status, known.is_fault) == ("known wrong", False)
    assert known.text == "qemu-aarch64: it is off by one"
    for other in (fault(before="10"), fault(instruction="udot"), fault(tool="zig", before="0.1")):
        tested = check_target(machine, 50, instruction="sdot", faults=[other])
        assert [f.status for f in tested.findings] == ["wrong"]
        assert not tested.ok


def test_of_a_fault_that_says_what_is_computed_only_that_is_known() -> None:
    wrong = changed(
        emulated("aarch64_neon"), "sdot", emit="{c} = vdotq_s32({c}, {a}, {a});(void){b};"
    )
    instead = fault(computes="c[i] += s32(a[i, k]) * s32(a[i, k])")
    (known,) = check_target(wrong, 50, instruction="sdot", faults=[instead]).findings
    assert (known.status, known.text) == ("known wrong", "qemu-aarch64: it is off by one")
    other = fault(computes="c[i] += s32(b[i, k]) * s32(b[i, k])")
    (found,) = check_target(wrong, 50, instruction="sdot", faults=[other]).findings
    assert found.status == "wrong"
    right = emulated("aarch64_neon")
    (found,) = check_target(right, 50, instruction="sdot", faults=[instead]).findings
    assert found.status == "no longer wrong"


def test_an_instruction_is_seen_through_one_that_deviates() -> None:
    machine = changed(load_hardware("portable_c"), "c_load_s32", emit="{r} = {m}[0] ^ 5;")
    entry = machine.entry("c_load_s32")
    deviations = {}
    for body in ("r[] = m[] ^ 5", "r[] = m[] ^ 4"):
        deviation = deviation_of(entry, [fault(computes=body)])
        assert deviation is not None
        deviations = {"c_load_s32": deviation}
        names = ["c_load_s32", "c_add_s32"]
        findings = probe(machine, names, 50, deviations=deviations)
        expected = ["known wrong", "right"] if "5" in body else ["wrong", "wrong"]
        assert [f.status for f in findings] == expected
    assert deviation_of(entry, [fault()]) is None


@pytest.mark.parametrize(("within", "status"), [(1.5, "known wrong"), (0.5, "wrong")])
def test_floats_may_be_off_as_far_as_is_recorded(within: float, status: str) -> None:
    machine = changed(load_hardware("portable_c"), "c_round_f64", emit="{r} = rint({a}) + 1;")
    recorded = Fault.model_validate({**fault().model_dump(by_alias=True), "within": within})
    deviation = deviation_of(machine.entry("c_round_f64"), [recorded])
    assert deviation is not None
    (found,) = probe(machine, ["c_round_f64"], 50, deviations={"c_round_f64": deviation})
    assert found.status == status


def test_a_recorded_fault_that_does_not_show_is_told() -> None:
    tested = check_target(emulated("aarch64_neon"), 50, instruction="sdot", faults=[fault()])
    assert [f.status for f in tested.findings] == ["no longer wrong"]
    assert tested.ok


def test_recorded_faults_are_of_instructions_that_ship() -> None:
    assert recorded_faults() == faults_of((ROOT / "hwdesc/tools/faults.yaml").read_text())
    for one in recorded_faults():
        assert one.target in shipped_names()
        names = {
            n for e in load_hardware(one.target).entries for n in (e.name, e.instruction.generic)
        }
        assert one.instruction in names
        for entry in load_hardware(one.target).entries:
            if one.instruction in (entry.name, entry.instruction.generic):
                assert (deviation_of(entry, [one]) is not None) == one.is_exact


# --- the command ----------------------------------------------------------------------------------
def test_what_is_recorded_holds_for_what_extends_a_description(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    head = "format: 1\nname: mine\ntitle: mine\nextends: portable_c\nsource: none\n"
    path.write_text(head)
    recorded = fault(target="portable_c", instruction="c_max_f32")
    tools = [Needed("qemu-aarch64", "", "10.0", False)]

    def known(machine: Accelerator) -> list[Fault]:
        return known_faults(machine.entry("c_max_f32"), machine, tools, [recorded])

    assert known(load_hardware(str(path))) == [recorded]
    path.write_text(f"{head}change:\n  c_max_f32: {{latency: 9}}\n")
    assert not known(load_hardware(str(path)))


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(group, ["targets", "test", *arguments], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return int(done.return_value or 0), done.stdout


def test_the_command_tells_and_ends_with_4_where_something_differs(tmp_path: Path) -> None:
    text = (ROOT / "hwdesc" / "portable_c.yaml").read_text()
    wrong = text.replace('emit: "{r} = isamap_round_{T}(sqrt({a}));"', 'emit: "{r} = {a};"')
    assert wrong != text
    path = tmp_path / "mine.yaml"
    path.write_text(wrong.replace("name: portable_c", "name: mine"))
    options = ("--instruction", "c_sqrt", "--samples", "30")
    with pytest.raises(ToolError, match="not trusted"):
        run(str(path), *options)
    code, told = run(str(path), "--trust", *options)
    assert code == 4
    assert "mine: 6 instructions, 180 sets of operands" in told
    assert "c_sqrt_f32: wrong" in told
    code, told = run("portable_c", *options, "--json")
    assert code == 0
    (document,) = json.loads(told)
    assert document["ok"]
    assert {i["status"] for i in document["instructions"]} == {"right"}


def test_what_lies_in_scratchpads_is_brought_there_and_looked_at() -> None:
    machine = load_hardware("sw26010")
    names = ["product_f32", "mac_f64", "set_f32", "get_row_f32"]
    findings = found(machine, names, 10)
    assert {finding.status for finding in findings.values()} == {"right"}
    assert findings["get_row_f32"].combinations == 128
    emit = machine.entry("sub_f32").emit
    wrong = found(changed(machine, "add_f32", emit=emit), ["add_f32"], 10)["add_f32"]
    assert wrong.status == "wrong"
    # What computes too early, as nothing says that its operands come later, is wrong, too.
    assert machine.toolchain is not None
    assert machine.toolchain.tokens is not None
    mute = replace(machine.toolchain.tokens, post="(cpe_token){{0}} /* {unit} */")
    machine = replace(machine, toolchain=replace(machine.toolchain, tokens=mute))
    assert found(machine, ["add_f32"], 10)["add_f32"].status == "wrong"


def test_the_command_says_what_there_is_not() -> None:
    with pytest.raises(HardwareError, match="has no instruction 'nothing'"):
        run("portable_c", "--instruction", "nothing")
    with pytest.raises(ToolError, match="gemm16 has no toolchain"):
        run("gemm16")
    with pytest.raises(ToolError, match="portable_c executes it by code"):
        run("gemm16@portable_c")
