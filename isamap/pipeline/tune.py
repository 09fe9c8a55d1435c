"""A search over the schedules of a kernel, timed where its code runs here."""

from contextlib import nullcontext
from dataclasses import dataclass

from isamap.diagnostics import ArgumentsError, fail
from isamap.hw.accelerator import Accelerator
from isamap.interp.inputs import random_inputs
from isamap.ir.nodes import Kernel
from isamap.ir.statements import bind_extents
from isamap.lower.choose import Choice
from isamap.mapping.produce import Producers
from isamap.pipeline.options import Options, Tell
from isamap.pipeline.result import Tuning
from isamap.pipeline.sizes import sample_symbols
from isamap.pipeline.way import native_choice
from isamap.schedule.space import space
from isamap_search.clock import Clock
from isamap_search.objective import Candidate, Model
from isamap_search.records import Key, Record, Records, described, recalled
from isamap_search.study import search

# Earlier measurements that a search begins with.
_REMEMBERED = 8


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best candidate found, None when none was, and what the search did."""

    best: Candidate | None
    tuning: Tuning


def tune(
    kernel: Kernel,
    hardware: Accelerator,
    choice: Choice,
    options: Options,
    tell: Tell,
) -> Tuned:
    """Search around a first choice within ``options.tune``.

    ToolError when nothing that was tried could be run.
    """
    assert options.tune is not None
    bound = bind_extents(kernel)
    choices = space(
        hardware,
        bound,
        choice.starts,
        Producers(hardware),
        options.threads,
        choice.schedule.fused,
    )
    symbols = sample_symbols(kernel, choice.lowered) or {}
    model = Model(kernel, hardware, choices, symbols)
    records = Records(options.records) if options.records else None
    key = Key.of(kernel, hardware, options.threads, symbols)
    remembered = [] if records is None else _remembered(model, records, key)

    def note(candidate: Candidate, score: float) -> None:
        if records and measured:
            words = described(choices, model.assignment(candidate.point))
            _append(records, key, Record(words, score))

    measured = native_choice(hardware).way == "native" and not options.simulate
    arrays = random_inputs(kernel, symbols, options.seed) if measured else {}
    with (
        Clock(kernel, hardware, arrays, symbols, options.threads) if measured else nullcontext()
    ) as clock:
        found = search(model, options.tune, options.seed, clock, remembered, tell=tell, noted=note)
    if clock and clock.fault and found.best is None and found.trials:
        raise clock.fault
    score = found.score if found.best else None
    tuning = Tuning(
        found.trials, found.failed, found.measured, found.first, score, found.interrupted
    )
    return Tuned(found.best, tuning)


def _remembered(model: Model, records: Records, key: Key) -> list[tuple[int, ...]]:
    try:
        earlier = records.read(key)
    except OSError as error:
        text = f"cannot read the records '{records.path}': {error.strerror}"
        raise ArgumentsError(fail("E737", text)) from error
    assignments = [recalled(model.space, record) for record in earlier]
    points = dict.fromkeys(model.point(a) for a in assignments if a is not None)
    return list(points)[:_REMEMBERED]


def _append(records: Records, key: Key, record: Record) -> None:
    try:
        records.append(key, record)
    except OSError as error:
        text = f"cannot write the records '{records.path}': {error.strerror}"
        raise ArgumentsError(fail("E737", text)) from error
