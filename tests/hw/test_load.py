"""Loading: what ships, what is inherited, what is trusted, and that the published schema holds."""

import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from isamap.diagnostics import HardwareError
from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware, shipped_names
from isamap.hw.schema import json_schema
from isamap.ir.dtype import DTYPES
from isamap.ir.nodes import Expr, Op
from isamap.ir.operations import OPERATIONS

ROOT = Path(__file__).parents[2]

BASE = """\
format: 1
name: base
clock: 2 GHz
cores: 4
features: [one]
units: {a: 1, b: 2}
storages:
  v: {kind: registers, count: 4, bits: 128, types: {f32: old}}
  w: {kind: registers, count: 8, bits: 64}
  near: {kind: cache, size: 1 KiB}
  memory: {kind: memory, read: 8 B/cycle}
instructions:
  - semantics: |
      instruction load { in m : f32[4] @ memory    out r : f32[4] @ v    r[i] = m[i] }
    emit: "{r} = load({m});"
    throughput: 1
    latency: 3
    units: a
  - semantics: |
      instruction store { in r : f32[4] @ v    out m : f32[4] @ memory    m[i] = r[i] }
    emit: "store({m}, {r});"
    throughput: 1/2
    latency: 3
toolchain:
  compiler: [cc, -pipe]
  flags: [-O1]
  headers: [one.h]
  prelude: |
    int one;
  runner: [emulate, --fast]
"""

CHILD = """\
format: 1
name: child
title: adds to base
extends: base.yaml
features: [two]
units: {b: 3, c: 1}
storages:
  x: {kind: registers, count: 2, bits: 32}
  v: {kind: registers, count: 16, bits: 128, types: {f32: new}}
  far: {kind: cache, size: 1 MiB}
instructions:
  - semantics: |
      instruction load { in m : f32[4] @ memory    out r : f32[4] @ v    r[i] = m[i] }
    emit: "{r} = quick({m});"
    throughput: 0.25
    latency: 1
    units: [c, b]
toolchain:
  flags: -O3
  headers: [two.h, one.h]
  prelude: |
    int two;
  runner: []
"""


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def child(tmp_path: Path) -> Accelerator:
    write(tmp_path, base=BASE, child=CHILD)
    return load_hardware(str(tmp_path / "child.yaml"))


def test_storages_are_merged_nearest_first(child: Accelerator) -> None:
    names = [storage.name for storage in child.storages]
    assert names == ["x", "v", "w", "near", "far", "memory"]
    assert child.storage("v").count == 16
    assert child.storage("v").types == {"f32": "new"}
    assert child.storage("memory").read == 8


def test_an_inherited_cache_can_be_left_out(tmp_path: Path) -> None:
    lacking = CHILD.replace("extends: base.yaml\n", "extends: base.yaml\nwithout: [near]\n")
    third = "format: 1\nname: third\nextends: child.yaml\nwithout: [far]\n"
    again = third + "storages:\n  near: {kind: cache, size: 2 KiB}\n"
    write(tmp_path, base=BASE, child=lacking, third=third, again=again)
    names = {
        name: [s.name for s in load_hardware(str(tmp_path / f"{name}.yaml")).storages]
        for name in ("child", "third", "again")
    }
    assert names["child"] == ["x", "v", "w", "far", "memory"]
    assert names["third"] == ["x", "v", "w", "memory"]
    assert names["again"] == ["x", "v", "w", "near", "memory"]


@pytest.mark.parametrize("name", ["w", "memory", "far"])
def test_only_inherited_caches_can_be_left_out(tmp_path: Path, name: str) -> None:
    lacking = CHILD.replace("extends: base.yaml\n", f"extends: base.yaml\nwithout: [{name}]\n")
    write(tmp_path, base=BASE, child=lacking)
    with pytest.raises(HardwareError, match=f"no instruction or cache '{name}' is inherited"):
        load_hardware(str(tmp_path / "child.yaml"))


def test_a_type_is_added_to_those_of_the_inherited_registers(tmp_path: Path) -> None:
    added = CHILD.replace("types: {f32: new}", "types: {s32: more}")
    write(tmp_path, base=BASE, child=added)
    child = load_hardware(str(tmp_path / "child.yaml"))
    assert child.storage("v").types == {"f32": "old", "s32": "more"}


def test_an_own_instruction_replaces_the_inherited_one(child: Accelerator) -> None:
    assert [entry.name for entry in child.entries] == ["load", "store"]
    load, store = child.entries
    assert load.emit == "{r} = quick({m});"
    # A quarter of a cycle of the one c and of one of three b.
    assert load.units == {"c": Fraction(1, 4), "b": Fraction(1, 12)}
    assert load.throughput == Fraction(1, 4)
    assert store.throughput == Fraction(1, 2)


def test_units_features_and_figures_are_merged(child: Accelerator) -> None:
    assert {unit.name: unit.count for unit in child.units} == {"a": 1, "b": 3, "c": 1}
    assert child.features == ("one", "two")
    assert child.clock == 2 * 10**9
    assert (child.cores, child.issue) == (4, 1)
    assert (child.name, child.title) == ("child", "adds to base")


