"""Text: printing and parsing are inverse, and no text crashes the parser."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from isamap.diagnostics import IsamapError
from isamap.ir.nodes import Instruction, Kernel
from isamap.ir.printer import print_instruction, print_kernel, print_module
from isamap.text.load import parse_module
from tests.properties.kernels import Case, cases
from tests.strategies import instructions, kernels

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.ir"))
TEXTS = tuple(path.read_text(encoding="utf-8") for path in EXAMPLES)
SPLINTERS = (
    *("{", "}", "[", "]", "(", ")", ",", ":", "..", "@", "=", "+=", "max=", "==", "//", "%", "~"),
    *("in", "const", "out", "inout", "local", "for", "pad", "values", "permit", "no", "kernel"),
    *("instruction", "program", "include", '"', "#", "\n", "\t", "\0", "\ufeff", "é", "\U0001f600"),
    *("f32", "s4", "bool", "inf", "nan", "-1", "1e999", "9" * 50, "0x1F", "09", ".5", "1.", "2w"),
    *("X[0]", "X[", "exp(", "sat[u8](", "select(", "f32(", "99999999999", "-", "h", "isamap 99"),
)


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with a few stretches cut, doubled, moved or replaced by splinters of the language."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(
            st.sampled_from(["", text[start:stop] * 2])
            | st.sampled_from(SPLINTERS)
            | st.text(max_size=4)
        )
        text = text[:start] + middle + text[stop:]
    return text


def check_faults(error: IsamapError) -> None:
    assert error.diagnostics
    for diagnostic in error.diagnostics:
        assert diagnostic.message
        assert diagnostic.severity == "note" or diagnostic.code
        assert diagnostic.render()


def answers(text: str) -> None:
    """Parse a text: it is right, or every fault has a code, a message and a place."""
    try:
        module = parse_module(text)
    except IsamapError as error:
        check_faults(error)
    else:
        assert parse_module(print_module(module)) == module


@given(kernels())
def test_printed_kernels_parse_to_the_same(kernel: Kernel) -> None:
    assert parse_module(print_kernel(kernel)).kernels == (kernel,)


@given(instructions())
def test_printed_instructions_parse_to_the_same(instruction: Instruction) -> None:
    assert parse_module(print_instruction(instruction)).instructions == (instruction,)


@given(cases())
def test_parsed_texts_print_to_themselves(case: Case) -> None:
    kernel = case.load()
    assert parse_module(print_kernel(kernel)).kernels == (kernel,)


@given(mutated(st.sampled_from(TEXTS)))
def test_mutated_examples_get_an_answer(text: str) -> None:
    answers(text)


@given(mutated(cases().map(lambda case: case.text)))
def test_mutated_kernels_get_an_answer(text: str) -> None:
    answers(text)


@given(st.text(max_size=200))
def test_any_text_gets_an_answer(text: str) -> None:
    answers(text)
