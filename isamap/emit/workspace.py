"""Where a kernel's local arrays lie in its workspace."""

from isamap.emit import literals, names
from isamap.emit.expressions import Env, operand
from isamap.lower.nodes import Array, LoweredKernel

LINE = 64
"""Bytes of a cache line: every array begins at one."""

HELPERS = f"""\
/* Bytes that an array takes in a workspace: an odd number of cache lines, so that rows of several
   arrays do not fall on the same sets of a cache. */
static inline size_t isamap_room(int64_t bytes)
{{
    const size_t lines = bytes > 0 ? ((size_t)bytes + {LINE - 1}) / {LINE} : 0;
    return (lines | 1) * {LINE};
}}
"""


def local_arrays(lowered: LoweredKernel) -> tuple[Array, ...]:
    """Return the arrays that lie in the workspace, in order: shared ones, then private ones."""
    found = [a for a in lowered.arrays if a.role == "local"]
    return tuple(sorted(found, key=lambda a: a.private))


def size_lines(arrays: tuple[Array, ...], env: Env) -> list[str]:
    """Return the body of ``NAME_workspace``."""
    if not arrays:
        return ["return 0;"]
    lines = [f"size_t bytes = {LINE};  /* to align the start */"]
    for array in arrays:
        room = _room(array, env)
        lines.append(f"bytes += {f'(size_t)threads * {room}' if array.private else room};")
    return [*lines, "return bytes;"]


def pointer_lines(arrays: tuple[Array, ...], used: frozenset[str], env: Env) -> list[str]:
    """Return the statements that make pointers to the shared arrays and bases of the others."""
    wanted = [number for number, array in enumerate(arrays) if array.name in used]
    if not wanted:
        return []
    lines = [
        f"char *room = (char *)(((uintptr_t)workspace + {LINE - 1}) & ~(uintptr_t){LINE - 1});"
    ]
    for number, array in enumerate(arrays[: wanted[-1] + 1]):
        c_type, pointer = literals.memory_type(array.dtype), names.buffer(array.name)
        room = _room(array, env)
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


def private_line(array: Array, thread: str) -> str:
    """Return the declaration of a private array's pointer for one thread."""
    c_type, pointer = literals.memory_type(array.dtype), names.buffer(array.name)
    return f"{c_type} *const {pointer} = ({c_type} *)(all_{pointer} + {thread} * room_{pointer});"


def _room(array: Array, env: Env) -> str:
    return f"isamap_room({operand(array.size, env)} * {array.dtype.bytes})"