def test_flags_headers_and_prelude_add_up_and_the_rest_replaces(child: Accelerator) -> None:
    toolchain = child.toolchain
    assert toolchain is not None
    assert toolchain.compiler == ("cc", "-pipe")
    assert toolchain.flags == ("-O1", "-O3")
    assert toolchain.headers == ("one.h", "two.h")
    assert toolchain.prelude == "int one;\nint two;"
    assert toolchain.runner == ()
    assert toolchain.shared == ("-shared", "-fPIC")


def test_errors_of_an_extended_file_are_placed_in_it(tmp_path: Path) -> None:
    write(tmp_path, base=BASE.replace("count: 8", "count: many"), child=CHILD)
    with pytest.raises(HardwareError, match=r"base\.yaml:9:31: error\[E107\]"):
        load_hardware(str(tmp_path / "child.yaml"))


def test_an_override_that_breaks_what_is_inherited_is_found(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child=CHILD.replace("bits: 128", "bits: 64"))
    with pytest.raises(HardwareError) as error:
        load_hardware(str(tmp_path / "child.yaml"))
    places = {
        (d.code, d.span.source.name.rsplit("/", 1)[-1])
        for d in error.value.diagnostics
        if d.span is not None
    }
    assert places == {("E112", "base.yaml"), ("E112", "child.yaml")}


def test_only_shipped_files_and_trusted_ones_are_trusted(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, mine="format: 1\nname: mine\nextends: portable_c\n")
    assert not load_hardware(str(tmp_path / "base.yaml")).trusted
    assert not load_hardware(str(tmp_path / "mine.yaml")).trusted
    assert load_hardware(str(tmp_path / "mine.yaml"), trust=True).trusted
    assert load_hardware("gemm16").trusted
    assert load_hardware(str(ROOT / "hwdesc" / "gemm16.yaml")).trusted


def test_a_file_named_as_a_shipped_one_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, gemm16=BASE)
    monkeypatch.chdir(tmp_path)
    assert load_hardware("gemm16").name == "gemm16"
    other = load_hardware("gemm16.yaml")
    assert (other.name, other.trusted) == ("base", False)


