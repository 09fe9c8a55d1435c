"""A compiled kernel as a Python callable, in this process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from isamap.diagnostics import ArgumentsError, fail
from isamap.emit.source import CSource, Parameter
from isamap.run.arguments import check_arrays, described, infer_symbols, not_taken
from isamap.run.library import Bound, Library, array_for
from isamap.run.protocol import shape_of

Check = Callable[[Mapping[str, np.ndarray], Mapping[str, int]], None]
CheckGiven = Callable[[Mapping[str, np.ndarray]], None]
"""Looks at the arrays and symbols of a call, and raises."""

Given = np.ndarray | np.generic
"""An array; one of no dimensions may be a scalar."""

Out = np.ndarray | Mapping[str, np.ndarray] | None
"""Arrays to write to: one if the kernel has one output, or a mapping by name."""


@dataclass(frozen=True, slots=True)
class _Held:
    """Constants that were given: their names, the arrays that calls still take, the extents that
    their shapes told, and what was prepared of them."""

    names: frozenset[str]
    arrays: Mapping[str, np.ndarray]
    symbols: Mapping[str, int]
    prepared: np.ndarray | None


_NOTHING = _Held(frozenset(), {}, {}, None)


class _Caller:
    """What is called with the arrays of a kernel that it does not hold yet."""

    def __init__(
        self, library: Library, held: _Held, check: Check | None, check_given: CheckGiven | None
    ) -> None:
        self.source = library.source
        self._library = library
        self._held = held
        self._check = check
        self._check_given = check_given

    def __call__(
        self,
        *arrays: Given,
        out: Out = None,
        threads: int = 1,
        symbols: Mapping[str, int] | None = None,
        **named: Given,
    ) -> dict[str, np.ndarray]:
        """Compute and return the written arrays by name, in the kernel's order.

        Inputs (``in``, ``const``, ``inout``) are given in the kernel's order, by name, or both;
        ``inout`` arrays are changed in place.  ``out`` are arrays to write to, allocated otherwise.
        ``symbols`` are extents that no shape tells.  ArgumentsError says what does not fit.
        """
        given = self._named(arrays, named)
        return self.call(given, symbols or {}, self._targets(out), threads)

    def call(
        self,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        threads: int = 1,
    ) -> dict[str, np.ndarray]:
        """Compute with arrays by name and return the written ones by name; see :meth:`__call__`."""
        values, used, results = self._arranged(arrays, symbols, out, threads)
        self._bound(used, values, threads)()
        for name, array in results.items():
            if used[name] is not array:
                np.copyto(array, used[name])
        return results

    def bind(
        self,
        *arrays: Given,
        out: Out = None,
        threads: int = 1,
        symbols: Mapping[str, int] | None = None,
        **named: Given,
    ) -> "Repeated":
        """Return a function without arguments that computes on these very arrays, again and again.

        What :meth:`__call__` does with its arguments is done once, here: a small kernel takes less
        time than that.  Arrays must lie where C code can use them, ArgumentsError otherwise.
        """
        given = self._named(arrays, named)
        targets = self._targets(out)
        values, used, results = self._arranged(given, symbols, targets, threads)
        placed = {**given, **results}
        moved = [name for name in used if name in placed and used[name] is not placed[name]]
        if moved:
            told = ", ".join(described(self.source.parameter(name)) for name in moved)
            text = f"{told}: a bound array must be contiguous, aligned, and no part of another one"
            raise ArgumentsError(fail("E536", text))
        return Repeated(self._bound(used, values, threads), results)

    # --- inside ---------------------------------------------------------------------------------
    @property
    def _inputs(self) -> list[str]:
        return [
            p.name for p in self.source.parameters if p.is_input and p.name not in self._held.names
        ]

    def _named(self, arrays: Sequence[Given], named: Mapping[str, Given]) -> dict[str, np.ndarray]:
        inputs = self._inputs
        if len(arrays) > len(inputs):
            message = f"takes {len(inputs)} arrays ({', '.join(inputs)}), found {len(arrays)}"
            raise ArgumentsError(fail("E526", f"{self.source.entry} {message}"))
        given = dict(zip(inputs, arrays, strict=False))
        if twice := sorted((given.keys() | self._held.names) & named.keys()):
            raise ArgumentsError(fail("E527", f"{', '.join(twice)} is given twice"))
        return {name: _array_of(one) for name, one in {**given, **named}.items()}

    def _arranged(
        self,
        arrays: Mapping[str, np.ndarray],
        symbols: Mapping[str, int] | None,
        out: Mapping[str, np.ndarray] | None,
        threads: int,
    ) -> tuple[dict[str, int], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return extents, the arrays that C code takes, and those that the caller gets."""
        self._check_names(arrays, out or {})
        _check_threads(threads)
        given = {**arrays, **(out or {})}
        values = infer_symbols(self.source, given, self._symbols(symbols or {}))
        check_arrays(self.source, given, values, self._held.names)
        if self._check_given is not None:
            self._check_given(arrays)
        if self._check is not None:
            self._check({**self._held.arrays, **given}, values)
        used: dict[str, np.ndarray] = {}
        results: dict[str, np.ndarray] = {}
        for p in self.source.parameters:
            if p.is_output:
                results[p.name] = self._target(p, given.get(p.name), values)
                used[p.name] = _fitting(results[p.name], p)
        _check_apart(results)
        for p in self.source.parameters:
            if p.name in self._held.arrays:
                used[p.name] = _apart(self._held.arrays[p.name], p, results)
            elif not p.is_output and p.name not in self._held.names:
                used[p.name] = _apart(_fitting(given[p.name], p), p, results)
        return values, used, results

    def _symbols(self, given: Mapping[str, int]) -> dict[str, int]:
        """Return the extents that are known: those of the constants must not be others."""
        for name, value in self._held.symbols.items():
            if given.get(name, value) != value:
                text = f"the constants are for {name} = {value}, not {given[name]}"
                raise ArgumentsError(fail("E535", text))
        return {**self._held.symbols, **given}

    def _bound(
        self, used: Mapping[str, np.ndarray], values: Mapping[str, int], threads: int
    ) -> "_Checked":
        prepared = self._held.prepared
        if prepared is None:
            prepared = _prepared(self._library, used, values, threads)
        return _Checked(self._library.bind(used, values, prepared, threads), self.source, values)

    def _targets(self, out: Out) -> Mapping[str, np.ndarray]:
        if out is None or isinstance(out, Mapping):
            return out or {}
        names = [p.name for p in self.source.parameters if p.role == "out"]
        if len(names) != 1:
            message = f"out= takes a mapping by name: the outputs are {', '.join(names)}"
            raise ArgumentsError(fail("E528", message))
        return {names[0]: out}

    def _check_names(self, arrays: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray]) -> None:
        roles = {p.name: p for p in self.source.parameters}
        inputs = self._inputs
        faults = [
            fail("E531", f"{self.source.entry} has no input {name}", hint=self._what_is(name))
            for name in arrays
            if name not in inputs
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

    def _what_is(self, name: str) -> str:
        """Return what a name is that is no input, or which inputs there are."""
        if name in self._held.names:
            return f"{name} is a constant that was given ahead, to prepare()"
        if any(p.name == name for p in self.source.parameters):
            return f"{name} is an output: an array to write it to is given with out="
        told = not_taken(name, dict(self.source.inner).get(name))
        return told or f"the inputs are: {', '.join(self._inputs) or 'none'}"

    def _target(
        self, parameter: Parameter, given: np.ndarray | None, values: Mapping[str, int]
    ) -> np.ndarray:
        if given is None:
            return array_for(parameter, shape_of(parameter, values))
        if not given.flags.writeable:
            raise ArgumentsError(fail("E533", f"{described(parameter)} is written, but read-only"))
        return given


class Compiled(_Caller):
    """A kernel in a shared library, called on numpy arrays.

    Arrays that are contiguous are used where they lie.  Calls from several threads at once are
    fine, each has a workspace of its own.  bf16, f8 and 4-bit arrays have the types of
    ``ml_dtypes``.  The library runs in this process: only load what you trust.
    """

    def __init__(
        self,
        source: CSource,
        path: Path,
        check: Check | None = None,
        check_given: CheckGiven | None = None,
    ) -> None:
        """Load a library.

        ``check`` looks at all arrays and symbols of every call, and raises; ``check_given`` at the
        arrays that are given, constants when they are.
        """
        super().__init__(Library(source, path), _NOTHING, check, check_given)
        self.path = path

    def prepare(
        self,
        *arrays: Given,
        threads: int = 1,
        symbols: Mapping[str, int] | None = None,
        **named: Given,
    ) -> "Prepared":
        """Return the kernel with its constants given, and whatever can be made of them made.

        All ``const`` arrays are given, in the kernel's order or by name.  They must not change as
        long as the result is called.  ``symbols`` are extents that their shapes do not tell and on
        which the preparing depends.
        """
        constants = [p.name for p in self.source.parameters if p.role == "const"]
        if len(arrays) > len(constants):
            told = ", ".join(constants) or "none"
            message = f"has {len(constants)} constants ({told}), found {len(arrays)} arrays"
            raise ArgumentsError(fail("E526", f"{self.source.entry} {message}"))
        every = {**dict(zip(constants, arrays, strict=False)), **named}
        given = {name: _array_of(one) for name, one in every.items()}
        if twice := sorted(set(constants[: len(arrays)]) & named.keys()):
            raise ArgumentsError(fail("E527", f"{', '.join(twice)} is given twice"))
        if other := sorted(given.keys() - set(constants)):
            text = f"{self.source.entry} has no constant {', '.join(other)}"
            raise ArgumentsError(fail("E531", text))
        self._check_names(given, {})
        _check_threads(threads)
        ahead = self.source.ahead
        values = infer_symbols(self.source, given, symbols or {}, ahead.symbols if ahead else ())
        self._check_constants(given, constants, values)
        if self._check_given is not None:
            self._check_given(given)
        used = {
            p.name: _fitting(given[p.name], p) for p in self.source.parameters if p.name in given
        }
        prepared = _prepared(self._library, used, values, threads)
        # What is only prepared is not needed any more, unless it is looked at in every call.
        only = ahead.only if ahead is not None and self._check is None else frozenset()
        kept = {name: array for name, array in used.items() if name not in only}
        held = _Held(frozenset(constants), kept, values, prepared)
        return Prepared(self._library, held, self._check, self._check_given)

    def _check_constants(
        self, given: Mapping[str, np.ndarray], constants: Sequence[str], values: Mapping[str, int]
    ) -> None:
        """ArgumentsError unless every constant is there, as far as extents are known."""
        others = [p.name for p in self.source.parameters if p.name not in constants]
        assumed = {s: values.get(s, 1) for s in self.source.symbols}
        check_arrays(self.source, given, assumed, others)


class Prepared(_Caller):
    """A compiled kernel whose constants were given; called with the other arrays."""


class Repeated:
    """A call on fixed arrays: calling it computes, and returns the written arrays by name.

    ``call`` does no more than that, and returns 0: the way with the least overhead.  One thread at
    a time may use either.
    """

    __slots__ = ("_checked", "call", "outputs")

    def __init__(self, checked: "_Checked", outputs: Mapping[str, np.ndarray]) -> None:
        self._checked = checked
        self.call = checked.bound.call
        self.outputs = dict(outputs)

    def __call__(self) -> dict[str, np.ndarray]:
        """Compute once more."""
        self._checked()
        return self.outputs


@dataclass(frozen=True, slots=True)
class _Checked:
    """A bound call that raises what its function refuses."""

    bound: Bound
    source: CSource
    values: Mapping[str, int]

    def __call__(self) -> None:
        _accept(self.bound.call(), self.source, self.values)


def _prepared(
    library: Library, used: Mapping[str, np.ndarray], values: Mapping[str, int], threads: int
) -> np.ndarray | None:
    code, prepared = library.prepare(used, values, threads)
    _accept(code, library.source, values)
    return prepared


def _accept(code: int, source: CSource, values: Mapping[str, int]) -> None:
    """ArgumentsError unless a function returned 0."""
    if code:
        given = ", ".join(f"{s} = {values[s]}" for s in source.symbols if s in values)
        message = f"{source.entry}: {source.failure(code)}"
        raise ArgumentsError(fail("E530", f"{message} for {given}" if given else message))


def _check_threads(threads: object) -> None:
    """ArgumentsError unless it is a number of threads, which an array of this name is not."""
    if not isinstance(threads, int | np.integer):
        what = "an array" if isinstance(threads, np.ndarray) else type(threads).__name__
        hint = "a buffer of the kernel that has this name is given by its position"
        raise ArgumentsError(fail("E529", f"threads must be a number, found {what}", hint=hint))
    if threads < 1:
        raise ArgumentsError(fail("E529", f"threads must be 1 or more, found {threads}"))


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


def _array_of(given: Given) -> np.ndarray:
    """Return an array of no dimensions for a scalar of numpy's; what is no array is told later."""
    return np.asarray(given) if isinstance(given, np.generic) else given


def _copied(array: np.ndarray, parameter: Parameter) -> np.ndarray:
    copy = array_for(parameter, array.shape)
    np.copyto(copy, array)
    return copy


def _check_apart(results: Mapping[str, np.ndarray]) -> None:
    for (one, a), (other, b) in combinations(results.items(), 2):
        if np.may_share_memory(a, b):
            raise ArgumentsError(fail("E534", f"{one} and {other} lie in the same memory"))
