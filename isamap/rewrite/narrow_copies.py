"""A buffer whose elements fit a narrower integer type is read from a copy in that type."""

from collections.abc import Iterator, Sequence

from isamap.ir.dtype import DType
from isamap.ir.literal import value
from isamap.ir.nodes import Access, Kernel, Op
from isamap.ir.ranges import Interval, Intervals, intervals_before
from isamap.ir.statements import accesses
from isamap.rewrite.build import Draft, extents, fresh, replaced
from isamap.rewrite.copies import copied, narrow_types, with_part
from isamap.rewrite.polynomial import literal
from isamap.rewrite.rule import Rewriting
from isamap.solver.lemma import Lemma


def narrow_copies(kernel: Kernel, number: int) -> Iterator[Rewriting]:
    """Yield the statement reading copies in each narrower type of the buffers that fit it.

    All buffers that fit a type are copied together, and where there are several each one alone.
    """
    statement = kernel.statements[number]
    known = intervals_before(kernel, number)
    read = dict.fromkeys(a.buffer for a in accesses(statement.value) if a.dtype.is_integer)
    for dtype in narrow_types(statement):
        fitting = [
            name
            for name in read
            if name != statement.target.buffer
            and dtype.bits < kernel.buffer(name).dtype.bits
            and name in known
            and known[name].fits(dtype)
            and not _is_copy(kernel, name)
        ]
        groups = [fitting] if fitting else []
        groups += [[name] for name in fitting if len(fitting) > 1]
        for group in groups:
            yield _rewritten(kernel, number, group, dtype, known)


def _rewritten(
    kernel: Kernel, number: int, group: Sequence[str], dtype: DType, known: Intervals
) -> Rewriting:
    statement = kernel.statements[number]
    changed, drafts, buffers, lemmas = statement.value, [], [], []
    for name in group:
        buffer = kernel.buffer(name)
        copy = fresh(kernel, f"{name}_{dtype}")
        pad = None if buffer.pad is None else literal(int(value(buffer.pad)), dtype)
        made = copied(kernel, name, copy, lambda source: Op("cast", (source,), dtype), pad)
        buffers.append(made.buffer)
        drafts.append(made.draft)
        for access in dict.fromkeys(a for a in accesses(changed) if a.buffer == name):
            changed = with_part(changed, access, Access(copy, access.indices, dtype))
        lemmas.append(_kept(name, buffer.dtype, dtype, known[name]))
    drafts.append(Draft(statement.target, statement.reduction, changed, extents(statement)))
    held = ", ".join(f"{name} holds {known[name]}" for name in group)
    note = f"{' and '.join(group)} as {dtype}: {held}"
    return Rewriting(
        "narrow-copies", number, replaced(kernel, number, drafts, buffers), tuple(lemmas), note
    )


def _is_copy(kernel: Kernel, name: str) -> bool:
    """Return whether a buffer is a copy in another type already."""
    writers = [s for s in kernel.statements if s.target.buffer == name]
    match [s.value for s in writers], kernel.buffer(name).role:
        case [Op("cast", (Access(),), _)], "local":
            return True
        case _:
            return False


def _kept(name: str, wide: DType, dtype: DType, interval: Interval) -> Lemma:
    """Return the lemma that elements in an interval come back from a narrower type."""
    less = "bvsle" if wide.kind == "signed" else "bvule"
    ends = [f"(_ bv{end % (1 << wide.bits)} {wide.bits})" for end in (interval.low, interval.high)]
    kind = "sign" if dtype.kind == "signed" else "zero"
    narrow = f"((_ extract {dtype.bits - 1} 0) x)"
    script = (
        f"(declare-const x (_ BitVec {wide.bits}))\n"
        f"(assert (and ({less} {ends[0]} x) ({less} x {ends[1]})))\n"
        f"(assert (not (= x ((_ {kind}_extend {wide.bits - dtype.bits}) {narrow}))))\n"
    )
    claim = f"{wide}({dtype}(x)) = x for x in {interval}, the values of {name}"
    return Lemma("narrower copy", claim, script)
