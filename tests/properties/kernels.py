"""Random kernels as text, of the kinds that instructions are searched for in.

A kernel has one reduction or element-wise statement over up to four variables, with permuted,
shifted, strided, reversed and windowed indices, padding, remainders, and perhaps sizes that are
symbols; sometimes a second statement works on its result.  Inputs may be constants.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from isamap.ir.nodes import Kernel
from isamap.text.load import parse_module
from tests.properties.machines import Kind, Tail, binary, cast, descriptions, kinds, tails

NAMES = ("h", "w", "k", "c")


@dataclass(frozen=True, slots=True)
class Dimension:
    """An index expression, the size of its dimension, and whether it may leave it."""

    index: str
    size: str
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel's text, and values for those of its extents that are symbols."""

    text: str
    symbols: tuple[tuple[str, int], ...]

    def load(self) -> Kernel:
        """Return the kernel."""
        (kernel,) = parse_module(self.text).kernels
        return kernel


@st.composite
def _dimensions(
    draw: st.DrawFn, variables: tuple[str, ...], sizes: dict[str, str], composite: bool
) -> list[Dimension]:
    """Index expressions that use all of ``variables``, some two at a time."""
    left = list(draw(st.permutations(variables)))
    found = []
    while left:
        v = left.pop()
        kind = draw(st.integers(0, 7)) if composite else 7
        if kind <= 1 and left:
            u = left.pop()
            scale, offset = draw(st.integers(1, 2)), draw(st.integers(0, 2))
            index = f"{scale}*{v} + {u} - {offset}" if offset else f"{scale}*{v} + {u}"
            size = f"{scale}*{sizes[v]} + {sizes[u]}"
            found.append(Dimension(index, size, offset > 0))
        elif kind == 2:
            found.append(Dimension(f"{sizes[v]} - 1 - {v}", sizes[v]))
        elif kind == 3:
            found.append(Dimension(f"2*{v} + 1", f"2*{sizes[v]}"))
        elif kind == 4:
            found.append(Dimension(f"{v} - 1", sizes[v], True))
        else:
            found.append(Dimension(v, sizes[v]))
    return found


def _access(buffer: str, dimensions: list[Dimension]) -> str:
    return f"{buffer}[{', '.join(d.index for d in dimensions)}]"


def _declaration(role: str, buffer: str, dtype: str, dimensions: list[Dimension]) -> str:
    pad = " pad 0" if any(d.padded for d in dimensions) else ""
    return f"  {role} {buffer} : {dtype}[{', '.join(d.size for d in dimensions)}]{pad}\n"


@st.composite
def cases(draw: st.DrawFn, kind: Kind | None = None, tail: Tail = Tail()) -> Case:  # noqa: B008
    """A kernel of a kind (any by default) whose every access is in bounds, or reads padding.

    What follows its first statement is mostly ``tail``, if there is one.
    """
    kind = kind or draw(kinds())
    types, reduction, op = kind.types, kind.reduction, kind.op
    variables = NAMES[: draw(st.integers(1, 4))]
    extents = {v: draw(st.integers(1, 7)) for v in variables}
    symbols = {v for v in variables if draw(st.integers(0, 5)) == 0}
    sizes = {v: v.upper() if v in symbols else str(extents[v]) for v in variables}
    count = draw(st.integers(0, len(variables)))
    a_variables = tuple(draw(st.permutations(variables))[:count])
    shared = draw(st.integers(0, len(a_variables)))
    b_variables = (*(v for v in variables if v not in a_variables), *a_variables[:shared])
    least = max(0, len(variables) - 1) if tail else 0  # what is reduced must fit an instruction
    kept = len(variables) if reduction == "=" else draw(st.integers(least, len(variables)))
    y = draw(_dimensions(tuple(draw(st.permutations(variables))[:kept]), sizes, False))
    a = draw(_dimensions(a_variables, sizes, True))
    b = draw(_dimensions(b_variables, sizes, True))
    role = "inout" if reduction != "=" and draw(st.booleans()) else "out"
    permits = draw(st.sampled_from(["", "", " permit no reassociate", " permit no finite"]))
    left = cast(_access("A", a), types[0], types[2], False)
    right = cast(_access("B", b), types[1], types[2], False)
    chained = role == "out" and draw(st.integers(0, 3)) == 0
    if tail and draw(st.integers(0, 5)) > 0:
        return _followed(kind, tail, (y, a, b), draw(_terms(y)), variables, symbols, sizes, extents)
    roles = st.sampled_from(["in", "in", "const"])
    header = f"({', '.join(v.upper() for v in sorted(symbols))})" if symbols else ""
    text = (
        f"kernel random{header}{permits} {{\n"
        + _declaration(draw(roles), "A", types[0], a)
        + _declaration(draw(roles), "B", types[1], b)
        + _declaration("local" if chained else role, "Y", types[2], y)
        + (_declaration("out", "Z", types[2], y) if chained else "")
        + "".join(f"  for {v} in 0..{sizes[v]}\n" for v in variables)
        + f"  {_access('Y', y)} {reduction} {binary(op, left, right, False)}\n"
        + (f"  {_access('Z', y)} = max({_access('Y', y)}, 0)\n" if chained else "")
        + "}\n"
    )
    return Case(text, tuple((v.upper(), extents[v]) for v in sorted(symbols)))


@st.composite
def _terms(draw: st.DrawFn, y: list[Dimension]) -> list[Dimension]:
    """The dimensions of a term that is added: some of the result's, in any order."""
    order = draw(st.permutations(y))
    return list(order[: draw(st.integers(0, len(y)))])


def _followed(
    kind: Kind,
    tail: Tail,
    accessed: tuple[list[Dimension], list[Dimension], list[Dimension]],
    term: list[Dimension],
    variables: tuple[str, ...],
    symbols: set[str],
    sizes: dict[str, str],
    extents: dict[str, int],
) -> Case:
    """Return a kernel of several statements, each on the result of the one before."""
    y, a, b = accessed
    types = kind.types
    left = cast(_access("A", a), types[0], types[2], False)
    right = cast(_access("B", b), types[1], types[2], False)
    steps = tail.steps(types[2], _access("D", term), False)
    names = ["T0", *(f"T{n + 1}" for n in range(len(steps) - 1)), "Y"]
    lines = [f"{_access('T0', y)} {kind.reduction} {binary(kind.op, left, right, False)}"]
    for before, name, step in zip(names, names[1:], steps, strict=False):
        lines.append(f"{_access(name, y)} = {step.replace('{}', _access(before, y))}")
    header = f"({', '.join(v.upper() for v in sorted(symbols))})" if symbols else ""
    text = (
        f"kernel random{header} {{\n"
        + _declaration("in", "A", types[0], a)
        + _declaration("in", "B", types[1], b)
        + (_declaration("in", "D", types[2], term) if tail.bias else "")
        + "".join(_declaration("local", name, types[2], y) for name in names[:-1])
        + _declaration("out", "Y", tail.result(types[2]), y)
        + "".join(f"  for {v} in 0..{sizes[v]}\n" for v in variables)
        + "".join(f"  {line}\n" for line in lines)
        + "}\n"
    )
    return Case(text, tuple((v.upper(), extents[v]) for v in sorted(symbols)))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Case, str]:
    """A kernel, and a machine with an instruction of its kind, perhaps of several statements."""
    kind = draw(kinds())
    tail = draw(tails(kind))
    return draw(cases(kind, tail)), draw(descriptions(kind, tail))
