"""Random machines: hardware descriptions as text, with C templates that do what they say.

A machine has one register file, a few computing instructions of random shapes, and for every
fragment that these read or write the movements to and from memory: whole, or with masks for
remainders, dense or with free pitches.  A register is a C struct with an array, and every template
is a loop nest that spells out the semantics, so that the C code can be compared as well.
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import strategies as st

from isamap.hw.accelerator import Accelerator
from isamap.hw.load import load_hardware

C_TYPES = {
    "f64": "double",
    "f32": "float",
    "s32": "int32_t",
    "s16": "int16_t",
    "s8": "int8_t",
    "u8": "uint8_t",
}
WIDTHS = {"f64": 64, "f32": 32, "s32": 32, "s16": 16, "s8": 8, "u8": 8}
SAME = tuple((name, name, name) for name in ("f32", "f32", "f64", "s32", "s16"))
WIDENING = (("u8", "s8", "s32"), ("s8", "s8", "s32"), ("s16", "s16", "s32"), ("f32", "f32", "f64"))


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one register holds: an element type and a shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bits(self) -> int:
        return WIDTHS[self.dtype] * prod(self.shape)

    @property
    def name(self) -> str:
        return "_".join([self.dtype, *map(str, self.shape)])


@dataclass(frozen=True, slots=True)
class Kind:
    """What a statement, or an instruction, computes: ``c reduction a op b`` in these types."""

    types: tuple[str, str, str]
    reduction: str
    op: str


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the first statement, on each of its results, in statements of their own.

    A term from another operand or buffer is added (``bias``), integers are divided by a power of
    two (``shift``), and the value is bounded by constants (``clamp``), or by the range of s8, which
    is then the type of the result (``narrow``).  Without any of these there is one statement.
    """

    bias: bool = False
    shift: int = 0
    clamp: bool = False
    narrow: bool = False

    def __bool__(self) -> bool:
        return self.bias or self.shift > 0 or self.clamp or self.narrow

    def result(self, dtype: str) -> str:
        """Return the type of the result, where the first statement's is ``dtype``."""
        return "s8" if self.narrow else dtype

    def steps(self, dtype: str, term: str, c: bool) -> list[str]:
        """Return the expression of each statement over ``{}``, what the one before left."""
        found = []
        if self.bias:
            found.append(_typed(f"{{}} + {term}", dtype, c))
        if self.shift:
            found.append(_typed(f"({{}} >> {self.shift})", dtype, c))
        if self.clamp:
            low = binary("max", "{}", "-3", c)
            found.append(binary("min", low if not c else f"({low})", "6", c))
        if self.narrow:
            bounded = "({} < -128 ? -128 : {} > 127 ? 127 : {})"
            found.append(f"(int8_t){bounded}" if c else "sat[s8]({})")
        return found


@dataclass(frozen=True, slots=True)
class Item:
    """One instruction of a description."""

    semantics: str
    emit: str


@dataclass(frozen=True, slots=True)
class Compute:
    """A computing instruction and the fragments that it reads and writes."""

    item: Item
    reads: tuple[Fragment, ...]
    writes: tuple[Fragment, ...]


def declared(axes: tuple[Axis, ...]) -> str:
    return f"[{', '.join(str(a.extent) for a in axes)}]"


def indexed(axes: tuple[Axis, ...]) -> str:
    return f"[{', '.join(a.name for a in axes)}]"


def flat(axes: tuple[Axis, ...], pitches: tuple[str, ...] | None = None) -> str:
    """Return the C offset of an element: row-major, or with one pitch per axis."""
    dense = [str(prod(a.extent for a in axes[i + 1 :])) for i in range(len(axes))]
    terms = zip(axes, pitches or dense, strict=True)
    return " + ".join(f"{a.name}*({pitch})" for a, pitch in terms) or "0"


