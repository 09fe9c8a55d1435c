"""Frozen data whose hash is computed once: it is looked up again and again."""


class Hashed:
    """Room for a hash; no part of what a node is."""

    __slots__ = ("_hash",)

    _hash: int

    def _keep(self, value: int) -> int:
        object.__setattr__(self, "_hash", value)
        return value
