"""What must hold of a machine whose units are queues, and of the host that gives them work."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from isamap.diagnostics import Diagnostic, fail
from isamap.hw.accelerator import Entry, Toolchain, queue_of
from isamap.hw.document import Document
from isamap.hw.template import Placeholder, scan

_NAMES: Mapping[str, frozenset[str]] = {
    "post": frozenset({"unit"}),
    "wait": frozenset({"unit", "token"}),
    "idle": frozenset(),
}
"""What the templates of tokens name."""


@dataclass(frozen=True, slots=True)
class Queues:
    """What a description says of queues, with what it inherits; ``kind`` is its ``queues``."""

    kind: str | None
    units: Mapping[str, int]
    host: Sequence[str]
    entries: Sequence[Entry]
    toolchain: Toolchain | None


def merged_host(
    chain: Sequence[Document], units: Mapping[str, int], merged: Mapping[str, str]
) -> tuple[tuple[str, ...], Sequence[Diagnostic]]:
    """Return the units that are the host's, of all descriptions, and what is wrong with them."""
    faults: list[Diagnostic] = []
    found: dict[str, None] = {}
    for document in reversed(chain):
        for number, unit in enumerate(document.model.host):
            if unit not in units:
                known = f"the units are: {', '.join(units) or 'none'}"
                span = document.span("host", number)
                faults.append(fail("E113", f"unknown unit '{unit}'", span, known))
            found[merged.get(unit, unit)] = None
    return tuple(found), faults


def check_queues(document: Document, queues: Queues) -> Iterator[Diagnostic]:
    """Yield what is wrong with the units of a machine as queues; ``document`` is its own file."""
    if queues.kind != "tokens":
        if queues.host:
            text = "'host' tells its units from those that wait for tokens, and none does"
            yield fail("E132", text, document.span("host"), "write 'queues: tokens'")
        return
    if queues.toolchain is not None and queues.toolchain.tokens is None:
        text = "tokens have no C text: the toolchain says nothing of 'tokens'"
        yield fail("E132", text, document.span("queues"))
    used = {queue_of(entry, queues.host) for entry in queues.entries}
    for unit, count in queues.units.items():
        if count > 1 and unit in used:
            text = f"unit '{unit}' is {count} queues: which one a token is about is not known"
            own = document.span("units", unit)
            yield fail("E132", text, own, "give each queue a name of its own")
    for entry in queues.entries:
        yield from _check_entry(entry, queues.host, used)


def _check_entry(
    entry: Entry, host: Sequence[str], queues: Iterable[str | None]
) -> Iterator[Diagnostic]:
    queue = queue_of(entry, host)
    if not entry.units and not host:
        text = f"'{entry.name}' is in no queue, and must be in one"
        yield fail("E132", text, entry.span, "the first unit that it occupies is its queue")
    own = "the host's" if queue is None else f"in the queue '{queue}'"
    for unit in entry.units:
        if unit != queue and unit in queues:
            text = f"'{entry.name}' is {own}, and occupies another queue, '{unit}'"
            hint = "units that several queues share are the first of no instruction"
            yield fail("E132", text, entry.span, hint)
        elif queue is not None and unit in host:
            text = f"'{entry.name}' is {own}, and occupies '{unit}', which is the host's"
            yield fail("E132", text, entry.span)


def check_templates(document: Document) -> Iterator[Diagnostic]:
    """Yield what is wrong with the C text of the tokens of a description's toolchain."""
    toolchain = document.model.toolchain
    if toolchain is None or toolchain.tokens is None:
        return
    for field, known in _NAMES.items():
        span = document.span("toolchain", "tokens", field)
        used = set()
        for found in scan(getattr(toolchain.tokens, field)):
            name = found.text if isinstance(found, Placeholder) else ""
            used.add(name)
            if name not in known:
                told = ", ".join(sorted(known)) or "none"
                what = f"'{{{name}}}' is nothing that it may name" if name else "a single brace"
                yield fail("E114", f"'{field}': {what}", span, f"the names are: {told}")
        if "token" in known - used:
            yield fail("E114", f"'{field}' never uses '{{token}}'", span)