def loops(axes: tuple[Axis, ...]) -> str:
    return "".join(f"for (int {a.name} = 0; {a.name} < {a.extent}; ++{a.name}) " for a in axes)


def register(operand: str, axes: tuple[Axis, ...]) -> str:
    return f"{{{operand}}}.v[{flat(axes)}]"


def cast(text: str, source: str, target: str, c: bool) -> str:
    if source == target:
        return text
    return f"({C_TYPES[target]}){text}" if c else f"{target}({text})"


def binary(op: str, left: str, right: str, c: bool) -> str:
    if op in ("min", "max"):
        sign = "<" if op == "min" else ">"
        return f"({left} {sign} {right} ? {left} : {right})" if c else f"{op}({left}, {right})"
    return f"{left} {op} {right}"


def _typed(text: str, dtype: str, c: bool) -> str:
    return f"({C_TYPES[dtype]})({text})" if c else text


def subsets(axes: tuple[Axis, ...]) -> st.SearchStrategy[tuple[Axis, ...]]:
    """Some of the axes, in any order."""
    return st.permutations(axes).flatmap(
        lambda order: st.integers(0, len(order)).map(lambda n: tuple(order[:n]))
    )


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    """Any kind; sums of products are the most frequent."""
    types = draw(st.sampled_from(SAME) | st.sampled_from(WIDENING))
    reduction = draw(st.sampled_from(["+=", "+=", "+=", "max=", "min=", "="]))
    op = "*" if reduction == "+=" else draw(st.sampled_from(["*", "+", "-", "min", "max"]))
    return Kind(types, reduction, op)


@st.composite
def tails(draw: st.DrawFn, kind: Kind) -> Tail:
    """What may follow a statement of a kind; half of the time nothing does."""
    if draw(st.booleans()):
        return Tail()
    whole = kind.types[2] in ("s32", "s16")
    shift = draw(st.integers(0, 3)) if whole else 0
    return Tail(draw(st.booleans()), shift, draw(st.booleans()), whole and draw(st.booleans()))


@st.composite
def computes(draw: st.DrawFn, name: str, kind: Kind, tail: Tail = Tail()) -> Compute:
    """An instruction over up to three axes, each operand over some of them."""
    extents = draw(st.lists(st.integers(2 if tail else 1, 4), min_size=1, max_size=3))
    axes = tuple(Axis(n, e) for n, e in zip("ijk", extents, strict=False))
    a_axes = draw(subsets(axes))
    missing = tuple(a for a in axes if a not in a_axes)
    extra = draw(subsets(a_axes))
    b_axes = (*missing, *extra)
    c_axes = axes if kind.reduction == "=" else draw(subsets(axes))
    if tail and len(c_axes) < len(axes) - 1:
        c_axes = axes[:-1]
    if len(a_axes) > 1 and draw(st.booleans()):
        a_axes = (draw(sums(a_axes[0], a_axes[1])), *a_axes[2:])
    if not tail:
        return _compute(name, kind, (a_axes, b_axes, c_axes), axes)
    return _fused(name, kind, tail, (a_axes, b_axes, c_axes, draw(subsets(c_axes))), axes)


@st.composite
def sums(draw: st.DrawFn, one: Axis, other: Axis) -> Axis:
    """A dimension along which an operand sees a sum of two axes, with a stride or turned round."""
    last = other.extent - 1
    factor, offset = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    inner = draw(st.sampled_from([other.name, f"{last} - {other.name}"]))
    extent = factor * (one.extent - 1) + other.extent + offset
    return Axis(f"({factor}*{one.name} + {inner} + {offset})", extent)


