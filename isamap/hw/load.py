"""From the name of a description, or the path of one, to an :class:`Accelerator`."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from isamap.diagnostics import Collector, HardwareError, Source, Span, fail
from isamap.hw.accelerator import Accelerator, State, Storage, StorageKind, Unit
from isamap.hw.check import Machine, check_states
from isamap.hw.check_storage import check_storage, check_within
from isamap.hw.document import Document, read_document
from isamap.hw.entries import absent_caches, merge_entries
from isamap.hw.native import best_shipped
from isamap.hw.parameters import Parameter, full_name, settle, split_name
from isamap.hw.queues import Queues, check_queues, check_templates, merged_host
from isamap.hw.schema import StorageModel
from isamap.hw.serve import served_by, split_server
from isamap.hw.shipped import near_names, shipped_names, shipped_source
from isamap.hw.toolchain import merged_toolchain
from isamap.hw.yaml_nodes import Mapping as Node
from isamap.hw.yaml_nodes import Scalar, find, read_file, read_nodes
from isamap.resources import shipped

__all__ = ["load_hardware", "shipped_names"]

_MAX_CHAIN = 8

_DISTANCE: dict[StorageKind, int] = {
    "registers": 0,
    "immediate": 0,
    "scratchpad": 1,
    "cache": 1,
    "memory": 2,
}


def load_hardware(name_or_path: str, trust: bool = False, instructions: bool = True) -> Accelerator:
    """Return the description of a shipped name, or of a file.

    ``native`` is the best shipped description for this CPU; ``name:VL=512`` is one with another
    value of a parameter; ``name@server`` is one whose instructions another machine executes.
    Templates and toolchains of shipped descriptions may be executed, those of other files only with
    ``trust``.  Without ``instructions`` none are read, which is most of the work: what runs code is
    known then, and nothing is mapped.  Raises HardwareError with every fault of the file (of what
    is read), each at its line and column.
    """
    own, server = split_server(name_or_path)
    if server is not None and not Path(split_name(name_or_path)[0]).exists():
        both = (load_hardware(name, trust, instructions) for name in (own, server))
        return served_by(*both)
    name, given = split_name(name_or_path)
    source, folder = _open(best_shipped() if name == "native" else name)
    files = _chain(source, folder)
    parameters = settle([file.root for file in files], given)
    places = tuple((file.source, file.folder) for file in files)
    # What lies beside another file, and where that is, may change; what ships stays as it is.
    read = _read_shipped if folder is None else _read
    return read(places, parameters, trust or folder is None, instructions)


def _read(
    places: tuple[tuple[Source, Path | None], ...],
    parameters: tuple[Parameter, ...],
    trusted: bool,
    instructions: bool,
) -> Accelerator:
    """Return the machine of some texts, each with the folder it lies in."""
    values = {parameter.name: parameter.value for parameter in parameters}
    chain = tuple(
        replace(read_document(source, read_nodes(source), values), folder=folder)
        for source, folder in places
    )
    return _build(chain, parameters, places[0][1], trusted, instructions)


_read_shipped = lru_cache(maxsize=32)(_read)


def files_read(name_or_path: str) -> tuple[Path, ...]:
    """Return the files, none of them shipped, that :func:`load_hardware` reads.

    HardwareError if one of them cannot be read.
    """
    own, server = split_server(name_or_path)
    if server is not None and not Path(split_name(name_or_path)[0]).exists():
        return (*files_read(own), *files_read(server))
    name = split_name(name_or_path)[0]
    source, folder = (None, None) if name == "native" else _open(name)
    if source is None or folder is None:  # What ships extends only what ships.
        return ()
    files = _chain(source, folder)
    return tuple(Path(file.source.name) for file in files if file.folder is not None)


# --- finding --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _File:
    """A description that is not yet validated."""

    source: Source
    root: Node
    folder: Path | None

    @property
    def extends(self) -> str | None:
        """What it extends; None where that is no text, of which validation tells."""
        found = self.root.get("extends")
        return found.text if isinstance(found, Scalar) else None


def _open(name: str) -> tuple[Source, Path | None]:
    """Return the text of a description and the folder it lies in, None for a shipped one."""
    if name in shipped_names():
        return shipped_source(name), None
    if "\0" in name:
        raise HardwareError(fail("E100", "the name of a file holds a NUL character"))
    if not name or (
        os.sep not in name and not name.endswith((".yaml", ".yml")) and not Path(name).exists()
    ):
        _check_values(name)
        message = f"there is no description '{name}'"
        if near := near_names(name):
            hint = f"did you mean {', '.join(near)}? 'isamap hw list' lists what ships"
        else:
            hint = f"shipped are: {', '.join((*shipped_names(), 'native'))}"
        hint += "; anything else is the path of a .yaml file"
        raise HardwareError(fail("E120", message, hint=hint))
    path = Path(name)
    home = shipped("hwdesc")
    if isinstance(home, Path) and path.resolve().parent == home.resolve():
        own = path.name.removesuffix(".yaml")
        if own in shipped_names():
            return shipped_source(own), None
    return read_file(path), path.parent


def _check_values(name: str) -> None:
    """HardwareError where a description is named with parameters that have no values."""
    own, colon, given = name.partition(":")
    if colon and (own in (*shipped_names(), "native") or Path(own).is_file()):
        lacking = next((one for one in given.split(",") if not re.fullmatch(r"\w+=\d+", one)), "")
        wanted = lacking.partition("=")[0]
        hint = f"a number, as in {own}:{wanted or 'VL'}=512"
        raise HardwareError(fail("E128", f"the parameter '{wanted}' needs a value", hint=hint))


def _chain(source: Source, folder: Path | None) -> tuple[_File, ...]:
    """Return the description and those that it extends, the most basic last."""
    chain = [_File(source, read_nodes(source), folder)]
    while (wanted := chain[-1].extends) is not None:
        span = find(chain[-1].root, ("extends",))[0].span
        if len(chain) >= _MAX_CHAIN:
            raise HardwareError(fail("E109", f"more than {_MAX_CHAIN} descriptions extended", span))
        parent, folder = _parent(wanted, folder, span)
        if any(parent.name == known.source.name for known in chain):
            raise HardwareError(fail("E109", f"'{wanted}' extends itself", span))
        chain.append(_File(parent, read_nodes(parent), folder))
    return tuple(chain)


def _parent(wanted: str, folder: Path | None, span: Span) -> tuple[Source, Path | None]:
    if wanted in shipped_names():
        return shipped_source(wanted), None
    beside, known = Path(wanted), ", ".join(shipped_names())
    if folder is None or beside.name != wanted or wanted in ("", ".", ".."):
        message = f"'{wanted}' cannot be extended: no shipped description has this name"
        hint = f"shipped are: {known}; or name a file in the same folder"
        raise HardwareError(fail("E109", message, span, hint))
    if not (folder / beside).is_file():
        message = f"there is no description '{wanted}', shipped or in this folder"
        near = [name for name in near_names(wanted) if name != "native"]
        hint = f"did you mean {', '.join(near)}?" if near else f"shipped are: {known}"
        if (folder / f"{wanted}.yaml").is_file():
            hint = f"the file beside it is '{wanted}.yaml': write the whole name"
        raise HardwareError(fail("E109", message, span, hint))
    return read_file(folder / beside), folder


# --- building -------------------------------------------------------------------------------------
def _build(
    chain: tuple[Document, ...],
    parameters: tuple[Parameter, ...],
    folder: Path | None,
    trusted: bool,
    instructions: bool,
) -> Accelerator:
    collector = Collector()
    own = chain[0].model
    storages = _merge_storages(chain, collector)
    units = {name: n for document in reversed(chain) for name, n in document.model.units.items()}
    merged = _merged_units(chain, units, collector)
    features = tuple(dict.fromkeys(f for d in reversed(chain) for f in d.model.features))
    toolchain = merged_toolchain(chain, folder, features, collector)
    clock = _inherited(chain, "clock")
    if clock is None:
        collector.add(fail("E105", "'clock' is missing", chain[0].root.span))
    machine = Machine({s.name: s for s in storages}, units, toolchain is not None, merged)
    states = {state.name: state for state in _states(chain, machine, collector)}
    entries = merge_entries(chain, machine, collector) if instructions else ()
    collector.extend(check_states(chain[0], entries, states))
    if instructions and not entries and not collector.errors:
        message = "the description has no instructions"
        collector.add(fail("E105", message, chain[0].root.span))
    queues = next((d.model.queues for d in chain if d.model.queues), None)
    host, faults = merged_host(chain, units, merged)
    collector.extend(faults)
    collector.extend(check_queues(chain[0], Queues(queues, units, host, entries, toolchain)))
    collector.extend(fault for document in chain for fault in check_templates(document))
    if collector.errors:
        raise HardwareError(collector.errors)
    assert isinstance(clock, Fraction)
    return Accelerator(
        name=full_name(own.name, parameters),
        title=own.title,
        parameters=parameters,
        storages=storages,
        units=tuple(Unit(name, count) for name, count in units.items() if name not in merged),
        entries=entries,
        toolchain=toolchain,
        clock=clock,
        cores=_whole(chain, "cores"),
        issue=_whole(chain, "issue"),
        unroll=_whole(chain, "unroll"),
        features=features,
        digest=_digest(chain, parameters),
        trusted=trusted,
        path=chain[0].source.name,
        version=own.format,
        states=tuple(states.values()),
        queues=queues,
        host=host,
        bases={document.model.name: document.source.name for document in chain[1:]},
    )


def _states(chain: tuple[Document, ...], machine: Machine, collector: Collector) -> Iterator[State]:
    """Yield the states of all descriptions; the nearest one's word counts, and comes last."""
    for document in reversed(chain):
        for name, model in document.model.states.items():
            span = document.key_span("states", name)
            for unit in model.units:
                if unit not in machine.units:
                    known = f"the units are: {', '.join(machine.units) or 'none'}"
                    collector.add(fail("E113", f"unknown unit '{unit}'", span, known))
            own = [machine.merged.get(unit, unit) for unit in model.units]
            busy = {unit: model.throughput / machine.units.get(unit, 1) for unit in own}
            if model.count > 1 and machine.compiles:
                text = f"the state '{name}' holds several values, of which no template can say one"
                collector.add(fail("E134", text, span))
            yield State(name, busy, model.emit, span, model.count)


