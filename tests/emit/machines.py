"""A small machine for tests of emission: the compiler's vectors, scalars of all types."""

from collections.abc import Sequence
from fractions import Fraction

from isamap.hw.accelerator import Accelerator, Entry, Storage, Toolchain
from isamap.ir.dtype import DTYPES, DType
from isamap.ir.index import Index, as_index, const, var
from isamap.ir.nodes import (
    Access,
    Buffer,
    Coordinate,
    Expr,
    Extent,
    Instruction,
    Kernel,
    Literal,
    Op,
    Permissions,
    Role,
    Statement,
    Variable,
)

F32 = DTYPES["f32"]
S64 = DTYPES["s64"]
MEMORY_BITS = {"f16": "uint16_t", "bf16": "uint16_t", "f8e4m3": "uint8_t", "f8e5m2": "uint8_t"}

PRELUDE = """\
typedef float v16 __attribute__((vector_size(64), aligned(64)));
static inline v16 v16_load(const float *p, int64_t n)
{
    v16 r = {0};
    for (int64_t i = 0; i < n; ++i) r[i] = p[i];
    return r;
}
static inline void v16_store(float *p, v16 r, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) p[i] = r[i];
}
"""


def operand(
    name: str,
    role: Role,
    dtype: DType,
    shape: Sequence[str | int],
    storage: str | None = None,
    pad: str | None = None,
) -> Buffer:
    extents = tuple(const(e) if isinstance(e, int) else var(e) for e in shape)
    fill = None if pad is None else Literal(pad, dtype)
    return Buffer(name, role, dtype, extents, storage, fill)


def instruction(
    name: str,
    operands: Sequence[Buffer],
    target: Access,
    value: Expr,
    loops: Sequence[tuple[str, int | str]] = (),
    reduction: str = "=",
    extents: Sequence[Extent] = (),
) -> Instruction:
    variables = tuple(
        Variable(n, const(0), const(e) if isinstance(e, int) else var(e)) for n, e in loops
    )
    statement = Statement(target, reduction, value, variables)  # type: ignore[arg-type]
    return Instruction(name, tuple(extents), tuple(operands), (), (), (statement,))


def at(buffer: str, dtype: DType = F32, *indices: str | Index) -> Access:
    return Access(buffer, tuple(var(i) if isinstance(i, str) else i for i in indices), dtype)


def entry(instruction: Instruction, emit: str | None) -> Entry:
    return Entry(instruction, Fraction(1), Fraction(1), emit=emit)


def vector_entries() -> list[Entry]:
    lanes = [("i", 16)]
    n = Extent("n", None, (1, 17))
    memory = operand("m", "in", F32, [16], "memory")
    written = operand("m", "out", F32, [16], "memory")
    part = operand("m", "in", F32, ["n"], "memory", pad="0")
    r_in, r_out = operand("r", "in", F32, [16], "vec"), operand("r", "out", F32, [16], "vec")
    a, b = operand("a", "in", F32, [16], "vec"), operand("b", "in", F32, [16], "vec")
    c = operand("c", "inout", F32, [16], "vec")
    scalar = operand("m", "in", F32, [], "memory")
    value = operand("v", "in", F32, [], "imm")
    r, m = at("r", F32, "i"), at("m", F32, "i")
    product = Op("*", (at("a", F32, "i"), at("b", F32, "i")), F32)
    return [
        entry(instruction("load", [memory, r_out], r, m, lanes), "{r} = *(const v16u *){m}"),
        entry(instruction("store", [r_in, written], m, r, lanes), "*(v16u *){m} = {r};"),
        entry(
            instruction("load_part", [part, r_out], r, m, lanes, extents=[n]),
            "{r} = v16_load({m}, {n});",
        ),
        entry(
            instruction(
                "store_part",
                [r_in, operand("m", "out", F32, ["n"], "memory")],
                m,
                r,
                [("i", "n")],
                extents=[n],
            ),
            "v16_store({m}, {r}, {n});",
        ),
        entry(
            instruction("broadcast", [scalar, r_out], r, at("m"), lanes),
            "const float one = *{m};\n{r} = (v16){{one, one, one, one, one, one, one, one,\n"
            "    one, one, one, one, one, one, one, one}};",
        ),
        entry(
            instruction("set1", [value, r_out], r, at("v"), lanes),
            "for (int lane = 0; lane < 16; ++lane) {r}[lane] = {v};",
        ),
        entry(
            instruction("fma", [a, b, c], at("c", F32, "i"), product, lanes, "+="),
            "{c} += {a} * {b}",
        ),
    ]


