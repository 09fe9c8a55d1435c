"""A compiled kernel as a Python callable, in this process."""

import ctypes
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from isamap.diagnostics import ArgumentsError, ToolError, fail
from isamap.emit.source import CSource, Parameter
from isamap.run.arguments import check_arrays, described, infer_symbols
from isamap.run.protocol import shape_of

_LINE = 64


class Compiled:
    """A kernel in a shared library, called on numpy arrays.

    Arrays that are contiguous are used where they lie.  Calls from several threads at once are
    fine, each has a workspace of its own.  bf16, f8 and 4-bit arrays have the types of
    ``ml_dtypes``.  The library runs in this process: only load what you trust.
    """

    def __init__(
        self,
        source: CSource,
        path: Path,
        check: Callable[[Mapping[str, np.ndarray], Mapping[str, int]], None] | None = None,
    ) -> None:
        """Load a library.  ``check`` looks at the arrays and symbols of every call, and raises."""
        self.source = source
        self.path = path
        self._check = check
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolError(fail("E510", f"cannot load {path}: {error}")) from error
        integers = [ctypes.c_int64] * len(source.symbols)
        self._call = library[source.entry]
        self._call.argtypes = [
            *[ctypes.c_void_p] * len(source.parameters),
            *integers,
            ctypes.c_void_p,
            ctypes.c_int,
        ]
        self._call.restype = ctypes.c_int
        self._room = library[f"{source.entry}_workspace"]
        self._room.argtypes = [*integers, ctypes.c_int]
        self._room.restype = ctypes.c_size_t

    def __call__(
        self,
        *arrays: np.ndarray,
        out: np.ndarray | Mapping[str, np.ndarray] | None = None,
        threads: int = 1,
        symbols: Mapping[str, int] | None = None,
        **named: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Compute and return the written arrays by name, in the kernel's order.

        Inputs (``in``, ``const``, ``inout``) are given in the kernel's order, by name, or both;
        ``inout`` arrays are changed in place.  ``out`` are arrays to write to, allocated otherwise:
        one array if the kernel has one output, or a mapping by name.  ``symbols`` are extents that
        no shape tells.  ArgumentsError says what does not fit.
        """
        inputs = [p.name for p in self.source.parameters if p.is_input]
        if len(arrays) > len(inputs):
            message = f"takes {len(inputs)} arrays ({', '.join(inputs)}), found {len(arrays)}"
            raise ArgumentsError(fail("E526", f"{self.source.entry} {message}"))
        given = dict(zip(inputs, arrays, strict=False))
        if twice := sorted(given.keys() & named.keys()):
            raise ArgumentsError(fail("E527", f"{', '.join(twice)} is given twice"))
        targets = self._targets(out)
        return self.call({**given, **named}, symbols or {}, targets, threads)

    def call(
        self,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        threads: int = 1,
    ) -> dict[str, np.ndarray]:
        """Compute with arrays by name and return the written ones by name; see :meth:`__call__`."""
        self._check_names(arrays, out or {})
        if threads < 1:
            raise ArgumentsError(fail("E529", f"threads must be 1 or more, found {threads}"))
        given = {**arrays, **(out or {})}
        values = infer_symbols(self.source, given, symbols or {})
        check_arrays(self.source, given, values)
        if self._check is not None:
            self._check(given, values)
        used: dict[str, np.ndarray] = {}
        results: dict[str, np.ndarray] = {}
        for p in self.source.parameters:
            if p.is_output:
                results[p.name] = self._target(p, given.get(p.name), values)
                used[p.name] = _fitting(results[p.name], p)
        _check_apart(results)
        for p in self.source.parameters:
            if not p.is_output:
                used[p.name] = _apart(_fitting(given[p.name], p), p, results)
        self._invoke(used, values, threads)
        for name, array in results.items():
            if used[name] is not array:
                np.copyto(array, used[name])
        return results

    def _invoke(
        self, used: Mapping[str, np.ndarray], values: Mapping[str, int], threads: int
    ) -> None:
        integers = [values[s] for s in self.source.symbols]
        need = self._room(*integers, threads)
        # Kept in a name until the call is over: nothing else holds it.
        space = np.empty(need, np.uint8) if need else None
        pointers = [used[p.name].ctypes.data for p in self.source.parameters]
        workspace = space.ctypes.data if space is not None else None
        code = self._call(*pointers, *integers, workspace, threads)
        if code:
            given = ", ".join(f"{s} = {values[s]}" for s in self.source.symbols)
            message = f"{self.source.entry}: {self.source.failure(code)}"
            raise ArgumentsError(fail("E530", f"{message} for {given}" if given else message))

    def _targets(
        self, out: np.ndarray | Mapping[str, np.ndarray] | None
    ) -> Mapping[str, np.ndarray]:
        if out is None or isinstance(out, Mapping):
            return out or {}
        names = [p.name for p in self.source.parameters if p.role == "out"]
        if len(names) != 1:
            message = f"out= takes a mapping by name: the outputs are {', '.join(names)}"
            raise ArgumentsError(fail("E528", message))
        return {names[0]: out}

    def _check_names(self, arrays: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray]) -> None:
        roles = {p.name: p for p in self.source.parameters}
        faults = [
            fail("E531", f"{self.source.entry} has no input {name}")
            for name in arrays
            if name not in roles or not roles[name].is_input
        ]
        faults += [
            fail("E531", f"{self.source.entry} has no output {name}")
            for name in out
            if name not in roles or roles[name].role != "out"
        ]
        faults += [
            fail("E532", f"{name} takes a numpy array, found {type(array).__name__}")
            for name, array in {**arrays, **out}.items()
            if not isinstance(array, np.ndarray)
        ]
        if faults:
            raise ArgumentsError(faults)

    def _target(
        self, parameter: Parameter, given: np.ndarray | None, values: Mapping[str, int]
    ) -> np.ndarray:
        if given is None:
            return _aligned(shape_of(parameter, values), parameter)
        if not given.flags.writeable:
            raise ArgumentsError(fail("E533", f"{described(parameter)} is written, but read-only"))
        return given


def _aligned(shape: tuple[int, ...], parameter: Parameter) -> np.ndarray:
    """Return an array with undefined content that begins at a cache line, or farther apart."""
    size = int(np.prod(shape, dtype=np.int64)) * parameter.dtype.bytes
    step = max(_LINE, parameter.alignment)
    room = np.empty(size + step, np.uint8)
    start = -room.ctypes.data % step
    return room[start : start + size].view(parameter.dtype.numpy).reshape(shape)


def _fitting(array: np.ndarray, parameter: Parameter) -> np.ndarray:
    """Return ``array`` itself if C code can use it where it lies, else a copy."""
    if array.flags.c_contiguous and array.ctypes.data % parameter.alignment == 0:
        return array
    return _copied(array, parameter)


def _apart(
    array: np.ndarray, parameter: Parameter, results: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return ``array``, or a copy of it if a result may lie in the same memory."""
    if any(np.may_share_memory(array, result) for result in results.values()):
        return _copied(array, parameter)
    return array


def _copied(array: np.ndarray, parameter: Parameter) -> np.ndarray:
    copy = _aligned(array.shape, parameter)
    np.copyto(copy, array)
    return copy


def _check_apart(results: Mapping[str, np.ndarray]) -> None:
    for (one, a), (other, b) in combinations(results.items(), 2):
        if np.may_share_memory(a, b):
            raise ArgumentsError(fail("E534", f"{one} and {other} lie in the same memory"))
