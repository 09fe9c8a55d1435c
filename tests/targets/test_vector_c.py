"""Vectors of C: what they widen, and what is told of a load that reads too much."""

from dataclasses import replace

from isamap.hw.load import load_hardware
from isamap.targets.probe.probe import probe


def test_half_floats_of_every_kind_are_widened() -> None:
    names = ["v_load_f32_f16", "v_load_f32_first_f16", "v_load_all_f32_f16"]
    findings = probe(load_hardware("vector_c"), names, 2000)
    assert [(f.name, f.status) for f in findings] == [(name, "right") for name in names]


def test_a_load_beyond_its_operand_is_asked_whether_it_is_one() -> None:
    machine = load_hardware("vector_c")
    name, emit = "v_load_first_f32", "{r} = *(const isamap_u_f32 *){m}; (void){n};"
    entries = tuple(replace(e, emit=emit) if e.name == name else e for e in machine.entries)
    (finding,) = probe(replace(machine, entries=entries), [name], 50)
    assert finding.status == "wrong"
    assert finding.text.endswith("(SIGSEGV); does it read or write beyond an operand?")
