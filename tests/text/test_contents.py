"""Tables: constant contents of buffers, and their places in errors."""

import numpy as np
import pytest

from isamap.diagnostics import IsamapError
from isamap.interp.call import execute
from isamap.interp.run import interpret
from isamap.ir.printer import print_module
from isamap.text.load import parse_module

TAPS = """kernel taps {
  in    X : f32[7]
  const W : f32[3] = [0.25, 0.5,
                      -0.25]
  const S : s32[2, 2] = [[1, -2], [3, 4]]
  const one : f32[] = 1
  out   Y : f32[5]
  out   Z : s32[2]
  Y[i] += X[i + r] * W[r] * one[]
  Z[j] += S[j, k]
}
"""


def test_a_table_is_no_input_and_holds_its_numbers() -> None:
    (kernel,) = parse_module(TAPS).kernels
    x = np.arange(7, dtype=np.float32)
    found = interpret(kernel, {"X": x})
    wanted = 0.25 * x[:5] + 0.5 * x[1:6] - 0.25 * x[2:]
    np.testing.assert_array_equal(found["Y"], wanted)
    assert found["Z"].tolist() == [-1, 7]


def test_a_table_is_printed_as_it_was_read() -> None:
    module = parse_module(TAPS)
    assert parse_module(print_module(module)) == module


def test_an_index_read_from_a_table_is_inside_by_its_elements() -> None:
    text = """kernel k {
      in X : f32[4]  const I : s32[3] = [3, 0, LAST]  out Y : f32[3]
      Y[i] = X[I[i]]
    }"""
    (kernel,) = parse_module(text.replace("LAST", "1")).kernels
    found = interpret(kernel, {"X": np.arange(4, dtype=np.float32)})
    assert found["Y"].tolist() == [3, 0, 1]
    with pytest.raises(IsamapError) as caught:
        parse_module(text.replace("LAST", "4"))
    assert [d.code for d in caught.value.diagnostics] == ["E021"]


def test_an_instruction_holds_its_table_and_locals_itself() -> None:
    text = """instruction weigh {
      in a : s32[4] @ v    const w : s32[4] = [1, -1, 2, 3]    local t : s32[]    out r : s32[] @ v
      t[] += a[i] * w[i]
      r[] = t[] + 1
    }"""
    (instruction,) = parse_module(text).instructions
    result = np.zeros((), np.int32)
    execute(instruction, {"a": np.array([5, 6, 7, 8], np.int32), "r": result}, {})
    assert int(result) == 5 - 6 + 14 + 24 + 1


@pytest.mark.parametrize(
    ("declaration", "code", "excerpt"),
    [
        ("const W : f32[3] = [1, 2]", "E048", "[1, 2]"),
        ("const W : f32[2, 2] = [[1, 2], [3]]", "E048", "[3]"),
        ("const W : f32[2, 2] = [1, [2, 3]]", "E048", "1"),
        ("const W : f32[] = [1]", "E048", "[1]"),
        ("const W : f32[N] = [1]", "E048", "W"),
        ("const W : s8[2] = [1, 300]", "E016", "300"),
        ("in W : f32[2] = [1, 2]", "E037", "[1, 2]"),
        ("local W : f32[2] = [1, 2]", "E037", "[1, 2]"),
        ("const W : f32[2] values 0 .. 1 = [0, 1]", "E037", "values 0 .. 1"),
        ("const W : f32[2] = [0, 1", "E008", ""),
    ],
)
def test_what_a_table_cannot_hold_is_told_at_its_place(
    declaration: str, code: str, excerpt: str
) -> None:
    text = f"kernel k(N) {{ {declaration}\n in X : f32[4]  out Y : f32[4]\n Y[i] = X[i] }}"
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    first = caught.value.diagnostics[0]
    assert first.code == code
    assert first.span is not None
    line = text.splitlines()[first.span.line - 1]
    if excerpt:
        assert line[first.span.column - 1 : first.span.end_column - 1] == excerpt


def test_a_table_cannot_be_written() -> None:
    text = "kernel k { in X : f32[2]  const W : f32[2] = [0, 1]\n W[i] = X[i] }"
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    assert "E026" in [d.code for d in caught.value.diagnostics]