def _compute(
    name: str,
    kind: Kind,
    accessed: tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]],
    axes: tuple[Axis, ...],
) -> Compute:
    a_axes, b_axes, c_axes = accessed
    a_type, b_type, c_type = kind.types
    reduction, op = kind.reduction, kind.op
    value = binary(
        op,
        cast(f"a{indexed(a_axes)}", a_type, c_type, False),
        cast(f"b{indexed(b_axes)}", b_type, c_type, False),
        False,
    )
    role = "out" if reduction == "=" else "inout"
    ranges = "".join(f"  for {a.name} in 0..{a.extent}\n" for a in axes)
    semantics = (
        f"instruction {name} {{\n"
        f"  in a : {a_type}{declared(a_axes)} @ file\n"
        f"  in b : {b_type}{declared(b_axes)} @ file\n"
        f"  {role} c : {c_type}{declared(c_axes)} @ file\n"
        f"{ranges}"
        f"  c{indexed(c_axes)} {reduction} {value}\n"
        f"}}"
    )
    computed = binary(
        op,
        cast(register("a", a_axes), a_type, c_type, True),
        cast(register("b", b_axes), b_type, c_type, True),
        True,
    )
    target = register("c", c_axes)
    match reduction:
        case "=":
            step = f"{target} = {computed};"
        case "+=":
            step = f"{target} = {target} + {computed};"
        case _:
            step = f"{target} = {binary(reduction[:3], target, f'({computed})', True)};"
    reads = [
        Fragment(dtype, tuple(x.extent for x in used))
        for dtype, used in ((a_type, a_axes), (b_type, b_axes))
    ]
    written = Fragment(c_type, tuple(x.extent for x in c_axes))
    if role == "inout":
        reads.append(written)
    return Compute(Item(semantics, loops(axes) + step), tuple(reads), (written,))


def _fused(
    name: str,
    kind: Kind,
    tail: Tail,
    accessed: tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]],
    axes: tuple[Axis, ...],
) -> Compute:
    """An instruction of several statements: all but the last one write locals."""
    a_axes, b_axes, c_axes, d_axes = accessed
    a_type, b_type, c_type = kind.types
    result = tail.result(c_type)

    def operand(text: str, own: tuple[Axis, ...], dtype: str, c: bool) -> str:
        element = register(text, own) if c else f"{text}{indexed(own)}"
        return cast(element, dtype, c_type, c)

    value, computed = (
        binary(kind.op, operand("a", a_axes, a_type, c), operand("b", b_axes, b_type, c), c)
        for c in (False, True)
    )
    lines = [f"t0{indexed(c_axes)} {kind.reduction} {value}"]
    steps = tail.steps(c_type, f"d{indexed(d_axes)}", False)
    for n, step in enumerate(steps):
        target = "c" if n == len(steps) - 1 else f"t{n + 1}"
        before = f"t{n}{indexed(c_axes)}"
        lines.append(f"{target}{indexed(c_axes)} = {step.replace('{}', before)}")
    bias = f"  in d : {c_type}{declared(d_axes)} @ file\n" if tail.bias else ""
    semantics = (
        f"instruction {name} {{\n"
        f"  in a : {a_type}{declared(a_axes)} @ file\n"
        f"  in b : {b_type}{declared(b_axes)} @ file\n{bias}"
        f"  out c : {result}{declared(c_axes)} @ file\n"
        + "".join(f"  local t{n} : {c_type}{declared(c_axes)}\n" for n in range(len(steps)))
        + "".join(f"  for {a.name} in 0..{a.extent}\n" for a in axes)
        + "".join(f"  {line}\n" for line in lines)
        + "}"
    )
    own = f"t_[{flat(c_axes)}]"
    size = prod(axis.extent for axis in c_axes)
    begin = _identity(kind.reduction, c_type)
    if kind.reduction in ("=", "+="):
        one = computed if kind.reduction == "=" else f"{own} + {computed}"
    else:
        one = binary(kind.reduction[:3], own, f"({computed})", True)
    after = own
    for step in tail.steps(c_type, register("d", d_axes), True):
        after = step.replace("{}", f"({after})")
    emit = (
        f"{{{{ {C_TYPES[c_type]} t_[{size}]; {loops(c_axes)}{own} = {begin}; "
        f"{loops(axes)}{own} = {one}; {loops(c_axes)}{register('c', c_axes)} = {after}; }}}}"
    )
    used = [(a_type, a_axes), (b_type, b_axes), *([(c_type, d_axes)] if tail.bias else [])]
    reads = tuple(Fragment(dtype, tuple(x.extent for x in own_axes)) for dtype, own_axes in used)
    written = Fragment(result, tuple(x.extent for x in c_axes))
    return Compute(Item(semantics, emit), reads, (written,))


