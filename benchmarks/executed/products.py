"""Micro-kernels of packed matrix products: a register block of each type that is multiplied."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product as cartesian
from math import prod

from isamap.diagnostics import IsamapError, Source
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_statement
from isamap.pipeline.mapped import map_kernel
from isamap.pipeline.options import Options
from isamap.pipeline.result import Result
from isamap.pipeline.schedule_text import schedule_text
from isamap.pipeline.sizes import variable_extents
from isamap.rewrite.partial import NAME as SPLIT
from isamap.rewrite.rules import NAMES, UNMAPPED
from isamap.schedule.reader import parse_schedule
from isamap.schedule.shape import block_of, read_shape
from isamap.schedule.written import Word, WrittenEarly, WrittenSchedule
from isamap.text.load import parse_module

TYPES = {
    "f64": ("f64", "f64", "f64"),
    "f32": ("f32", "f32", "f32"),
    "f16": ("f16", "f16", "f16"),
    "f16 to f32": ("f16", "f16", "f32"),
    "bf16 to f32": ("bf16", "bf16", "f32"),
    "s8 to s32": ("s8", "s8", "s32"),
    "u8·s8 to s32": ("u8", "s8", "s32"),
    "u8 to s32": ("u8", "u8", "s32"),
    "s16 to s32": ("s16", "s16", "s32"),
    "s16": ("s16", "s16", "s16"),
    "s32": ("s32", "s32", "s32"),
}
"""The types of a product's factors and of its sums, by what they are called."""

DEPTHS = (256, 512)
"""The two lengths of the inner loop; the difference is what is counted."""

ROUNDS = 16
"""Calls of the shorter inner loop at least: code that has several of them in a round has rounds."""

MANY = 7680
"""Rows and columns that are multiples of all blocks."""

_LARGE = (480, 480)
"""Rows and columns of the product for which the machine's register block is chosen."""

SIDES = (1, 4, 8)
"""Blocks side by side, and below each other, that are tried."""

WAYS = 8
"""Ways in which a rule applies to a product, at most."""

_REWRITE = tuple(name for name in NAMES if name not in UNMAPPED | {SPLIT})
"""Rules after which a product is one: both factors are constants, of which the others would have
the products themselves computed ahead."""


@dataclass(frozen=True, slots=True)
class Product:
    """The register block of a product of some types: its rows and columns, and the instruction.

    ``kernel`` is what became of a large product, ``statement`` the number of the one that
    multiplies, and ``schedule`` that of the kernel; one call does so much of the ``depth``.
    """

    types: str
    rows: int
    columns: int
    instruction: str
    kernel: Kernel
    statement: int
    schedule: WrittenSchedule
    depth: int = 1

    @property
    def depths(self) -> tuple[int, int]:
        """The two lengths of the inner loop."""
        first = max(DEPTHS[0], ROUNDS * self.depth)
        return first, first * DEPTHS[1] // DEPTHS[0]


def product_text(types: str, rows: int, columns: int, depth: int) -> str:
    """Return the kernel that adds a product to C.

    Both factors are constants, so that they are packed ahead, and A is written by columns: a
    block's part of it lies in a row.
    """
    a, b, c = TYPES[types]
    first, second = (f"{c}({x})" if t != c else x for t, x in ((a, "A[k, i]"), (b, "B[k, j]")))
    return (
        f"kernel product {{ const A : {a}[{depth}, {rows}]  const B : {b}[{depth}, {columns}]  "
        f"inout C : {c}[{rows}, {columns}]\n  C[i, j] += {first} * {second} }}\n"
    )


def mapped(
    machine: Accelerator,
    types: str,
    rows: int,
    columns: int,
    depth: int,
    schedule: WrittenSchedule | None = None,
) -> Result:
    """Map a product, rewritten where that helps, by rules or a schedule.

    IsamapError if nothing computes it.
    """
    text = product_text(types, rows, columns, depth)
    kernel = parse_module(text).kernels[0]
    return map_kernel(kernel, machine, Options(prove=False, rewrite=_REWRITE, schedule=schedule))


def of_blocks(machine: Accelerator, product: Product) -> tuple[int, tuple[Result, Result]]:
    """Map the block of a product alone, in both depths, rewritten as the large product is.

    A rule that pays where what it makes is used by many may have nothing to do in a block: then
    there are several, and their number comes first.  IsamapError if that does not help.
    """
    fault: IsamapError | None = None
    for side in SIDES:
        for schedule in _renumbered(product.schedule):
            try:
                first, last = (
                    mapped(
                        machine,
                        product.types,
                        side * product.rows,
                        side * product.columns,
                        depth,
                        schedule,
                    )
                    for depth in product.depths
                )
            except IsamapError as error:
                fault = fault or error
                continue
            if all(_multiplies_like(found, product) for found in (first, last)):
                return side * side, (first, last)
    assert fault is not None, "what is not rewritten multiplies alike"
    raise fault


