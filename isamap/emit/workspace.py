"""Where arrays that a kernel does not declare lie: in its workspace, or in what it prepared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isamap.emit import literals, names
from isamap.emit.expressions import Env, operand
from isamap.lower.nodes import Array

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

/* Hides how far apart arrays lie: compilers that know it reach all of them from one pointer, by
   distances that no instruction has room for. */
#if defined(__GNUC__)
#define ISAMAP_UNRELATED(pointer) __asm__("" : "+r"(pointer))
#else
#define ISAMAP_UNRELATED(pointer) ((void)0)
#endif
"""


@dataclass(frozen=True, slots=True)
class Block:
    """Arrays in the order in which they lie behind one pointer: shared ones, then each thread's.

    ``base`` is the pointer's name in C; arrays of a ``constant`` block are only read.  Every array
    begins at a multiple of ``line`` bytes.
    """

    base: str
    arrays: tuple[Array, ...]
    line: int
    constant: bool = False

    @classmethod
    def of(
        cls,
        base: str,
        arrays: Iterable[Array],
        alignments: Mapping[str, int],
        constant: bool = False,
    ) -> "Block":
        """Lay out some arrays, for which instructions ask for ``alignments``."""
        found = sorted(arrays, key=lambda a: a.private)
        line = max([LINE, *(alignments.get(a.name, 1) for a in found)])
        return cls(base, tuple(found), line, constant)

    @property
    def private(self) -> tuple[Array, ...]:
        """The arrays that exist once per thread."""
        return tuple(array for array in self.arrays if array.private)

    @property
    def has_private(self) -> bool:
        """Whether there are such arrays."""
        return bool(self.private)

    def size_lines(self, env: Env) -> list[str]:
        """Return the body of the function that tells how many bytes the block takes."""
        if not self.arrays:
            return ["return 0;"]
        lines = ["if (threads < 1) threads = 1;"] if self.has_private else []
        lines.append(f"size_t bytes = {self.line};  /* to align the start */")
        for array in self.arrays:
            room = self._room(array, env)
            lines.append(f"bytes += {f'(size_t)threads * {room}' if array.private else room};")
        return [*lines, "return bytes;"]

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """Return how many bytes the block takes for one thread, of symbols at most so large."""
        rooms = (-(-int(a.size.evaluate(sizes)) * a.dtype.bytes // self.line) for a in self.arrays)
        return sum((lines | 1) * self.line for lines in rooms) + self.line * bool(self.arrays)

    def pointer_lines(self, env: Env) -> list[str]:
        """Return the statements that make pointers to the shared arrays, bases of the others."""
        if not self.arrays:
            return []
        byte, room = f"{self._const}char", _ROOM[self.base]
        start = f"((uintptr_t){self.base} + {self.line - 1}) & ~(uintptr_t){self.line - 1}"
        lines = [f"{byte} *{room} = ({byte} *)({start});"]
        for array in self.arrays:
            c_type = self._const + literals.memory_type(array.dtype)
            pointer = names.buffer(array.name)
            step = self._room(array, env)
            if array.private:
                lines.append(f"char *const all_{pointer} = {room};")
                lines.append(f"const size_t room_{pointer} = {step};")
                step = f"(size_t)threads * room_{pointer}"
            else:
                lines.append(f"{c_type} *const {pointer} = ({c_type} *){room};")
            if array is not self.arrays[-1]:
                lines += [f"{room} += {step};", f"ISAMAP_UNRELATED({room});"]
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

    @property
    def _const(self) -> str:
        return "const " if self.constant else ""

    def _room(self, array: Array, env: Env) -> str:
        return f"isamap_room({operand(array.size, env)} * {array.dtype.bytes}, {self.line})"


_ROOM = {"workspace": "room", "prepared": "kept"}
"""The C variable that goes through a block."""
