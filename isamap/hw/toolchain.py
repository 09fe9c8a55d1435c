"""How a description's code is compiled and run here: its own toolchain and what it inherits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from isamap.diagnostics import Collector, fail
from isamap.hw.accelerator import Toolchain
from isamap.hw.document import Document
from isamap.hw.native import lacking
from isamap.hw.schema import EmulatorModel, ToolchainModel


def merged_toolchain(
    chain: Sequence[Document], features: Iterable[str], collector: Collector
) -> Toolchain | None:
    """Return the toolchain of a description, itself first in ``chain``; None if there is none.

    Where this CPU lacks some of ``features`` its code runs by the emulator, if it names one.
    """
    toolchain = _merged(chain, collector)
    emulator = _emulator(chain, collector)
    if toolchain is None or emulator is None or not lacking(features):
        return toolchain
    program = toolchain.program if emulator.program is None else emulator.program
    return replace(toolchain, runner=emulator.runner, program=program)


def _merged(chain: Sequence[Document], collector: Collector) -> Toolchain | None:
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
    own = next((n for n, m in enumerate(models, 1) if m.compiler is not None), len(models))
    return Toolchain(
        compiler=compiler or (),
        flags=_sum(models[:own], "flags"),
        shared=next((m.shared for m in models if m.shared is not None), ("-shared", "-fPIC")),
        program=next((m.program for m in models if m.program is not None), ()),
        runner=next((m.runner for m in models if m.runner is not None), ()),
        start=next((m.start for m in models if m.start is not None), ""),
        headers=tuple(dict.fromkeys(_sum(models, "headers"))),
        prelude="\n".join(m.prelude.strip("\n") for m in reversed(models) if m.prelude),
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
                collector.add(fail("E133", text, span))
            return own.emulator
        if document.model.features:
            return None
        if own is not None and (own.compiler is not None or own.runner is not None):
            return None
    return None


def _sum(models: Iterable[ToolchainModel], field: str) -> tuple[str, ...]:
    return tuple(word for model in reversed(list(models)) for word in getattr(model, field))