def of_many(machine: Accelerator, product: Product) -> tuple[Kernel, int]:
    """Return the kernel of a product whose extents all blocks divide, rewritten as the large
    product is, and the number of its statement that multiplies."""
    sizes = product.types, MANY, MANY, DEPTHS[0]
    if not product.schedule.rewritings:
        return parse_module(product_text(*sizes)).kernels[0], 0
    for schedule in _renumbered(replace(product.schedule, statements=())):
        with suppress(IsamapError):
            found = mapped(machine, *sizes, schedule)
            if _multiplies_like(found, product):
                return found.mapped, largest(found)
    raise AssertionError("what pays in a product pays in a larger one")


def _multiplies_like(found: Result, product: Product) -> bool:
    """Return whether what is done most often in both is the same but for its extents."""
    own = found.mapped.statements[largest(found)]
    return print_statement(own) == print_statement(product.kernel.statements[product.statement])


def _renumbered(schedule: WrittenSchedule) -> Iterator[WrittenSchedule]:
    """Yield a schedule with all numbers of the ways in which its rules apply.

    They are other ones where other extents are alike.
    """
    for ways in cartesian(range(1, WAYS + 1), repeat=len(schedule.rewritings)):
        numbered = (
            replace(own, way=Word(str(way), own.rule.span))
            for own, way in zip(schedule.rewritings, ways, strict=True)
        )
        yield replace(schedule, rewritings=tuple(numbered))


def largest(result: Result) -> int:
    """Return the number of the statement that has most iterations of those of each call."""

    def iterations(number: int) -> int:
        statement = result.statements[number].mappings[0].matching.statement
        return prod(variable_extents(result.mapped, statement, result.symbols).values())

    return max((n for n, s in enumerate(result.statements) if not s.ahead), key=iterations)


def products(machine: Accelerator, only: str | None = None) -> Iterator[Product]:
    """Yield the block of each product, or of that of some types ``only``, that an instruction with
    several elements computes.

    Of an instruction that takes much of the depth at once, the product is as deep as what is
    counted: the best block depends on how often its results are stored.
    """
    for types in TYPES if only is None else (only,):
        found = _product(machine, types, DEPTHS[0])
        if found is not None and found.depths[0] > DEPTHS[0]:
            found = _product(machine, types, found.depths[0])
        if found is not None:
            yield found


def _product(machine: Accelerator, types: str, depth: int) -> Product | None:
    """Return the block chosen for a large product, None if no such instruction computes it."""
    try:
        result = mapped(machine, types, *_LARGE, depth)
    except IsamapError:
        return None
    number = largest(result)
    own = result.schedule.statements[number]
    shape = read_shape(own.mapping)
    if prod(shape.tile.values()) == 1:
        return None
    block = block_of(shape, own.levels)
    rows, columns = (block[v] * shape.tile[v] for v in ("i", "j"))
    written = parse_schedule(Source("product.schedule", schedule_text(result)))
    # What constants are made into ahead, and what else there is besides, is as large as the product
    # is: the rules see to it.
    multiplies = result.statements[number].name
    own_text = next(s for s in written.statements if s.name.text == multiplies)
    schedule = replace(written, statements=(replace(own_text, along=None),))
    name = own.mapping.matching.needle.name
    depth_of_call = shape.tile["k"]
    found = Product(types, rows, columns, name, result.mapped, number, schedule, depth_of_call)
    return replace(found, schedule=_of_one_block(schedule, found.depths[0] // found.depth))


def _of_one_block(schedule: WrittenSchedule, rounds: int) -> WrittenSchedule:
    """Return a schedule without what a block fetches of the next one, for there is none.

    What would be of interest so many rounds ahead, or more, is fetched the last one of them ahead:
    the instruction that fetches it counts as it does in the whole product.
    """

    def near(early: WrittenEarly) -> WrittenEarly:
        if early.count is None or early.count.number < rounds:
            return early
        return replace(early, count=replace(early.count, text=str(rounds - 1)))

    statements = (
        s if s.prefetch is None else replace(s, prefetch=tuple(map(near, s.prefetch)))
        for s in schedule.statements
    )
    return replace(schedule, statements=tuple(statements))
