"""What the parts of one lowering share: the kernel, the machine, names and arrays."""

from dataclasses import dataclass, field

from isamap.hw.accelerator import Accelerator
from isamap.ir.dtype import DType
from isamap.ir.index import Index, const
from isamap.ir.nodes import Buffer, Contents, Kernel, Literal
from isamap.lower.nodes import Array
from isamap.mapping.fragments.produce import Producers

SYMBOL_RANGE = (1, 1 << 40)
"""What is assumed of an extent that is known at run time only."""


@dataclass(slots=True)
class Context:
    """The kernel, with numbers for the extents that have one, and what lowering adds to it.

    What is a ``draft`` has that at the end of all its names.
    """

    kernel: Kernel
    accelerator: Accelerator
    producers: Producers
    arrays: list[Array] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    draft: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    @property
    def buffers(self) -> dict[str, Buffer]:
        """The kernel's buffers by name."""
        return {buffer.name: buffer for buffer in self.kernel.buffers}

    def for_draft(self, number: int) -> "Context":
        """Return what a draft of one statement is made in: there is nothing but the kernel."""
        return Context(self.kernel, self.accelerator, self.producers, draft=f"'{number}")

    def unique(self, name: str) -> str:
        """Return ``name``, or ``name`` with a number if it is taken, and take it."""
        # Numbers below the last one given out are taken: names are never given back.
        candidate, count = name + self.draft, self._numbers.get(name, 1)
        while candidate in self.names:
            count += 1
            candidate = f"{name}_{count}{self.draft}"
        self._numbers[name] = count
        self.names.add(candidate)
        return candidate

    def workspace(self, name: str, dtype: DType, size: Index, private: bool = False) -> str:
        """Add an array to the workspace and return its name."""
        unique = self.unique(name)
        self.arrays.append(Array(unique, "local", dtype, size, private))
        return unique

    def table(self, literal: Literal, count: int) -> str:
        """Return the name of a table of so many elements that are all the same number."""
        contents = Contents((count,), (literal,) * count)
        for array in self.arrays:
            if array.contents == contents and array.dtype == literal.dtype:
                return array.name
        unique = self.unique("same")
        size = const(count)
        self.arrays.append(Array(unique, "table", literal.dtype, size, contents=contents))
        return unique
