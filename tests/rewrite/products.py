"""Random sums of products, as texts, and the comparison of a rewriting with its original."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from isamap.interp.inputs import random_inputs
from isamap.interp.run import interpret
from isamap.ir.index import Index, const, var
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel
from isamap.rewrite.rule import Rewriting
from isamap.text.load import parse_module


@dataclass
class Drawn:
    """A kernel's text in the making."""

    sizes: dict[str, int]
    head: str = ""
    lines: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def text(self, statement: str, permissions: str = "") -> str:
        ranges = [f"for {v} in 0..{n}" for v, n in self.sizes.items() if v in self.used]
        body = "\n".join([*self.lines, *ranges, statement])
        return f"kernel random{self.head}{permissions} {{\n{body}\n}}\n"


@st.composite
def buffers(
    draw: st.DrawFn, drawn: Drawn, name: str, dtype: str, names: Sequence[str], more: str = ""
) -> str:
    """Declare a buffer whose indices use some variables; the access to it.

    Indices are permuted, strided, reversed, of two variables, padded.
    """
    rest = list(draw(st.permutations(names)))
    indices: list[Index] = []
    while rest:
        own, rest = rest[: (take := draw(st.integers(1, 2)))], rest[take:]
        index = const(0)
        for variable in own:
            index = index + draw(st.sampled_from([1, 1, 1, 2, 3, -1])) * var(variable)
        indices.append(index)
    padded = draw(st.integers(0, 2)) == 0
    shape = []
    for at, index in enumerate(indices):
        ends = index.bounds({v: (0, n - 1) for v, n in drawn.sizes.items()})
        assert ends is not None
        shift = draw(st.integers(-2, 1)) if padded else 0
        indices[at] = index - ends[0] + shift
        shape.append(ends[1] - ends[0] + 1 - (draw(st.integers(0, 1)) if padded and shift else 0))
    drawn.used |= set(names)
    pad = f" pad {draw(st.integers(-1 if dtype[0] != 'u' else 0, 3))}" if padded else ""
    role = draw(st.sampled_from(["in", "const"]))
    sizes = ", ".join(str(max(1, n)) for n in shape)
    drawn.lines.append(f"{role} {name} : {dtype}[{sizes}]{pad}{more}")
    return f"{name}[{', '.join(map(str, indices))}]"


@st.composite
def boxes(draw: st.DrawFn) -> Drawn:
    """Two variables of the target, two that are reduced."""
    return Drawn({v: draw(st.integers(1, 5)) for v in ("m", "n", "k", "r")})


def kernel_of(text: str) -> Kernel:
    """Return the kernel of a text."""
    (kernel,) = parse_module(text).kernels
    return kernel


def assert_valid(rewriting: Rewriting, original: Kernel) -> None:
    """Assert that the rewritten kernel prints, parses, and has the buffers that a caller sees."""
    (read,) = parse_module(print_kernel(rewriting.kernel)).kernels
    assert read.statements == rewriting.kernel.statements
    assert read.buffers == rewriting.kernel.buffers
    seen = [(b.name, b.role, b.dtype) for b in original.buffers if b.role != "local"]
    assert [(b.name, b.role, b.dtype) for b in read.buffers if b.role != "local"] == seen


def assert_equal(
    rewriting: Rewriting,
    original: Kernel,
    seed: int = 0,
    symbols: Mapping[str, int] | None = None,
) -> None:
    """Assert that the rewritten kernel is valid and computes the same, bit for bit."""
    assert_valid(rewriting, original)
    arrays = random_inputs(original, symbols, seed)
    expected = interpret(original, arrays, symbols)
    actual = interpret(rewriting.kernel, arrays, symbols)
    for buffer in original.buffers:
        if buffer.role in ("out", "inout"):
            np.testing.assert_array_equal(actual[buffer.name], expected[buffer.name])
