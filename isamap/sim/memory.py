"""The arrays of a lowered kernel while it is executed."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from isamap.diagnostics import ArgumentsError, fail
from isamap.interp.arithmetic import Arithmetic
from isamap.interp.rounding import Values
from isamap.interp.tables import carried
from isamap.ir.index import Div, Index, Mod, Name, Read
from isamap.lower.nodes import Array, LoweredKernel

Environment: TypeAlias = dict[str, Any]
"""Values of symbols and loop counters; integer arrays of them where many points are taken."""

Number: TypeAlias = Callable[[Environment], Any]


class LoweredFault(AssertionError):
    """A lowered kernel does what it must not do."""


class ArrayObserver(Protocol):
    """Sees every access to an array in memory."""

    def __call__(self, array: str, addresses: Values, write: bool) -> None:
        """Take note of a read or a write of elements."""
        ...


class Memory:
    """Flat arrays of carried values by name; every access is checked."""

    def __init__(
        self, lowered: LoweredKernel, arithmetic: Arithmetic, observer: ArrayObserver | None
    ) -> None:
        self.arithmetic = arithmetic
        self.observer = observer
        self.declared = {a.name: a for a in lowered.arrays}
        self.data: dict[str, Values] = {}

    def load(self, arrays: Mapping[str, Values], environment: Environment) -> None:
        """Take inputs by name; fill all else with values that show when they are used."""
        for array in self.declared.values():
            size = int(array.size.evaluate(environment))
            if array.contents is not None:
                self.data[array.name] = carried(array.contents, self.arithmetic)
            elif array.role in ("in", "const", "inout"):
                given = arrays.get(array.name)
                if given is None:
                    raise ArgumentsError(fail("E211", f"no array for {array.name}"))
                if given.size != size:
                    message = f"{array.name} has {size} elements, the array {given.size}"
                    raise ArgumentsError(fail("E212", message))
                content = self.arithmetic.encode(np.asarray(given), array.dtype).reshape(-1)
                changes = array.role == "inout"
                self.data[array.name] = content.copy() if changes else content
            else:
                self.data[array.name] = np.empty(size, self.arithmetic.carrier(array.dtype))
                self.poison(array)

    def poison(self, array: Array) -> None:
        """Make the content of an array unlike anything that a kernel computes."""
        data = self.data[array.name]
        data[...] = self._unlike(data)

    @staticmethod
    def _unlike(data: Values) -> float:
        return np.nan if data.dtype.kind == "f" else 1 if data.dtype.kind == "b" else 93

    def forget(self, array: Array, before: Values) -> None:
        """Give an array the content that it had, and poison where that has changed."""
        data = self.data[array.name]
        changed = data != before
        data[...] = before
        before[changed] = data[changed] = self._unlike(data)

    def array(self, name: str) -> Array:
        """Return the declaration of an array."""
        if name not in self.declared:
            raise LoweredFault(f"there is no array {name}")
        return self.declared[name]

    def read(self, name: str, addresses: Values, what: str) -> Values:
        """Return elements."""
        self._check(name, addresses, f"{what} reads")
        if self.observer is not None:
            self.observer(name, addresses, False)
        return np.asarray(self.data[name][addresses])

    def write(self, name: str, addresses: Values, content: Values, what: str) -> None:
        """Set elements."""
        self._check(name, addresses, f"{what} writes")
        if self.observer is not None:
            self.observer(name, addresses, True)
        self.data[name][addresses] = content

    def _check(self, name: str, addresses: Values, what: str) -> None:
        size = self.data[name].size
        if addresses.size and (addresses.min() < 0 or addresses.max() >= size):
            wrong = int(np.ravel(addresses[(addresses < 0) | (addresses >= size)])[0])
            raise LoweredFault(f"{what} {name}[{wrong}], which has {size} elements")

    def number(self, index: Index) -> Number:
        """Return the function that evaluates an index expression."""
        value = index.constant
        if value is not None:
            return lambda environment: value
        for atom in index.reads:
            self.array(atom.buffer)
        # One expression compiled once: evaluating the tree at every call would cost more than
        # the call.
        source = f"lambda e: {_source(index)}"
        compiled: Number = eval(source, {"read": self._index_at})
        return compiled

    def _index_at(self, name: str, address: Any) -> Any:
        values = self.arithmetic.index(self.read(name, np.asarray(address), "an index"))
        return values if values.ndim else int(values)


def _source(index: Index) -> str:
    """Return Python text for an index; names are looked up in the environment ``e``."""
    terms = []
    for monomial, factor in index.terms:
        parts = [str(factor)] if factor != 1 or not monomial else []
        for atom in monomial:
            match atom:
                case Name(name):
                    parts.append(f"e[{name!r}]")
                case Div(value, divisor):
                    parts.append(f"(({_source(value)})//{divisor})")
                case Mod(value, divisor):
                    parts.append(f"(({_source(value)})%{divisor})")
                case Read(buffer, indices):
                    (address,) = indices
                    parts.append(f"read({buffer!r}, {_source(address)})")
        terms.append("*".join(parts))
    return "+".join(terms) or "0"