def test_the_digest_follows_the_content_alone(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        write(tmp_path, base=text)
        return load_hardware(str(tmp_path / "base.yaml")).digest

    assert digest(BASE) == digest("# a comment\n" + BASE.replace("clock: 2", "clock:   2"))
    assert digest(BASE) != digest(BASE.replace("latency: 3", "latency: 4"))
    assert digest(BASE) != digest(BASE.replace("-O1", "-O2"))


def test_the_digest_covers_what_is_extended(tmp_path: Path) -> None:
    write(tmp_path, base=BASE, child=CHILD)
    before = load_hardware(str(tmp_path / "child.yaml")).digest
    write(tmp_path, base=BASE.replace("int one", "int uno"))
    assert load_hardware(str(tmp_path / "child.yaml")).digest != before


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_descriptions_load_and_fit_the_schema(name: str) -> None:
    accelerator = load_hardware(name)
    assert accelerator.name == name
    assert accelerator.title
    assert all(entry.source for entry in accelerator.entries)
    text = (ROOT / "hwdesc" / f"{name}.yaml").read_text(encoding="utf-8")
    jsonschema.validate(yaml.safe_load(text), json_schema())


@pytest.mark.parametrize("name", ["x86_amx", "aarch64_sve2:VL=512", "gemmini", "tpp@portable_c"])
def test_without_instructions_all_else_is_the_same(name: str) -> None:
    whole, rest = load_hardware(name), load_hardware(name, instructions=False)
    assert whole.entries
    assert rest.entries == ()
    known = {f.name for f in fields(Accelerator)} - {"entries", "server"}
    assert {f: getattr(rest, f) for f in known} == {f: getattr(whole, f) for f in known}


def test_without_instructions_their_faults_are_not_told(tmp_path: Path) -> None:
    text = """\
format: 1
name: small
clock: 1 GHz
storages: {v: {kind: registers, count: 4, bits: 128}}
"""
    path = tmp_path / "small.yaml"
    path.write_text(f"{text}instructions: []\n")
    with pytest.raises(HardwareError, match="no instructions"):
        load_hardware(str(path))
    assert load_hardware(str(path), instructions=False).name == "small"
    path.write_text(text.replace("count: 4, ", "") + "instructions: []\n")
    with pytest.raises(HardwareError, match="'count' is missing"):
        load_hardware(str(path), instructions=False)


def test_registers_within_others_count_as_those() -> None:
    machine = load_hardware("x86_avx2")
    files = {
        s.name: (file.name, each)
        for s in machine.storages
        if s.kind == "registers"
        for file, each in [machine.register_file(s)]
    }
    assert files == {
        "ymm": ("ymm", 1),
        "xmm": ("ymm", 1),
        "ymm2": ("ymm", 2),
        "mask64": ("ymm", 1),
        "mask": ("ymm", 1),
        "mask16": ("ymm", 1),
        "mask8": ("ymm", 1),
        "reg": ("reg", 1),
    }


def test_another_compiler_has_flags_of_its_own() -> None:
    inherited, other = (load_hardware(name).toolchain for name in ("x86_avx2", "aarch64_neon"))
    assert inherited is not None
    assert other is not None
    assert {"-fno-predictive-commoning", "-mavx2"} <= set(inherited.flags)
    assert "-fno-predictive-commoning" not in other.flags
    assert other.compiler == ("zig", "cc")
    assert "isamap_end" in other.start
    assert not inherited.start


def test_the_published_schema_is_fresh(request: pytest.FixtureRequest) -> None:
    text = json.dumps(json_schema(), indent=2) + "\n"
    path = ROOT / "hwdesc" / "schema.json"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "run pytest --update-golden"


@pytest.mark.parametrize(
    "damage",
    [
        {"clok": "1 GHz"},
        {"clock": "3 GB"},
        {"format": 2},
        {"storages": {"v": {"kind": "registers", "count": 0}}},
        {"storages": {"v": {"kind": "disk"}}},
        {"units": {"a": None}},
        {"instructions": [{"semantics": "x"}]},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(damage: dict[str, Any]) -> None:
    good = yaml.safe_load(BASE)
    jsonschema.validate(good, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **damage}, json_schema())


def test_portable_c_has_every_operation_on_every_type_it_applies_to() -> None:
    entries = load_hardware("portable_c").entries
    have = {signature for entry in entries if (signature := _signature(entry.instruction))}
    for operation in OPERATIONS.values():
        for dtype in DTYPES.values():
            for types in _applications(operation.name, dtype.name):
                assert types in have, f"no instruction computes {types}"


def _applications(name: str, dtype: str) -> list[tuple[str, ...]]:
    """Return what must exist of an operation with a result, or arguments, of a type."""
    operation, kind = OPERATIONS[name], DTYPES[dtype].kind
    match operation.rule:
        case "same":
            # Of bool, the language has only these.
            return [(name, dtype)] if kind != "bool" or name in ("min", "max") else []
        case "float":
            return [(name, dtype)] if kind == "float" else []
        case "integer":
            return [(name, dtype)] if kind in ("signed", "unsigned") else []
        case "bits":
            return [(name, dtype)] if kind != "float" else []
        case "compare" | "select":
            return [(name, dtype)]
        case "cast":
            return [(name, source, dtype) for source in DTYPES if source != dtype]


def _signature(instruction: Any) -> tuple[str, ...] | None:
    value: Expr = instruction.statements[0].value
    if not isinstance(value, Op) or instruction.statements[0].reduction != "=":
        return None
    if value.op in ("cast", "sat"):
        return (value.op, value.args[0].dtype.name, value.dtype.name)
    return (value.op, value.args[-1].dtype.name)


def test_every_field_is_documented() -> None:
    page = (ROOT / "hwdesc" / "README.md").read_text(encoding="utf-8")
    schema = json_schema()
    parts = [schema, *schema["$defs"].values()]
    for name in {name for part in parts for name in part["properties"]}:
        assert f"`{name}`" in page, f"hwdesc/README.md does not mention '{name}'"


def test_a_unit_may_be_another_one(tmp_path: Path) -> None:
    text = CHILD.replace("units: {b: 3, c: 1}", "units: {b: 3, c: 1}\nmerge: {c: b}")
    write(tmp_path, base=BASE, child=text)
    found = load_hardware(str(tmp_path / "child.yaml"))
    assert {unit.name: unit.count for unit in found.units} == {"a": 1, "b": 3}
    # A quarter of a cycle of one of three.
    assert found.entry("load").units == {"b": Fraction(1, 12)}
    assert found.entry("load").throughput == Fraction(1, 12)


def test_units_are_merged_through_all_descriptions(tmp_path: Path) -> None:
    write(tmp_path, base=BASE.replace("instructions:", "merge: {b: a}\ninstructions:", 1))
    child = CHILD.replace("units: {b: 3, c: 1}", "units: {b: 3, c: 1}\nmerge: {MERGE}")
    write(tmp_path, child=child.replace("MERGE", "c: b"))
    found = load_hardware(str(tmp_path / "child.yaml"))
    assert [unit.name for unit in found.units] == ["a"]
    assert found.entry("load").units == {"a": Fraction(1, 4)}
    write(tmp_path, child=child.replace("MERGE", "a: b"))
    with pytest.raises(HardwareError, match="merged in a circle"):
        load_hardware(str(tmp_path / "child.yaml"))


@pytest.mark.parametrize(
    ("merge", "told"),
    [
        ("{d: b}", "unknown unit 'd'"),
        ("{c: d}", "unknown unit 'd'"),
        ("{b: c, c: a}", "'c' is merged into another unit itself"),
        ("{c: c}", "'c' is merged into another unit itself"),
    ],
)
def test_units_are_merged_into_known_ones(tmp_path: Path, merge: str, told: str) -> None:
    text = CHILD.replace("units: {b: 3, c: 1}", f"units: {{b: 3, c: 1}}\nmerge: {merge}")
    write(tmp_path, base=BASE, child=text)
    with pytest.raises(HardwareError, match=told):
        load_hardware(str(tmp_path / "child.yaml"))
