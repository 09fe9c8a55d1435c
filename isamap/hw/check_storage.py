"""Storages of a description: the fields that each kind has, and what must hold between them."""

from collections.abc import Iterator, Mapping

from isamap.diagnostics import Diagnostic, fail
from isamap.hw.accelerator import Storage
from isamap.hw.check_template import check_prefetch
from isamap.hw.document import Document
from isamap.hw.schema import StorageModel

_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # kind: fields it must have, fields it may have
    "registers": (
        frozenset({"count", "bits"}),
        frozenset(
            {"within", "types", "latency", "read", "write", "numbered", "permit", "enter", "leave"}
            | {"function", "spare", "renamed"}
        ),
    ),
    "scratchpad": (
        frozenset({"size"}),
        frozenset({"banks", "alignment", "latency", "read", "write", "permit", "enter", "leave"}),
    ),
    "cache": (
        frozenset({"size"}),
        frozenset({"line", "ways", "streams", "regional", "latency", "read", "write", "prefetch"}),
    ),
    "memory": (frozenset(), frozenset({"alignment", "latency", "read", "write", "fence"})),
    "immediate": (frozenset(), frozenset()),
}


def check_storage(document: Document, name: str, model: StorageModel) -> Iterator[Diagnostic]:
    """Yield what is wrong with one storage: fields that its kind needs, or does not have."""
    required, allowed = _FIELDS[model.kind]
    given = model.model_fields_set - {"kind"}
    for field in sorted(required - given):
        message = f"'{field}' is missing: {article(model.kind)} needs it"
        yield fail("E105", message, document.span("storages", name))
    for field in sorted(given - required - allowed):
        message = f"{article(model.kind)} has no '{field}'"
        yield fail("E121", message, document.key_span("storages", name, field))
    for dtype, text in model.types.items():
        if not text.strip():
            span = document.span("storages", name, "types", dtype)
            yield fail("E115", f"the C type of '{dtype}' is empty", span)
    if model.numbered and model.types:
        message = f"the registers of '{name}' are numbered: they have no C types"
        yield fail("E121", message, document.key_span("storages", name, "types"))
    if model.spare is not None and model.count is not None and model.spare >= model.count:
        message = f"{model.spare} registers to spare of {model.count} leave none"
        yield fail("E121", message, document.key_span("storages", name, "spare"))
    if model.kind == "memory" and model.alignment & (model.alignment - 1):
        message = f"expected a power of two, found {model.alignment}"
        yield fail("E107", message, document.span("storages", name, "alignment"))
    if model.kind == "scratchpad" and model.size is not None:
        yield from _check_rows(document, name, model.size, model.alignment, model.banks)
    if model.prefetch is not None:
        yield from check_prefetch(document, name, model.prefetch)


def _check_rows(
    document: Document, name: str, size: int, alignment: int, banks: int
) -> Iterator[Diagnostic]:
    """A scratchpad consists of whole rows, and a bank of as many as another."""
    rows, rest = divmod(size, alignment)
    if rest or not rows:
        message = f"{size} bytes are no rows of {alignment} (its alignment)"
        yield fail("E136", message, document.span("storages", name, "size"))
    elif rows % banks:
        message = f"{banks} banks cannot share {rows} rows of {alignment} bytes"
        if alignment == 1:
            message = f"{banks} banks cannot share {rows} bytes"
        fewer = next((n for n in range(min(banks, 4096), 1, -1) if rows % n == 0), 1)
        yield fail("E136", message, document.span("storages", name, "banks"), hint=f"{fewer} can")


def check_within(
    document: Document, name: str, storages: Mapping[str, Storage]
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the register file that a storage says it lies in."""
    within = storages[name].within
    if within is None or storages[name].kind != "registers":
        return
    span = document.span("storages", name, "within")
    files = [s.name for s in storages.values() if s.kind == "registers" and s.within is None]
    if within not in files:
        message = f"'{within}' is no register file of its own, '{name}' cannot lie within it"
        hint = f"the register files are: {', '.join(files) or 'none'}"
        yield fail("E124", message, span, hint)
    elif storages[name].numbered != storages[within].numbered:
        numbered, other = (name, within) if storages[name].numbered else (within, name)
        message = f"the registers of '{numbered}' are numbered, those of '{other}' are not"
        yield fail("E124", message, span, "parts of numbered registers are numbered, too")


def article(kind: str) -> str:
    """Return a kind of storage as a phrase."""
    return {"registers": "a register file", "immediate": "an immediate"}.get(kind, f"a {kind}")