def _digest(chain: tuple[Document, ...], parameters: tuple[Parameter, ...]) -> str:
    """Return a hash of what is written and of what was chosen."""
    chosen = (f"{parameter.name}={parameter.value}" for parameter in parameters)
    parts = [*(document.content for document in chain), *chosen]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _inherited(chain: tuple[Document, ...], field: str) -> object:
    values = (getattr(document.model, field) for document in chain)
    return next((value for value in values if value is not None), None)


def _whole(chain: tuple[Document, ...], field: str) -> int:
    value = _inherited(chain, field)
    return value if isinstance(value, int) else 1


def _merge_storages(chain: tuple[Document, ...], collector: Collector) -> tuple[Storage, ...]:
    merged: dict[str, Storage] = {}
    absent: set[str] = set()
    for number, document in enumerate(chain):
        for name, model in document.model.storages.items():
            collector.extend(check_storage(document, name, model))
            if name in absent:
                continue
            known = merged.setdefault(name, _storage(document, name, model))
            if known.kind == model.kind and not known.numbered:
                merged[name] = replace(known, types={**model.types, **known.types})
        absent.update(set(absent_caches(chain, number)) - merged.keys())
    for document in chain:
        for name in (n for n in document.model.storages if n in merged):
            collector.extend(check_within(document, name, merged))
    # Own storages first would put an inherited register file behind an own cache, and an inherited
    # first cache behind an own second one.
    inherits = len(chain) > 1
    return tuple(sorted(merged.values(), key=lambda s: (_DISTANCE[s.kind], inherits * _reach(s))))


