"""The functions of a kernel's shared library, loaded into this process."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from isamap.diagnostics import ToolError, fail
from isamap.emit.source import CSource, Parameter

LINE = 64
"""Bytes to which arrays that are made here are aligned: a cache line."""


class Library:
    """Calls the functions that :class:`isamap.emit.source.CSource` describes, with addresses."""

    def __init__(self, source: CSource, path: Path) -> None:
        """Load a library; ToolError if it cannot be."""
        self.source = source
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolError(fail("E510", f"cannot load {path}: {error}")) from error
        integers = [ctypes.c_int64] * len(source.symbols)
        self._repeat = library[f"{source.entry}_repeat"]
        self._room = library[f"{source.entry}_workspace"]
        self._room.argtypes = [*integers, ctypes.c_int]
        self._room.restype = ctypes.c_size_t
        if source.ahead is not None:
            own = [ctypes.c_int64] * len(source.ahead.symbols)
            pointers = [ctypes.c_void_p] * len(source.ahead.parameters)
            self._prepare = library[f"{source.entry}_prepare"]
            self._prepare.argtypes = [*pointers, *own, *[ctypes.c_void_p] * 2, ctypes.c_int]
            self._prepared = library[f"{source.entry}_prepared"]
            self._prepared.argtypes = own
            self._prepared.restype = ctypes.c_size_t
            self._prepare_room = library[f"{source.entry}_prepare_workspace"]
            self._prepare_room.argtypes = [*own, ctypes.c_int]
            self._prepare_room.restype = ctypes.c_size_t

    def prepare(
        self, used: Mapping[str, np.ndarray], values: Mapping[str, int], threads: int
    ) -> tuple[int, np.ndarray | None]:
        """Return the result of preparing constants, and what was prepared (None: nothing is)."""
        ahead = self.source.ahead
        if ahead is None:
            return 0, None
        integers = [values[s] for s in ahead.symbols]
        # Never empty, so that it has an address.
        prepared = aligned(self._prepared(*integers) or 1)
        space = _space(self._prepare_room(*integers, threads))
        code = self._prepare(
            *(used[p.name].ctypes.data for p in ahead.parameters),
            *integers,
            prepared.ctypes.data,
            None if space is None else space.ctypes.data,
            threads,
        )
        return int(code), prepared

    def bind(
        self,
        used: Mapping[str, np.ndarray],
        values: Mapping[str, int],
        prepared: np.ndarray | None,
        threads: int,
    ) -> "Bound":
        """Return the call on some arrays, with a workspace of its own."""
        integers = [values[s] for s in self.source.symbols]
        space = _space(self._room(*integers, threads))
        arrays = [used[p.name] for p in self.source.taken]
        blocks = [space] if self.source.ahead is None else [prepared, space]
        addresses = [0 if a is None else a.ctypes.data for a in (*arrays, *blocks)]
        at = len(arrays)
        arguments = [*addresses[:at], *integers, *addresses[at:], threads]
        return Bound(self._repeat, arguments, (*arrays, *blocks))


class Bound:
    """A call whose arguments are fixed: ``call()`` computes, and returns the function's result.

    Its arrays, workspace included, live as long as ``call`` does.  One thread at a time may use it.
    """

    __slots__ = ("call",)

    def __init__(
        self,
        function: "ctypes._NamedFuncPointer",
        arguments: Sequence[int],
        arrays: tuple[np.ndarray | None, ...],
    ) -> None:
        values = (ctypes.c_int64 * len(arguments))(*arguments)
        # Converted once: converting arguments takes longer than a small kernel.
        place = _Place(ctypes.addressof(values))
        place.held = (values, *arrays)
        self.call: Callable[[], int] = partial(function, place, ctypes.c_int64(1))


class _Place(ctypes.c_void_p):
    """An address, with what must live as long as it is used."""

    held: tuple[object, ...]


def aligned(size: int, alignment: int = LINE) -> np.ndarray:
    """Return bytes with undefined content that begin at a cache line, or farther apart."""
    step = max(LINE, alignment)
    room = np.empty(size + step, np.uint8)
    start = -room.ctypes.data % step
    return room[start : start + size]


def array_for(parameter: Parameter, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array with undefined content where a parameter's may begin."""
    size = int(np.prod(shape, dtype=np.int64)) * parameter.dtype.bytes
    return aligned(size, parameter.alignment).view(parameter.dtype.numpy).reshape(shape)


def _space(need: int) -> np.ndarray | None:
    return np.empty(need, np.uint8) if need else None