def _identity(reduction: str, dtype: str) -> str:
    """Return what a reduction begins with, in C."""
    if reduction in ("=", "+="):
        return "0"
    if dtype in ("f32", "f64"):
        return "-__builtin_inf()" if reduction == "max=" else "__builtin_inf()"
    highest = (1 << (WIDTHS[dtype] - 1)) - 1
    return f"(-{highest} - 1)" if reduction == "max=" else str(highest)


@st.composite
def movements(draw: st.DrawFn, fragment: Fragment, store: bool) -> list[Item]:
    """Loads (or stores) of a fragment: a whole one, and perhaps one with a mask."""
    axes = tuple(Axis(n, e) for n, e in zip("ijk", fragment.shape, strict=False))
    pitches = draw(st.sampled_from(["dense", "free", "unit"]))
    masks = draw(st.sampled_from([(), ("mask",), ("whole", "mask")])) or ("whole",)
    found = []
    for kind in masks:
        masked = axes if kind == "mask" else ()
        if kind == "mask" and not axes:
            continue
        found.append(_movement(fragment, axes, masked, pitches, store))
    return found or [_movement(fragment, axes, (), pitches, store)]


def _movement(
    fragment: Fragment,
    axes: tuple[Axis, ...],
    masked: tuple[Axis, ...],
    pitches: str,
    store: bool,
) -> Item:
    sizes = [f"n{a.name}" if a in masked else str(a.extent) for a in axes]
    free = axes[:-1] if pitches == "unit" else axes if pitches == "free" else ()
    strides: tuple[str, ...] | None = None
    if pitches != "dense" and axes:
        strides = tuple(f"P{a.name}" if a in free else "1" for a in axes)
    extents = [f"n{a.name} in 1..{a.extent + 1}" for a in masked]
    extents += [f"P{a.name}" for a in free]
    header = f"({', '.join(extents)})" if extents else ""
    name = f"{'store' if store else 'load'}_{fragment.name}{'_masked' if masked else ''}"
    memory = f"m : {fragment.dtype}[{', '.join(sizes)}] @ memory"
    memory += f" strides [{', '.join(strides)}]" if strides else ""
    place = f"r : {fragment.dtype}{declared(axes)} @ file"
    index = indexed(axes)
    if store:
        ranges = [f"for {a.name} in 0..n{a.name}" for a in masked]
        lines = [f"in {place}", f"out {memory}", *ranges, f"m{index} = r{index}"]
    else:
        pad = " pad 0" if masked else ""
        lines = [f"in {memory}{pad}", f"out {place}", f"r{index} = m{index}"]
    semantics = f"instruction {name}{header} {{\n" + "".join(f"  {x}\n" for x in lines) + "}"
    # The pitch of an axis whose inner ones are masked is that of the mask, unless it is free.
    dense = tuple(
        "*".join(f"{{{s}}}" if s.startswith("n") else s for s in sizes[i + 1 :]) or "1"
        for i in range(len(axes))
    )
    c_pitches = tuple(f"{{{s}}}" if s != "1" else s for s in strides) if strides else dense
    element = f"({{m}})[{flat(axes, c_pitches)}]"
    inside = " && ".join(f"{a.name} < {{n{a.name}}}" for a in masked)
    if store:
        guard = f"if ({inside}) " if masked else ""
        return Item(semantics, f"{loops(axes)}{guard}{element} = {register('r', axes)};")
    source = f"({inside}) ? {element} : 0" if masked else element
    return Item(semantics, f"{loops(axes)}{register('r', axes)} = {source};")