def _reach(storage: Storage) -> int:
    """Return the bytes of a cache: the larger it is, the farther away."""
    return storage.size or 0 if storage.kind == "cache" else 0


def _storage(document: Document, name: str, model: StorageModel) -> Storage:
    return Storage(
        name=name,
        kind=model.kind,
        count=model.count,
        bits=model.bits,
        within=model.within,
        size=model.size,
        banks=model.banks,
        alignment=model.alignment,
        line=model.line,
        ways=model.ways,
        streams=model.streams,
        regional=model.regional,
        read=model.read,
        write=model.write,
        latency=model.latency,
        types=dict(model.types),
        prefetch=model.prefetch,
        fence=model.fence,
        spare=model.spare or 0,
        renamed=model.renamed,
        numbered=model.numbered,
        permit=model.permit.strip(),
        enter=model.enter.strip("\n"),
        leave=model.leave.strip("\n"),
        function=model.function,
        span=document.key_span("storages", name),
    )


def _merged_units(
    chain: tuple[Document, ...], units: Mapping[str, int], collector: Collector
) -> dict[str, str]:
    """Return the units that are another one, and which; the nearest description's word counts."""
    merged: dict[str, str] = {}
    for document in chain:
        own = document.model.merge
        for name, other in own.items():
            span = document.span("merge", name)
            for unit in (name, other):
                if unit not in units:
                    known = f"the units are: {', '.join(units) or 'none'}"
                    collector.add(fail("E113", f"unknown unit '{unit}'", span, known))
            if other in own:
                text = f"'{other}' is merged into another unit itself"
                collector.add(fail("E113", text, span, f"write '{name}: {own[other]}'"))
            merged.setdefault(name, other)
    for name in merged:
        seen = [name]
        while (last := merged.get(seen[-1])) is not None and last not in seen:
            seen.append(last)
        if last is not None:
            text = f"units are merged in a circle: {' -> '.join([*seen, last])}"
            collector.add(fail("E113", text, chain[0].root.span))
        merged[name] = seen[-1]
    return merged
