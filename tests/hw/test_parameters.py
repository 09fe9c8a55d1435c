"""Parameters: numbers of a machine that are chosen when its description is loaded."""

from fractions import Fraction
from pathlib import Path

import pytest

from isamap.diagnostics import HardwareError
from isamap.hw.load import load_hardware
from isamap.hw.parameters import fill, split_name
from isamap.hw.units import parse_number, parse_whole

TEXT = """\
format: 1
name: long
title: vectors of {VL} bits
clock: 1 GHz
parameters:
  VL: {what: bits of a vector, default: 256, values: [128, 256, 512]}
  PIPES: {default: 2, values: [1, 2]}
units: {vec: PIPES}
storages:
  v:
    kind: registers
    count: 32
    bits: VL
    types: {f32: "floats_{VL}"}
    permit: "bits() >= {VL} && {{{VL}}}"
  memory: {kind: memory, read: VL/16 B/cycle}
instructions:
  - semantics: |
      instruction load(n in 1..VL // 32 + 1) {
        in m : f32[n] @ memory pad 0    out r : f32[VL // 32] @ v
        for i in 0..VL // 32
        r[i] = m[i]
      }
    emit: "{r} = load_{VL}({m}, {n}); /* {{VL}} */"
    throughput: VL/256
    latency: 2 * VL / 128
    units: vec
toolchain:
  compiler: cc
  flags: "-mvl={VL}"
  prelude: |
    typedef float floats_{VL}[{VL} / 32]; /* {OTHER} */
  runner: [emulate, "vl={VL}"]
"""
CHILD = """\
format: 1
name: longer
extends: long.yaml
parameters:
  VL: {default: 512, values: [512, 1024]}
storages:
  w: {kind: registers, count: VL/64, bits: VL/PIPES}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "long.yaml").write_text(TEXT)
    (tmp_path / "longer.yaml").write_text(CHILD)
    return str(tmp_path / "long.yaml")


def test_a_parameter_is_known_everywhere(path: str) -> None:
    machine = load_hardware(f"{path}:VL=512")
    assert machine.name == "long:VL=512"
    assert machine.title == "vectors of 512 bits"
    assert [(p.name, p.value, p.default) for p in machine.parameters] == [
        ("VL", 512, 256),
        ("PIPES", 2, 2),
    ]
    v, memory = machine.storage("v"), machine.storage("memory")
    assert (v.bits, v.types, v.permit) == (
        512,
        {"f32": "floats_512"},
        "bits() >= 512 && {{512}}",
    )
    assert memory.read == 32
    (entry,) = machine.entries
    assert entry.instruction.extents[0].range == (1, 17)
    assert [str(extent) for extent in entry.instruction.operand("r").shape] == ["16"]
    assert (entry.throughput, entry.latency) == (Fraction(1), Fraction(8))
    assert entry.emit == "{r} = load_512({m}, {n}); /* {{VL}} */"
    assert machine.toolchain is not None
    assert machine.toolchain.flags == ("-mvl=512",)
    assert machine.toolchain.runner == ("emulate", "vl=512")
    assert machine.toolchain.prelude == "typedef float floats_512[512 / 32]; /* {OTHER} */"


def test_without_a_choice_there_is_the_default(path: str) -> None:
    machine = load_hardware(path)
    assert (machine.name, machine.storage("v").bits) == ("long", 256)
    same, other = load_hardware(f"{path}:VL=256,PIPES=2"), load_hardware(f"{path}:PIPES=1")
    assert (same.name, same.digest) == (machine.name, machine.digest)
    assert (other.name, other.digest == machine.digest) == ("long:PIPES=1", False)
    assert other.units[0].count == 1


def test_parameters_are_inherited_and_may_be_declared_again(path: str) -> None:
    longer = path.replace("long.yaml", "longer.yaml")
    machine = load_hardware(longer)
    assert (machine.storage("w").count, machine.storage("w").bits) == (8, 256)
    assert machine.storage("v").bits == 512
    assert load_hardware(f"{longer}:VL=1024").storage("v").bits == 1024
    with pytest.raises(HardwareError, match="VL cannot be 256") as caught:
        load_hardware(f"{longer}:VL=256")
    assert caught.value.diagnostics[0].hint == "it is one of 512, 1024"


def test_what_a_machine_lacks_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "less.yaml").write_text(
        "format: 1\nname: less\nextends: portable_c\nwithout: [c_mac, c_add_f32]\n"
    )
    entries = {entry.name for entry in load_hardware(str(tmp_path / "less.yaml")).entries}
    everything = {entry.name for entry in load_hardware("portable_c").entries}
    assert {name for name in everything - entries if not name.startswith("c_mac_")} == {"c_add_f32"}
    assert "c_mac_s8" in everything - entries


def test_what_there_is_not_cannot_be_chosen(path: str) -> None:
    with pytest.raises(HardwareError, match="no parameter 'LV'") as caught:
        load_hardware(f"{path}:LV=1")
    assert caught.value.diagnostics[0].hint == "its parameters are: VL, PIPES"
    with pytest.raises(HardwareError, match="no parameter 'N'"):
        load_hardware("portable_c:N=1")


def test_names_with_colons_are_names() -> None:
    assert split_name("a:b.yaml") == ("a:b.yaml", {})
    assert split_name("a:b.yaml:N=3,M=4") == ("a:b.yaml", {"N": 3, "M": 4})
    assert split_name("N=3") == ("N=3", {})


def test_numbers_are_products_and_quotients() -> None:
    assert parse_number("2*3/4") == Fraction(3, 2)
    assert parse_number("-1/4 * 2") == Fraction(-1, 2)
    assert parse_whole("512*512/32") == 8192


def test_only_names_of_parameters_are_filled_in() -> None:
    assert fill("{N} {{N}} {M} {N", {"N": 3}) == "3 {{N}} {M} {N"
