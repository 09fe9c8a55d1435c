"""The differential test of a description: every instruction executed, and compared."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, prod
from pathlib import Path
from types import MappingProxyType

import numpy as np

from isamap.diagnostics import HardwareError, ToolError
from isamap.emit.battery import BATCH, bare_text, battery_text
from isamap.hw.accelerator import Accelerator, Entry
from isamap.interp.rounding import Values
from isamap.run.battery import Answer, Batch, run_battery
from isamap.run.build import build_text
from isamap.run.outcome import Crash
from isamap.targets.probe.arrays import elements, filled, span_of, untouched
from isamap.targets.probe.deviation import Deviations
from isamap.targets.probe.extents import combinations, given
from isamap.targets.probe.finding import Finding, Status
from isamap.targets.probe.judge import differing, story, used
from isamap.targets.probe.links import Links, find_links
from isamap.targets.probe.meaning import Fill, Meaning
from isamap.targets.probe.trial import NoTrialError, Trial, trials

SAMPLES = 10_000
"""Operand sets of an instruction, unless told otherwise."""

_TOGETHER = 160
"""Trials that are compiled as one program."""

_POINTS = 1 << 16
"""Iterations that are interpreted at once."""

_FEW = 8
"""Operand sets of a combination of extents, at least."""

_AT_MEMORY = (
    "; does it read or write beyond an operand, or need an aligned one, which 'align' would say?"
)

_ONCE = 48 << 20
"""Bytes that a program is given in one run."""

_COMPILE_SECONDS, _RUN_SECONDS = 600.0, 600.0

Tell = Callable[[str], None]


def probe(
    accelerator: Accelerator,
    names: Sequence[str],
    samples: int = SAMPLES,
    seed: int = 0,
    tell: Tell = lambda _: None,
    folder: Path | None = None,
    deviations: Deviations = MappingProxyType({}),
) -> list[Finding]:
    """Return what is found of the instructions called ``names``, in that order.

    Each is executed on ``samples`` sets of operands or a few more, the same for the same ``seed``.
    One that deviates as recorded is known to be wrong, and others are seen through it all the same.
    ToolError if the description is not trusted, or its compiler or runner cannot be started.
    """
    return _Probe(accelerator, samples, seed, tell, folder, deviations).findings(names)


@dataclass(slots=True)
class _Tally:
    """What is known of an instruction so far; ``ways`` are those that it may still go."""

    entry: Entry
    ways: list[int]
    sets: int = 0
    combinations: int = 0
    variants: int = 0
    status: Status = "right"
    text: str = ""
    deviates: bool = False

    def fail(self, status: Status, text: str) -> None:
        """Keep what went wrong first."""
        if self.status == "right":
            self.status, self.text = status, text

    def finding(self, path: str) -> Finding:
        """Return what was found; ``path`` is the tested description's file."""
        generic = self.entry.instruction.generic or self.entry.name
        counts = self.sets, self.combinations, self.variants
        home = self.entry.home or path
        origin = "" if home == path else Path(home).stem
        known = self.deviates and self.status == "right"
        status: Status = "known wrong" if known else self.status
        return Finding(self.entry.name, generic, *counts, status, self.text, origin)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A batch with what it was made of, and what is computed each way that may be gone."""

    trial: Trial
    meanings: Mapping[int, Meaning]
    symbols: Mapping[str, int]
    batch: Batch
    arrays: tuple[Values, ...] = field(repr=False)


class _Probe:
    def __init__(
        self,
        accelerator: Accelerator,
        samples: int,
        seed: int,
        tell: Tell,
        folder: Path | None,
        deviations: Deviations,
    ) -> None:
        self.accelerator = accelerator
        self.samples = samples
        self.seed = seed
        self.tell = tell
        self.folder = folder
        self.deviations = deviations
        self.links: Links = find_links(accelerator)
        self.tallies: dict[str, _Tally] = {}
        # Whether some program of the description was compiled, or why none can be.
        self.compiles = False
        self.refused = ""

    def findings(self, names: Sequence[str]) -> list[Finding]:
        """Make all trials, build them some at a time, run and judge them."""
        entries = {entry.name: entry for entry in self.accelerator.entries}
        made: list[Trial] = []
        for name in names:
            ways = list(range(max(1, len(entries[name].numeric))))
            tally = self.tallies[name] = _Tally(entries[name], ways)
            if entries[name].emit is None:
                tally.fail("not tried", "it has no C template")
                continue
            try:
                own = list(trials(entries[name], self.accelerator, self.links))
                for trial in own:
                    trial.function(self.accelerator)
            except NoTrialError as error:
                tally.fail("not tried", str(error))
                continue
            tally.variants = len(own)
            made += own
        for start in range(0, len(made), _TOGETHER):
            self._program(made[start : start + _TOGETHER], f"{start} of {len(made)}")
        return [self.tallies[name].finding(self.accelerator.path) for name in names]

    # --- building -----------------------------------------------------------------------------
    def _program(self, chosen: Sequence[Trial], progress: str) -> None:
        if not self.refused:
            self.tell(f"{self.accelerator.name}: compiling, {progress}")
        path = self.refused or self._built(chosen)
        if isinstance(path, Path):
            self.tell(f"{self.accelerator.name}: running, {progress}")
            self._run(path, chosen)
        elif len(chosen) == 1 or self._is_hopeless():
            for trial in chosen:
                self.tallies[trial.entry.name].fail("not built", self.refused or path)
        else:
            half = len(chosen) // 2
            self._program(chosen[:half], progress)
            self._program(chosen[half:], progress)

    def _built(self, chosen: Sequence[Trial]) -> Path | str:
        """Return the program of some trials, or why it cannot be built."""
        try:
            functions = [trial.function(self.accelerator) for trial in chosen]
            return self._compiled(battery_text(self.accelerator, functions))
        except HardwareError as error:
            return error.diagnostics[0].message

    def _compiled(self, text: str) -> Path | str:
        try:
            path = build_text(text, "trials", self.accelerator, self.folder, _COMPILE_SECONDS)
        except ToolError as error:
            if error.diagnostics[0].code != "E505":
                raise
            # Without the folder, which differs, what is alike is told together.
            return re.sub(r"\S*/(?=trials\.c)", "", error.diagnostics[0].message)
        self.compiles = True
        return path

    def _is_hopeless(self) -> bool:
        """Return whether no program of the description compiles, not even without trials."""
        if not self.compiles and not self.refused:
            found = self._compiled(bare_text(self.accelerator))
            self.refused = found if isinstance(found, str) else ""
        return bool(self.refused)

    # --- running ------------------------------------------------------------------------------
    def _run(self, path: Path, chosen: Sequence[Trial]) -> None:
        asked: list[_Asked] = []
        size = 0
        for number, trial in enumerate(chosen):
            if self.tallies[trial.entry.name].status != "right":
                continue
            for one in self._asked(number, trial):
                asked.append(one)
                size += one.batch.bytes
                if size >= _ONCE:
                    self._ask(path, asked)
                    asked, size = [], 0
        self._ask(path, asked)

    def _asked(self, number: int, trial: Trial) -> Iterator[_Asked]:
        """Yield the batches of a trial: some sets for each combination of its extents."""
        digest = hashlib.sha256(f"{self.seed} {trial.name}".encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        tally = self.tallies[trial.entry.name]
        chosen = combinations(trial.entry, generator)
        if not chosen:
            tally.fail("not tried", "no extents satisfy its constraints")
        tally.combinations = max(tally.combinations, len(chosen))
        wanted = max(_FEW, ceil(self.samples / len(chosen) / tally.variants)) if chosen else 0
        for symbols in chosen:
            limit = self._most(trial, symbols)
            turns = ceil(wanted / limit)
            sets = ceil(wanted / turns)
            plain = self._deviating(trial, False)
            meanings = {way: Meaning(plain, symbols, sets, way) for way in tally.ways}
            for _ in range(turns):
                # Conversions to narrow types overflow; that is what they are for.
                with np.errstate(all="ignore"):
                    arrays = tuple(
                        filled(s.operand, self._symbols(trial, s.call, symbols), sets, generator)
                        for s in trial.slots
                    )
                written = [n for n, s in enumerate(trial.slots) if s.operand.role != "in"]
                numbers = given(trial.entry.instruction, symbols)
                batch = Batch(number, numbers, arrays, tuple(written))
                yield _Asked(trial, meanings, symbols, batch, arrays)

    def _deviating(self, trial: Trial, tested: bool) -> Trial:
        """Return a trial whose instructions do what is recorded: the others, or all."""
        entries = tuple(
            self.deviations[e.name].entry
            if e.name in self.deviations and (tested or at != trial.tested)
            else e
            for at, e in enumerate(trial.entries)
        )
        return trial if entries == trial.entries else replace(trial, entries=entries)

    def _off(self, entries: Iterable[Entry]) -> float:
        """Return how far results may be off by what is recorded of some instructions."""
        return sum(self.deviations[e.name].off for e in entries if e.name in self.deviations)

    @staticmethod
    def _symbols(trial: Trial, call: int, symbols: Mapping[str, int]) -> Mapping[str, int]:
        entry = trial.entries[call]
        own = {e.name: e.value for e in entry.instruction.extents if e.value is not None}
        return {**own, **(symbols if call == trial.tested else trial.symbols[call])}

    def _most(self, trial: Trial, symbols: Mapping[str, int]) -> int:
        """Return how many sets are interpreted, and given to the program, at once."""
        points = 1
        for number, entry in enumerate(trial.entries):
            values = self._symbols(trial, number, symbols)
            for statement in entry.instruction.statements:
                sizes = (int(v.extent.evaluate(values)) for v in statement.variables)
                points = max(points, prod(sizes))
        taken = sum(
            span_of(s.operand, self._symbols(trial, s.call, symbols)) * s.operand.dtype.bytes
            for s in trial.slots
        )
        return max(1, min(_POINTS // points, BATCH // max(1, taken)))

    def _ask(self, path: Path, asked: Sequence[_Asked]) -> None:
        """Run batches; where the program crashes, find out in which instruction."""
        if not asked:
            return
        batches = [one.batch for one in asked]
        outcome = run_battery(path, self.accelerator, batches, _RUN_SECONDS)
        if not isinstance(outcome, Crash):
            for one, answer in zip(asked, outcome, strict=True):
                self._judge(one, answer)
        elif len({one.trial.name for one in asked}) == 1:
            # Operands end where memory ends, or begin at any address that 'align' permits.
            memory = outcome.signal in ("SIGSEGV", "SIGBUS")
            why = _AT_MEMORY if memory else ""
            self.tallies[asked[0].trial.entry.name].fail("wrong", outcome.message + why)
        else:
            names = list(dict.fromkeys(one.trial.name for one in asked))
            first = set(names[: len(names) // 2])
            self._ask(path, [one for one in asked if one.trial.name in first])
            self._ask(path, [one for one in asked if one.trial.name not in first])

    # --- judging ------------------------------------------------------------------------------
    def _judge(self, one: _Asked, answer: Answer) -> None:
        trial, tally = one.trial, self.tallies[one.trial.entry.name]
        tally.sets += len(one.arrays[0])
        if answer.refused is not None:
            tally.fail("not tried", "the machine does not permit to use its registers")
        if answer.strays is not None:
            tally.fail("wrong", "it writes beside its operands")
        if tally.status != "right":
            return
        fill = {
            s.array: elements(array, s.operand, self._symbols(trial, s.call, one.symbols))
            for s, array in zip(trial.slots, one.arrays, strict=True)
        }
        for way in tuple(tally.ways):
            if (told := self._difference(one, fill, answer, way)) is not None:
                tally.ways.remove(way)
                if not tally.ways:
                    tally.fail("wrong", told)
        for at, got in zip(one.batch.written, answer.arrays, strict=True):
            operand, call = trial.slots[at].operand, trial.slots[at].call
            if not untouched(got, operand, self._symbols(trial, call, one.symbols)).all():
                tally.fail("wrong", "it writes between the rows of its operand")

    def _difference(self, one: _Asked, fill: Fill, answer: Answer, way: int) -> str | None:
        """Return the first result that is another than what one way gives, None if there is none.

        An instruction goes the same way at each execution, so what differs rules it out.  What
        differs as it is recorded to is no difference.
        """
        trial = one.trial
        off = self._off(e for at, e in enumerate(trial.entries) if at != trial.tested)
        told = self._differs(one, fill, answer, one.meanings[way], off)
        if told is None or trial.entry.name not in self.deviations:
            return told
        deviating = Meaning(self._deviating(trial, True), one.symbols, len(one.arrays[0]), way)
        off += self._off([trial.entry])
        told = self._differs(one, fill, answer, deviating, off)
        if told is None:
            self.tallies[trial.entry.name].deviates = True
        return told

    def _differs(
        self, one: _Asked, fill: Fill, answer: Answer, meaning: Meaning, off: float
    ) -> str | None:
        """Return the first result that is more than ``off`` from a meaning, None if none is."""
        trial, operations = one.trial, used(meaning.trial.entries)
        expected = meaning.compute(fill)
        for at, got in zip(one.batch.written, answer.arrays, strict=True):
            slot = trial.slots[at]
            actual = elements(got, slot.operand, self._symbols(trial, slot.call, one.symbols))
            wrong = differing(operations, expected[slot.array], actual, slot.operand.dtype, off)
            sets = wrong.reshape(len(wrong), -1).any(axis=1)
            if sets.any():
                first = int(np.argmax(sets))
                given = [(s, fill[s.array][first]) for s in trial.slots if s.operand.role != "out"]
                result = (slot, expected[slot.array][first], actual[first], wrong[first])
                return story(trial, one.symbols, given, result)
        return None