def scalar_entries() -> list[Entry]:
    found = []
    for name, dtype in DTYPES.items():
        m_in, m_out = (
            operand("m", "in", dtype, [], "memory"),
            operand("m", "out", dtype, [], "memory"),
        )
        r_in, r_out = operand("r", "in", dtype, [], "raw"), operand("r", "out", dtype, [], "raw")
        v = operand("v", "in", dtype, [], "raw_imm")
        a, b = operand("a", "in", dtype, [], "raw"), operand("b", "in", dtype, [], "raw")
        found += [
            entry(
                instruction(f"get_{name}", [m_in, r_out], at("r", dtype), at("m", dtype)),
                "{r} = *{m};",
            ),
            entry(
                instruction(f"put_{name}", [r_in, m_out], at("m", dtype), at("r", dtype)),
                "*{m} = {r};",
            ),
            entry(
                instruction(f"set_{name}", [v, r_out], at("r", dtype), at("v", dtype)), "{r} = {v};"
            ),
        ]
        if not dtype.is_float or name in ("f32", "f64"):
            total = Op("+", (at("a", dtype), at("b", dtype)), dtype)
            found.append(
                entry(
                    instruction(f"add_{name}", [a, b, r_out], at("r", dtype), total),
                    "{r} = {a} + {b};",
                )
            )
    return found


def control_entries() -> list[Entry]:
    m = operand("m", "out", S64, [], "memory")
    v = operand("v", "in", S64, [], "imm")
    return [
        entry(instruction("put_index", [v, m], at("m", S64), at("v", S64)), "*{m} = {v};"),
        entry(
            instruction("crash", [m], at("m", S64), Coordinate(const(0), S64)),
            "volatile intptr_t nowhere = 8; *(int64_t *)nowhere = (intptr_t){m};",
        ),
        entry(
            instruction("hang", [m], at("m", S64), Coordinate(const(0), S64)),
            "for (volatile int go = 1; go;) *{m} = 0;",
        ),
        entry(instruction("unwritable", [m], at("m", S64), Coordinate(const(0), S64)), None),
        entry(
            instruction("broken", [m], at("m", S64), Coordinate(const(0), S64)), "this is no C {m};"
        ),
    ]


def machine(trusted: bool = True, compiler: Sequence[str] = ("gcc",)) -> Accelerator:
    """Return the machine; ``raw`` registers hold what memory holds."""
    raw = {name: MEMORY_BITS.get(name, _scalar(dtype)) for name, dtype in DTYPES.items()}
    storages = (
        Storage("vec", "registers", 32, 512, types={"f32": "v16"}),
        Storage("raw", "registers", 16, 64, types=raw),
        Storage("imm", "immediate"),
        Storage("raw_imm", "immediate", types=raw),
        Storage("memory", "memory"),
    )
    prelude = (
        PRELUDE + "typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));\n"
    )
    return Accelerator(
        name="toy",
        title="A toy",
        storages=storages,
        units=(),
        entries=tuple([*vector_entries(), *scalar_entries(), *control_entries()]),
        toolchain=Toolchain(
            compiler=tuple(compiler),
            flags=("-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-pthread"),
            prelude=prelude,
        ),
        clock=Fraction(10**9),
        trusted=trusted,
    )


def _scalar(dtype: DType) -> str:
    if dtype.is_float:
        return "double" if dtype.name == "f64" else "float"
    if dtype.kind == "bool":
        return "uint8_t"
    return f"{'' if dtype.kind == 'signed' else 'u'}int{max(8, dtype.bits)}_t"


def kernel(
    name: str,
    buffers: Sequence[tuple[str, Role, str, Sequence[str | int | Index]]],
    symbols: Sequence[str] = (),
) -> Kernel:
    """Return a kernel without statements: what emission needs of one."""
    return Kernel(
        name=name,
        extents=tuple(Extent(s) for s in symbols),
        permissions=Permissions(),
        buffers=tuple(
            Buffer(
                n,
                role,
                DTYPES[t],
                tuple(var(e) if isinstance(e, str) else as_index(e) for e in shape),
            )
            for n, role, t, shape in buffers
        ),
        ranges=(),
        statements=(),
    )
