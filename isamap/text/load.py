"""From files and texts to checked modules, with every error in one go."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from isamap.diagnostics import (
    Collector,
    Diagnostic,
    IsamapError,
    LimitError,
    ParseError,
    Source,
    Span,
    VerifyError,
    fail,
)
from isamap.ir.nodes import Instruction, Invocation, Kernel, Module, Program, TimeLoop
from isamap.text.define import Reader
from isamap.text.files import Parsed, parse_files
from isamap.text.parse import parse_text
from isamap.text.syntax import Definition

_WORD = re.compile(r"\w+")

VERSION = 1
"""The version of the language that this package reads."""


def load_module(
    path: Path, overrides: Mapping[str, int] | None = None, only: str | None = None
) -> Module:
    """Read a file and all that it includes.

    ``overrides`` gives extents of the file's kernels and programs other values, or of those called
    ``only``.  Where a kernel is called so, what the other definitions mean is not looked at, and
    they are not in the module.  ParseError or VerifyError with every error of what is read;
    LimitError if the solver left something open.
    """
    errors = Collector()
    return _module(parse_files(Path(path), errors), errors, overrides or {}, str(path), only)


def parse_module(
    text: str, name: str = "<text>", overrides: Mapping[str, int] | None = None
) -> Module:
    """Read a text that includes nothing; ``name`` stands in messages.

    Errors are those of :func:`load_module`.
    """
    errors = Collector()
    source = Source(name, text.removeprefix("\ufeff"))
    file, places = parse_text(source, errors)
    for include in file.includes:
        message = f"cannot include '{include.path}': this text is not a file"
        errors.add(fail("E031", message, places.span(include.start, include.end)))
    return _module([Parsed(file, places, True)], errors, overrides or {}, name)


def parse_instructions(
    source: Source, storages: frozenset[str], constants: Mapping[str, int] | None = None
) -> tuple[Instruction, ...]:
    """Read one block of semantics: instructions whose operands live in ``storages``.

    ``constants`` are names that stand for numbers.  An instruction with type parameters is returned
    once for every combination of them.  Errors are those of :func:`load_module`.

    Machines that extend one description have most of their blocks in common: each is read once.
    """
    # Names that do not occur say nothing of a block without errors.
    words = frozenset(_WORD.findall(source.text))
    given = constants or {}
    own = tuple(sorted((name, number) for name, number in given.items() if name in words))
    try:
        # No storages at all would mean any.
        return _read_once(source, storages & words or storages, own)
    except IsamapError:
        return _instructions(source, storages, given)  # The messages tell all names.


@lru_cache(maxsize=4096)
def _read_once(
    source: Source, storages: frozenset[str], constants: tuple[tuple[str, int], ...]
) -> tuple[Instruction, ...]:
    return _instructions(source, storages, dict(constants))


def _instructions(
    source: Source, storages: frozenset[str], constants: Mapping[str, int]
) -> tuple[Instruction, ...]:
    errors = Collector()
    file, places = parse_text(source, errors)
    syntax = bool(errors.found)
    limits = Collector()
    reader = Reader(places, errors, limits, constants)
    found: list[Instruction] = []
    for include in file.includes:
        span = places.span(include.start, include.end)
        errors.add(fail("E031", "a description's semantics includes nothing", span))
    for definition in file.definitions:
        if definition.kind == "instruction":
            found += reader.instructions(definition, storages)
        else:
            message = f"expected an instruction, found a {definition.kind}"
            errors.add(fail("E007", message, places.span(definition.start, definition.start + 1)))
    _raise(errors, limits, syntax)
    return tuple(found)


def _module(
    files: Iterable[Parsed],
    errors: Collector,
    overrides: Mapping[str, int],
    name: str,
    only: str | None = None,
) -> Module:
    parts = list(files)
    syntax = bool(errors.found)
    gathered = _Gathered(errors, overrides, only)
    kernels = {d.name.text for part in parts for d in part.file.definitions if d.kind == "kernel"}
    for parsed in parts:
        gathered.take(parsed, alone=only in kernels)
    gathered.check_calls()
    gathered.check_overrides(name)
    _raise(errors, gathered.limits, syntax)
    return Module(
        VERSION,
        tuple(gathered.kernels),
        tuple(gathered.instructions),
        tuple(gathered.programs),
    )


def _raise(errors: Collector, limits: Collector, syntax: bool) -> None:
    if found := errors.errors:
        raise (ParseError if syntax else VerifyError)(found)
    if found := limits.errors:
        raise LimitError(found)


@dataclass(slots=True)
class _Gathered:
    """The definitions of all files, as they are read."""

    errors: Collector
    overrides: Mapping[str, int]
    only: str | None = None
    limits: Collector = field(default_factory=Collector)
    kernels: list[Kernel] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    names: dict[tuple[str, tuple[str, ...]], Span] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    extents: dict[str, None] = field(default_factory=dict)

    def take(self, parsed: Parsed, alone: bool) -> None:
        """Read the definitions of a file; those called ``only`` if they stand ``alone``."""
        version = parsed.file.version
        if version is not None and version.text != str(VERSION):
            message = f"this is version {version.text[:20]} of the language"
            span = parsed.places.span(version.start, version.end)
            hint = f"this isamap reads version {VERSION}"
            self.errors.add(fail("E004", message, span, hint))
        reader = Reader(parsed.places, self.errors, self.limits)
        for definition in parsed.file.definitions:
            named = definition.name.text == self.only
            if alone and not named:
                continue
            self._declare(parsed, definition)
            meant = named if self.only is not None else parsed.main
            overrides = self.overrides if meant else {}
            if meant and definition.kind != "instruction":
                self.extents.update(dict.fromkeys(e.name.text for e in definition.extents))
            self._define(reader, definition, overrides)

    def _define(self, reader: Reader, definition: Definition, overrides: Mapping[str, int]) -> None:
        if definition.kind == "kernel":
            kernel = reader.kernel(definition, overrides)
            if kernel is None:
                self.failed.add(definition.name.text)
            else:
                self.kernels.append(kernel)
        elif definition.kind == "program":
            program = reader.program(definition, overrides)
            if program is not None:
                self.programs.append(program)
        else:
            self.instructions += reader.instructions(definition, frozenset())

    def _declare(self, parsed: Parsed, definition: Definition) -> None:
        span = parsed.places.span(definition.name.start, definition.name.end)
        # Instructions of one name may differ in the types that they are bound to.
        types = tuple(t.text for p in definition.parameters for t in p.dtypes)
        key = (definition.name.text, types)
        if (earlier := self.names.get(key)) is not None and not definition.damaged:
            note = Diagnostic("", "it is defined here first", earlier, severity="note")
            message = f"{definition.name.text} is defined twice"
            self.errors.add(Diagnostic("E014", message, span, notes=(note,)))
        self.names.setdefault(key, span)

    def check_calls(self) -> None:
        """Check the calls of programs against the kernels."""
        kernels = {kernel.name: kernel for kernel in self.kernels}
        for program in self.programs:
            for call in _calls(program.body):
                kernel = kernels.get(call.kernel)
                if kernel is not None:
                    self._check_call(program, kernel, call)
                elif call.kernel not in self.failed:
                    listed = ", ".join(kernels) or "none"
                    message = f"unknown kernel '{call.kernel}'"
                    hint = f"the kernels are: {listed}"
                    self.errors.add(fail("E042", message, call.span, hint))

    def _check_call(self, program: Program, kernel: Kernel, call: Invocation) -> None:
        wanted = [buffer for buffer in kernel.buffers if buffer.role not in ("local", "table")]
        if len(wanted) != len(call.arguments):
            names = ", ".join(buffer.name for buffer in wanted)
            message = f"{kernel.name} takes {len(wanted)} buffers, found {len(call.arguments)}"
            self.errors.add(fail("E042", message, call.span, f"they are: {names}"))
            return
        given = {buffer.name: buffer for buffer in program.buffers}
        for buffer, name in zip(wanted, call.arguments, strict=True):
            found = given[name]
            if (found.dtype, len(found.shape)) != (buffer.dtype, len(buffer.shape)):
                message = (
                    f"{name} is {found.dtype} of {len(found.shape)} dimensions, but {buffer.name} "
                    f"of {kernel.name} is {buffer.dtype} of {len(buffer.shape)}"
                )
                self.errors.add(fail("E042", message, call.span))

    def check_overrides(self, name: str) -> None:
        """Report values for extents that no kernel or program has."""
        span = Span(Source(name, ""), 1, 1, 1, 1)
        if self.only is not None and all(self.only != own for own, _ in self.names):
            return  # That there is no such kernel is told where it is looked for.
        for extent in self.overrides:
            if extent not in self.extents:
                hint = f"the extents are: {', '.join(self.extents) or 'none'}"
                self.errors.add(fail("E030", f"there is no extent '{extent}' to set", span, hint))


def _calls(steps: Iterable[Invocation | TimeLoop]) -> Iterator[Invocation]:
    for step in steps:
        match step:
            case Invocation():
                yield step
            case TimeLoop(_, _, _, body):
                yield from _calls(body)