def broadcast(fragment: Fragment) -> Item:
    axes = tuple(Axis(n, e) for n, e in zip("ijk", fragment.shape, strict=False))
    semantics = (
        f"instruction broadcast_{fragment.name} {{\n"
        f"  in m : {fragment.dtype}[] @ memory\n"
        f"  out r : {fragment.dtype}{declared(axes)} @ file\n"
        f"  r{indexed(axes)} = m[]\n"
        f"}}"
    )
    return Item(semantics, f"{loops(axes)}{register('r', axes)} = *({{m}});")


def constant(fragment: Fragment) -> Item:
    axes = tuple(Axis(n, e) for n, e in zip("ijk", fragment.shape, strict=False))
    semantics = (
        f"instruction set_{fragment.name} {{\n"
        f"  in v : {fragment.dtype}[] @ constant\n"
        f"  out r : {fragment.dtype}{declared(axes)} @ file\n"
        f"  r{indexed(axes)} = v[]\n"
        f"}}"
    )
    return Item(semantics, f"{loops(axes)}{register('r', axes)} = {{v}};")


def _instruction(item: Item, throughput: int, latency: int) -> str:
    body = "".join(f"      {line}\n" for line in item.semantics.splitlines())
    return (
        f"  - semantics: |\n{body}"
        f"    emit: |\n      {item.emit}\n"
        f"    throughput: {throughput}\n    latency: {latency}\n    units: [u]\n"
    )


@st.composite
def descriptions(
    draw: st.DrawFn,
    kind: Kind | None = None,
    tail: Tail = Tail(),
) -> str:
    """The YAML text of a machine that extends portable_c with registers of its own.

    Its first instruction is of the given kind, with the given tail.
    """
    first = (kind or draw(kinds()), tail)
    rest = draw(st.lists(kinds().flatmap(lambda k: st.tuples(st.just(k), tails(k))), max_size=2))
    found = [draw(computes(f"compute{n}", *own)) for n, own in enumerate([first, *rest])]
    reads = dict.fromkeys(f for c in found for f in c.reads)
    writes = dict.fromkeys(f for c in found for f in c.writes)
    items = [c.item for c in found]
    for fragment in dict.fromkeys([*reads, *writes]):
        if fragment in reads:
            items += draw(movements(fragment, False))
            items += [broadcast(fragment)] * (bool(fragment.shape) and draw(st.booleans()))
        if fragment in writes:
            items += draw(movements(fragment, True))
        items += [constant(fragment)] * (draw(st.integers(0, 4)) > 0)
    bits = max(f.bits for f in [*reads, *writes])
    dtypes = sorted({f.dtype for f in [*reads, *writes]})
    types = ", ".join(f"{t}: file_{t}" for t in dtypes)
    prelude = "".join(
        f"    typedef struct {{ {C_TYPES[t]} v[{max(1, bits // WIDTHS[t])}]; }} file_{t};\n"
        for t in dtypes
    )
    instructions = "".join(
        _instruction(i, draw(st.integers(1, 3)), draw(st.integers(1, 6))) for i in items
    )
    return (
        "format: 1\nname: random\nextends: portable_c\nclock: 1 GHz\nunits: {u: 1}\n"
        f"storages:\n"
        f"  file: {{kind: registers, count: {draw(st.integers(4, 12))}, bits: {bits}, "
        f"types: {{{types}}}}}\n"
        f"  constant: {{kind: immediate}}\n"
        f"toolchain:\n  prelude: |\n{prelude}"
        f"instructions:\n{instructions}"
    )


def load(text: str) -> Accelerator:
    """Return the machine that a description's text describes, trusted to be compiled."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "random.yaml"
        path.write_text(text, encoding="utf-8")
        return load_hardware(str(path), trust=True)
