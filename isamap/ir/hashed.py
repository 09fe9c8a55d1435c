"""Frozen data whose hash, or whatever else they are asked again and again, is computed once."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Hashed:
    """Room for a hash; no part of what a node is."""

    __slots__ = ("_hash",)

    _hash: int

    def _keep(self, value: int) -> int:
        object.__setattr__(self, "_hash", value)
        return value


class Asked(Hashed):
    """Room for the answers to questions about frozen data; no part of what they are."""

    __slots__ = ("_answers",)

    _answers: dict[Hashable, Any]

    def answer(self, question: Hashable, find: Callable[[], _T]) -> _T:
        """Return what ``find`` returns, which is called once for each question."""
        try:
            answers = self._answers
        except AttributeError:
            answers = {}
            object.__setattr__(self, "_answers", answers)
        if question not in answers:
            answers[question] = find()
        found: _T = answers[question]
        return found
