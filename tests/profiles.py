"""How many examples a property takes: a share of the loaded profile's."""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., None])


def examples(share: float) -> Callable[[Test], Test]:
    """Run a property on ``share`` of the profile's examples (at least 3): for costly ones."""
    count = max(3, round(settings().max_examples * share))

    def decorate(test: Test) -> Test:
        decorated: Test = settings(max_examples=count)(test)
        return decorated

    return decorate
