"""How much a search may spend."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """A number of trials, or seconds, or both: the search ends with whichever comes first.

    A search bounded by trials alone on the model alone is a function of its seed; the clock makes
    it none.
    """

    trials: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        assert self.trials is not None or self.seconds is not None
