"""The field ``numeric`` of an instruction: read, and checked against its statements."""

from collections.abc import Iterator
from dataclasses import replace

from isamap.diagnostics import Diagnostic, fail
from isamap.hw.accelerator import Entry
from isamap.hw.document import Document, Place
from isamap.hw.schema import InstructionModel
from isamap.ir.nodes import Access, Op, Statement
from isamap.ir.numeric import Numeric


def numeric_of(model: InstructionModel) -> tuple[Numeric, ...]:
    """Return what an instruction says of its sums and products: each of the ways that it may go."""
    return tuple(
        Numeric(
            fused=given.fused,
            sums=tuple(given.sums.items()),
            groups=tuple(given.groups.items()),
            zero=given.zero,
            rounding=given.rounding,
            flush=given.flush,
        )
        for given in model.numeric
    )


def check_numeric(document: Document, place: Place, entry: Entry) -> Iterator[Diagnostic]:
    """Yield what the numeric fields at a place say of nothing that their instruction computes."""
    for number, numeric in enumerate(entry.numeric):
        yield from _check(document, (*place, "numeric", number), entry, numeric)


def _check(
    document: Document, place: Place, entry: Entry, numeric: Numeric
) -> Iterator[Diagnostic]:
    span = document.span(*place)
    results = [s.target for s in entry.instruction.statements if s.target.dtype.is_float]
    if not results:
        flushes = replace(numeric, flush="never") == Numeric() != numeric
        if entry.instruction.types or (flushes and _looks_at_floats(entry)):
            return  # others of the same family compute some; what compares some takes them for zero
        yield fail("E130", f"'{entry.name}' computes no floats: 'numeric' is about them", span)
        return
    reduced = {
        variable.name
        for s in entry.instruction.statements
        if s.reduction == "+=" and s.target.dtype.is_float
        for variable in s.variables
        if not any(variable.name in i.names for i in s.target.indices)
    }
    named = [*(("sums", n) for n, _ in numeric.sums), *(("groups", n) for n, _ in numeric.groups)]
    for field, name in named:
        if name not in reduced:
            message = f"'{entry.name}' takes no sum of floats over '{name}'"
            hint = f"it does over: {', '.join(sorted(reduced)) or 'nothing'}"
            yield fail(
                "E130",
                message,
                document.key_span(*place, field, name),
                hint,
            )
    for name in dict(numeric.sums).keys() & dict(numeric.groups).keys():
        message = f"'{name}' is summed in groups, which are taken in their order"
        yield fail("E130", message, document.key_span(*place, "sums", name))
    special = numeric.rounding != "nearest" or numeric.flush != "never"
    special |= "once" in dict(numeric.sums).values()
    others = [s for s in entry.instruction.statements if s.target.dtype.name != "f32"]
    others = [s for s in others if s.target.dtype.is_float]
    if numeric.rounding == "nearest":
        others = [s for s in others if not _converts(s)]
    if special and others:
        message = f"'{entry.name}' computes other floats than f32: only these are rounded otherwise"
        yield fail("E130", message, span)


def _looks_at_floats(entry: Entry) -> bool:
    """Return whether an instruction reads floats of the type whose subnormal numbers are meant."""
    return any(operand.dtype.name == "f32" for operand in entry.instruction.places)


def _converts(statement: Statement) -> bool:
    """Return whether a statement does no more than to convert f32 to shorter floats."""
    match statement.value:
        case Op("cast", (Access(dtype=dtype),), _):
            narrows = statement.target.dtype.bits < dtype.bits
            return dtype.name == "f32" and narrows and statement.reduction == "="
    return False
