"""Texts made to break the reader: it answers soon, with a message, and never crashes."""

import pytest

from isamap.diagnostics import IsamapError
from isamap.text.load import parse_module

KERNEL = "kernel k {{\n  in X : f32[4]\n  out Y : f32[4]\n  Y[i] = {}\n}}\n"
LOOPS = "program p {{ in A : f32[1] {} k(A) {} }}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (KERNEL.format("(" * 20000 + "X[i]" + ")" * 20000), "E010"),
        (KERNEL.format("(" * 20000), "E010"),
        (KERNEL.format(" + ".join(["X[i]"] * 20000)), "E010"),
        (KERNEL.format("-" * 20000 + "X[i]"), "E010"),
        (KERNEL.format("X[" * 2000 + "i" + "]" * 2000), "E010"),
        (KERNEL.format("max(" * 2000 + "X[i]" + ", 1)" * 2000), "E010"),
        (LOOPS.format("for t in 0..1 {" * 2000, "}" * 2000), "E010"),
        (KERNEL.format("1" * 10000), "E006"),
        (KERNEL.format("a" * 10000), "E006"),
        (KERNEL.format("1e9999"), "E016"),
        (KERNEL.format("X[9999999999999999999999]"), "E016"),
        (KERNEL.format("X[4611686018427387904*i]"), "E021"),
        (KERNEL.format("X[4611686018427387904*4*i]"), "E016"),
        ("$" * (1 << 19), "E005"),
        ("[" * 20000, "E007"),
        ("{" * 20000, "E007"),
        ("}" * 20000, "E009"),
        ("kernel " * 20000, "E011"),
        ("kernel k {" * 5000, "E011"),
        ("\0" * 1000, "E005"),
        ("a" * ((1 << 20) + 1), "E003"),
        ('include "' + "a" * 1000, "E005"),
        ("kernel k {\nin X : f32[" + ", ".join(["2"] * 60) + "]\n}", "E010"),
        ("kernel k { out Y : f32[]\n" + "".join(f"for i{n} in 0..2\n" for n in range(40))
         + f"Y[] += f32({' + '.join(f'i{n}' for n in range(40))})\n}}", "E010"),
        ("instruction m<" + ", ".join(f"T{n} = s4 s8 s16" for n in range(12))
         + "> {\nout r : s8[] @ reg\nr[] = 1 }", "E039"),
    ],
    ids=lambda value: value if len(value) == 4 else "",
)  # fmt: skip
def test_a_hostile_text_is_refused(text: str, code: str) -> None:
    with pytest.raises(IsamapError) as caught:
        parse_module(text)
    assert code in [d.code for d in caught.value.diagnostics]
    assert len(str(caught.value)) < 50_000


def test_many_statements_are_read() -> None:
    text = "kernel k {\n  in X : f32[4]\n  out Y : f32[4]\n" + "  Y[i] = X[i]\n" * 1000 + "}\n"
    assert len(parse_module(text).kernels[0].statements) == 1000


def test_sums_of_modest_length_are_read() -> None:
    parse_module(KERNEL.format(" + ".join(["X[i]"] * 90)))
