"""What earlier searches measured: what this one begins with, and adds to."""

from collections.abc import Mapping, Sequence

from isamap.diagnostics import ArgumentsError, fail
from isamap.pipeline.options import Options
from isamap_search.features import features
from isamap_search.learned import Learned, learn
from isamap_search.objective import Candidate, Model
from isamap_search.plan import Measured
from isamap_search.records import Key, Record, Records, described, recalled

# Earlier measurements that a search begins with.
_REMEMBERED = 8


class Memory:
    """The records of earlier searches, and what they teach."""

    def __init__(self, model: Model, options: Options, symbols: Mapping[str, int]) -> None:
        self._model = model
        self._symbols = symbols
        self.records = Records(options.records) if options.records else None
        self.remembered: tuple[tuple[int, ...], ...] = ()
        self.learned: Learned | None = None
        self.told = "not used: no records are kept"
        if self.records is None:
            return
        self._key = Key.of(model.kernel, model.accelerator, options.threads, symbols)
        try:
            earlier = self.records.read(self._key)
            lesson = learn(self.records.alike(self._key))
        except OSError as error:
            text = f"cannot read the records '{self.records.path}': {error.strerror}"
            raise ArgumentsError(fail("E737", text)) from error
        assignments = [recalled(model.space, record) for record in earlier]
        points = dict.fromkeys(model.point(a) for a in assignments if a is not None)
        self.remembered = tuple(points)[:_REMEMBERED]
        self.learned, self.told = lesson.learned, lesson.told

    def order(self, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates in the order of the learned model."""
        assert self.learned is not None
        cycles = [candidate.cycles for candidate in ranked]
        scores = self.learned.scores(cycles, [self._features(c) for c in ranked])
        pairs = sorted(zip(scores, ranked, strict=True), key=lambda p: (p[0], p[1].point))
        return [candidate for _, candidate in pairs]

    def note(self, measured: Measured) -> None:
        """Append a measurement."""
        if self.records is None:
            return
        candidate = measured.candidate
        words = described(self._model.space, self._model.assignment(candidate.point))
        record = Record(
            words,
            measured.seconds,
            measured.ratio,
            measured.rounds,
            candidate.cycles,
            self._features(candidate),
        )
        try:
            self.records.append(self._key, record)
        except OSError as error:
            text = f"cannot write the records '{self.records.path}': {error.strerror}"
            raise ArgumentsError(fail("E737", text)) from error

    def _features(self, candidate: Candidate) -> dict[str, float]:
        return features(candidate, self._model.kernel, self._symbols)
