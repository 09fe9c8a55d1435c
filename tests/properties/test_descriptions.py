"""Descriptions: random machines load, and no bytes crash the loader."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import IsamapError
from isamap.hw.load import load_hardware
from isamap.ir.printer import print_instruction
from isamap.text.load import parse_module
from tests.profiles import examples
from tests.properties.machines import descriptions, load

SPLINTERS = (
    *(
        ":",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "|",
        ">",
        "&a ",
        "*a",
        "!!int ",
        "? ",
        "#",
        "'",
        '"',
        "%",
        "@",
    ),
    *(
        "\n",
        "\t",
        "\n---\n",
        "\0",
        "\ufeff",
        "é",
        "<<: *a",
        "null",
        "on",
        "1e3",
        "-1",
        "0",
        "~",
        "x",
    ),
    *(
        "48 KiB",
        "1 GHz",
        "format: 2",
        "extends: x86_avx2",
        "semantics: |",
        "instruction i {",
        "{m}",
    ),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A description with a few stretches cut, doubled or replaced by splinters of YAML."""
    text = draw(descriptions())
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(st.sampled_from(["", text[start:stop] * 2]) | st.sampled_from(SPLINTERS))
        text = text[:start] + middle + text[stop:]
    data = text.encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=3)) + data[at:]
    return data


def check_faults(error: IsamapError) -> None:
    assert error.diagnostics
    for diagnostic in error.diagnostics:
        assert diagnostic.message
        assert diagnostic.severity == "note" or diagnostic.code
        assert diagnostic.render()


def answers(data: bytes) -> None:
    """Load a description: it is right, or every fault has a code and a message."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "machine.yaml"
        path.write_bytes(data)
        try:
            machine = load_hardware(str(path))
        except IsamapError as error:
            check_faults(error)
        else:
            assert machine.entries
            assert not machine.trusted


@examples(0.3)
@given(descriptions())
def test_random_machines_load(text: str) -> None:
    machine = load(text)
    for entry in machine.entries:
        printed = print_instruction(entry.instruction)
        if entry.instruction.name.startswith(("compute", "load", "store", "set", "broadcast")):
            (parsed,) = parse_module(printed).instructions
            assert parsed.statements == entry.instruction.statements


@examples(0.5)
@given(damaged())
def test_damaged_descriptions_get_an_answer(data: bytes) -> None:
    answers(data)


@examples(0.5)
@given(st.binary(max_size=100))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    answers(data)
