"""Where a kernel's local arrays lie in its workspace."""

from collections.abc import Mapping
from dataclasses import dataclass

from isamap.emit import literals, names
from isamap.emit.expressions import Env, operand
from isamap.lower.nodes import Array, LoweredKernel

LINE = 64
"""Bytes of a cache line: every array begins at one, or farther apart if an instruction asks."""

HELPERS = """\
/* Bytes that an array takes in a workspace: an odd number of cache lines, so that rows of several
   arrays do not fall on the same sets of a cache. */
static inline size_t isamap_room(int64_t bytes, size_t line)
{
    const size_t lines = bytes > 0 ? ((size_t)bytes + line - 1) / line : 0;
    return (lines | 1) * line;
}
"""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The local arrays in the order in which they lie: shared ones, then those of each thread.

    Every array begins at a multiple of ``line`` bytes.
    """

    arrays: tuple[Array, ...]
    line: int

    @classmethod
    def of(cls, lowered: LoweredKernel, alignments: Mapping[str, int]) -> "Workspace":
        """Lay out the local arrays of a kernel, whose instructions ask for ``alignments``."""
        found = [a for a in lowered.arrays if a.role == "local"]
        line = max([LINE, *(alignments.get(a.name, 1) for a in found)])
        return cls(tuple(sorted(found, key=lambda a: a.private)), line)

    @property
    def has_private(self) -> bool:
        """Whether some array exists once per thread."""
        return any(array.private for array in self.arrays)

    def size_lines(self, env: Env) -> list[str]:
        """Return the body of ``NAME_workspace``."""
        if not self.arrays:
            return ["return 0;"]
        lines = ["if (threads < 1) threads = 1;"] if self.has_private else []
        lines.append(f"size_t bytes = {self.line};  /* to align the start */")
        for array in self.arrays:
            room = self._room(array, env)
            lines.append(f"bytes += {f'(size_t)threads * {room}' if array.private else room};")
        return [*lines, "return bytes;"]

    def pointer_lines(self, used: frozenset[str], env: Env) -> list[str]:
        """Return the statements that make pointers to the shared arrays, bases of the others."""
        wanted = [number for number, array in enumerate(self.arrays) if array.name in used]
        if not wanted:
            return []
        mask = f"(uintptr_t){self.line - 1}"
        lines = [f"char *room = (char *)(((uintptr_t)workspace + {self.line - 1}) & ~{mask});"]
        for number, array in enumerate(self.arrays[: wanted[-1] + 1]):
            c_type, pointer = literals.memory_type(array.dtype), names.buffer(array.name)
            room = self._room(array, env)
            step = f"(size_t)threads * {room}" if array.private else room
            if number in wanted and array.private:
                lines.append(f"char *const all_{pointer} = room;")
                lines.append(f"const size_t room_{pointer} = {room};")
                step = f"(size_t)threads * room_{pointer}"
            elif number in wanted:
                lines.append(f"{c_type} *const {pointer} = ({c_type} *)room;")
            if number < wanted[-1]:
                lines.append(f"room += {step};")
        return lines

    def private_lines(self, thread: str, used: frozenset[str]) -> list[str]:
        """Return the declarations of the private arrays' pointers for one thread."""
        lines = []
        for array in self.arrays:
            if array.private and array.name in used:
                c_type, pointer = literals.memory_type(array.dtype), names.buffer(array.name)
                start = f"all_{pointer} + {thread} * room_{pointer}"
                lines.append(f"{c_type} *const {pointer} = ({c_type} *)({start});")
        return lines

    def _room(self, array: Array, env: Env) -> str:
        return f"isamap_room({operand(array.size, env)} * {array.dtype.bytes}, {self.line})"
