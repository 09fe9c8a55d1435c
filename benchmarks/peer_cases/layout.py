"""How an image lies in memory: channels last, or in planes of a few channels."""

from dataclasses import dataclass

from peer_cases.problem import Array, readable

LANES = 16
"""Channels of a plane."""


@dataclass(frozen=True, slots=True)
class Layout:
    """``[height][width][channels]``, or ``[channels / 16][height][width][16]`` with ``planes``.

    The methods give the parts of a kernel's text, and move arrays.
    """

    planes: bool

    @property
    def name(self) -> str:
        """Its name in reports."""
        return "planes" if self.planes else "nhwc"

    def shape(self, sizes: tuple[int, ...], channels: int) -> str:
        """Return the shape of an image of so many rows and columns, or positions."""
        inner = ", ".join(map(str, sizes))
        if self.planes:
            return f"{channels // LANES}, {inner}, {LANES}"
        return f"{inner}, {channels}"

    def at(self, place: str, channel: str) -> str:
        """Return the indices of an element of an image."""
        return f"{channel}o, {place}, {channel}i" if self.planes else f"{place}, {channel}"

    def channels(self, *counts: int) -> str:
        """Return the shape of weights over these channels."""
        return ", ".join(f"{n // LANES}, {LANES}" if self.planes else f"{n}" for n in counts)

    def channel(self, *names: str) -> str:
        """Return the indices of these channels of weights."""
        return ", ".join(f"{name}o, {name}i" if self.planes else name for name in names)

    def put(self, image: Array) -> Array:
        """Return an image, given as [channels, height, width], as it lies."""
        if not self.planes:
            return image.transpose(1, 2, 0)
        channels, height, width = image.shape
        return image.reshape(channels // LANES, LANES, height, width).transpose(0, 2, 3, 1)

    def get(self, y: Array, channels: int, height: int, width: int) -> Array:
        """Return an image that lies so as [1, channels, height, width]."""
        moved: Array
        if self.planes:
            moved = y.reshape(channels // LANES, height, width, LANES).transpose(0, 3, 1, 2)
        else:
            moved = y.reshape(height, width, channels).transpose(2, 0, 1)
        return readable(moved.reshape(1, channels, height, width))


def layouts(*channels: int) -> list[Layout]:
    """Return the layouts that images with these numbers of channels can have."""
    planes = [Layout(True)] if all(count % LANES == 0 for count in channels) else []
    return [Layout(False), *planes]
