"""Machines with one stencil-shaped unit each, and the movements that it needs."""

from functools import cache

from isamap.hw.accelerator import Accelerator
from tests.properties.machines import Axis, Fragment, Item, _instruction, _movement, constant, load

Shapes = dict[str, tuple[int, ...]]

UNITS: dict[str, tuple[str, Shapes, dict[str, int]]] = {
    "tap": ("c[i] += a[i + r] * b[r]", {"a": (18,), "b": (3,), "c": (16,)}, {"i": 16, "r": 3}),
    "strided": ("c[i] += a[2*i + r] * b[r]", {"a": (18,), "b": (4,), "c": (8,)}, {"i": 8, "r": 4}),
    "reversed": (
        "c[i] += a[i + 3 - r] * b[r + 1]", {"a": (11,), "b": (5,), "c": (8,)}, {"i": 8, "r": 4},
    ),
    "stencil": (
        "c[i, j] += a[i + r, j + s] * b[r, s]",
        {"a": (6, 10), "b": (3, 3), "c": (4, 8)},
        {"i": 4, "j": 8, "r": 3, "s": 3},
    ),
    "scatter": ("c[i + r] += a[i] * b[r]", {"a": (8,), "b": (4,), "c": (11,)}, {"i": 8, "r": 4}),
    "grouped": (
        "c[i] += a[4*i + k] * b[i, k]", {"a": (32,), "b": (8, 4), "c": (8,)}, {"i": 8, "k": 4},
    ),
    "lanes": ("c[i, j] += a[i, j] * b[i, j]", {n: (4, 8) for n in "abc"}, {"i": 4, "j": 8}),
    "crossed": (
        "c[i, j] += a[j, i] * b[i, j]", {"a": (8, 4), "b": (4, 8), "c": (4, 8)}, {"i": 4, "j": 8},
    ),
    "rows": (
        "c[i, j] += a[i, j, k] * b[k]",
        {"a": (2, 6, 3), "b": (3,), "c": (2, 6)},
        {"i": 2, "j": 6, "k": 3},
    ),
}  # fmt: skip


def unit(name: str, dtype: str = "s32") -> Item:
    """Return an instruction as text, its C code a loop nest over what it says."""
    statement, shapes, axes = UNITS[name]
    lines = [f"instruction {name} {{"]
    for operand, shape in shapes.items():
        role = "inout" if operand == "c" else "in"
        lines.append(f"  {role} {operand} : {dtype}{list(shape)} @ file")
    ranges = "".join(f"  for {axis} in 0..{extent}\n" for axis, extent in axes.items())
    lines.append(f"{ranges}  {statement}\n}}")
    left, right = statement.split(" += ")
    first, second = right.split(" * ")
    cells = {part[0]: _cell(part, shapes[part[0]]) for part in (left, first, second)}
    nest = "".join(f"for (int {a} = 0; {a} < {e}; ++{a}) " for a, e in axes.items())
    return Item("\n".join(lines), f"{nest}{cells['c']} += {cells['a']} * {cells['b']};")


def _cell(part: str, shape: tuple[int, ...]) -> str:
    indices = part[2:-1].split(", ")
    flat = indices[0]
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        flat = f"({flat})*{extent} + {index}"
    return f"{{{part[0]}}}.v[{flat}]"


@cache
def machine(name: str) -> Accelerator:
    """Return the machine of one unit, trusted to be compiled."""
    return load(description(name))


def description(name: str) -> str:
    """Return the YAML text of the machine of one unit."""
    shapes = UNITS[name][1]
    items = [unit(name)]
    for shape in dict.fromkeys(shapes.values()):
        fragment = Fragment("s32", shape)
        axes = tuple(Axis(n, e) for n, e in zip("ijk", shape, strict=False))
        for masked in ((), axes):
            items += [_movement(fragment, axes, masked, "unit", store) for store in (False, True)]
        items.append(constant(fragment))
    return (
        "format: 1\nname: stencil\nextends: portable_c\nclock: 1 GHz\nunits: {u: 1}\n"
        "storages:\n"
        "  file: {kind: registers, count: 8, bits: 4096, types: {s32: file_s32}}\n"
        "  constant: {kind: immediate}\n"
        "toolchain:\n  prelude: |\n    typedef struct { int32_t v[128]; } file_s32;\n"
        "instructions:\n" + "".join(_instruction(item, 1, 1) for item in items)
    )
