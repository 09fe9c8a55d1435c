"""How a description's code is compiled and run here: its own toolchain and what it inherits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from isamap.diagnostics import Collector, Span, fail
from isamap.hw.accelerator import RUN_SECONDS, Tokens, Toolchain
from isamap.hw.document import Document
from isamap.hw.native import lacking
from isamap.hw.schema import EmulatorModel, ToolchainModel
from isamap.resources import shipped


def merged_toolchain(
    chain: Sequence[Document], folder: Path | None, features: Iterable[str], collector: Collector
) -> Toolchain | None:
    """Return the toolchain of a description, itself first in ``chain``; None if there is none.

    ``folder`` is where its file lies, None for a shipped one.
    Where this CPU lacks some of ``features`` its code runs by the emulator, if it names one.
    """
    toolchain = _merged(chain, folder, collector)
    emulator = _emulator(chain, collector)
    if toolchain is None or emulator is None or not lacking(features):
        return toolchain
    given = [(d, own) for d in chain if (own := d.model.toolchain) is not None]
    place = _place(given, "emulator")
    program = toolchain.program if emulator.program is None else emulator.program
    return replace(toolchain, runner=emulator.runner, runner_at=place, program=program)


def _merged(
    chain: Sequence[Document], folder: Path | None, collector: Collector
) -> Toolchain | None:
    """Headers, prelude and the flags of one compiler add up, the most basic first.

    The rest is the nearest given.
    """
    given = [(document, d) for document in chain if (d := document.model.toolchain) is not None]
    if not given:
        return None
    models = [model for _, model in given]
    compiler = next((m.compiler for m in models if m.compiler is not None), None)
    if not compiler or not compiler[0].strip():
        message = "'compiler' is missing"
        collector.add(fail("E105", message, given[0][0].span("toolchain")))
    includes = [
        str((shipped("hwdesc") if document.folder is None else document.folder) / name)
        for document, m in given
        for name in m.includes
    ]
    for document, m in given:
        for n, name in enumerate(m.includes):
            if Path(name).name != name or name in ("", ".", ".."):
                message = f"'{name}' is no folder beside the description"
                collector.add(fail("E106", message, document.span("toolchain", "includes", n)))
    own = next((n for n, m in enumerate(models, 1) if m.compiler is not None), len(models))
    return Toolchain(
        compiler=compiler or (),
        compiler_at=_place(given, "compiler"),
        flags=_sum(models[:own], "flags"),
        shared=next((m.shared for m in models if m.shared is not None), ("-shared", "-fPIC")),
        program=next((m.program for m in models if m.program is not None), ()),
        runner=next((m.runner for m in models if m.runner is not None), ()),
        runner_at=_place(given, "runner"),
        measure=next((m.measure for m in models if m.measure is not None), ()),
        measure_at=_place(given, "measure"),
        folder="" if folder is None else str(folder.resolve()),
        seconds=next((m.seconds for m in models if m.seconds is not None), RUN_SECONDS),
        start=next((m.start for m in models if m.start is not None), ""),
        headers=tuple(dict.fromkeys(_sum(models, "headers"))),
        includes=tuple(dict.fromkeys(includes)),
        team=next((m.team.strip("\n") for m in models if m.team), ""),
        unroll=next((m.unroll for m in models if m.unroll is not None), 0),
        vector=next((m.vector for m in models if m.vector is not None), 0),
        tokens=next((Tokens(**dict(m.tokens)) for m in models if m.tokens is not None), None),
        prelude="\n".join(m.prelude.strip("\n") for m in reversed(models) if m.prelude),
    )


def _place(given: Iterable[tuple[Document, ToolchainModel]], field: str) -> Span | None:
    """Return where the nearest description that has a field of a toolchain gives it."""
    return next(
        (d.span("toolchain", field) for d, m in given if getattr(m, field) is not None), None
    )


def _emulator(chain: Sequence[Document], collector: Collector) -> EmulatorModel | None:
    """Return the nearest emulator, unless something nearer says that it is not for this code.

    It need not have features that are added, nor run what another compiler makes.
    """
    for document in chain:
        own = document.model.toolchain
        if own is not None and own.emulator is not None:
            if own.runner:
                span = document.span("toolchain", "emulator")
                text = "'emulator' beside a 'runner', which runs everything"
                collector.add(fail("E135", text, span))
            return own.emulator
        if document.model.features:
            return None
        if own is not None and (own.compiler is not None or own.runner is not None):
            return None
    return None


def _sum(models: Iterable[ToolchainModel], field: str) -> tuple[str, ...]:
    return tuple(word for model in reversed(list(models)) for word in getattr(model, field))
