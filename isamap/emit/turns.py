"""C functions that turn rows of memory into columns, a block at a time in vectors.

``memcpy`` and shuffles of the compiler's own vectors, which both GCC (12 or newer) and Clang make
the instructions of any machine from; other compilers take an element at a time.  A block of n x n
units takes log2 n rounds of n shuffles: each weaves the first half of the rows into the second.
"""

from collections.abc import Sequence
from math import log2

from isamap.lower.turns import VECTOR

_SIZES = (1, 2, 4, 8)

_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}

_FUNCTION = """\
/* Columns of units of {bytes} bytes become rows; rows of `from` begin `pitch` bytes apart.  Each
   `piece` of columns begins `step` bytes apart in `to`, its rows where `lines` says. */
ISAMAP_COPY void isamap_turn{bytes}(char *restrict to, int64_t step, int64_t piece,
                         const int64_t *lines, const char *restrict from, int64_t pitch,
                         int64_t rows, int64_t columns)
{{
    int64_t done = 0;
#if defined(ISAMAP_SHUFFLE)
    if (rows >= {block} && columns / piece * piece >= {block}) {{
        int64_t at[{block}], pieces = {block} / piece;
        for (int64_t p = 0, i = 0; p < pieces; ++p)
            for (int64_t c = 0; c < piece; ++c)
                at[i++] = p * step + lines[c];
        /* The last blocks begin earlier, and turn again what others have turned. */
        const int64_t last = columns / piece - pieces;
        for (int64_t p = 0; p < last + pieces; p += pieces) {{
            p = p < last ? p : last;
            for (int64_t r = 0; r < rows; r += {block}) {{
                r = r < rows - {block} ? r : rows - {block};
                isamap_block{bytes}(to + p * step + r * {bytes}, at,
                              from + r * pitch + p * piece * {bytes}, pitch);
            }}
        }}
        done = columns / piece * piece;
    }}
#endif
    for (int64_t c = done; c < columns; ++c) {{
        char *const row = to + c / piece * step + lines[c % piece];
        for (int64_t r = 0; r < rows; ++r)
            memcpy(row + r * {bytes}, from + r * pitch + c * {bytes}, {bytes});
    }}
}}
"""

_SHUFFLE = """\
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ISAMAP_SHUFFLE __builtin_shufflevector
#endif
#endif
"""


def turning(
    size: int,
    target: str,
    step: str,
    lines: Sequence[str],
    source: str,
    pitch: str,
    rows: str,
    columns: str,
) -> tuple[str, ...]:
    """Return the statement that turns rows of units of ``size`` bytes into columns.

    ``target`` and ``source`` are pointers.  Rows of the source begin ``pitch`` bytes apart.  Pieces
    of as many columns as there are ``lines`` begin ``step`` bytes apart, and what their columns
    become so many bytes from there.
    """
    name = f"isamap_turn{size}("
    table = f"(const int64_t[]){{{', '.join(lines)}}}"
    return (
        f"{name}(char *)({target}), {step}, {len(lines)}, {table},",
        f"{' ' * len(name)}(const char *)({source}), {pitch}, {rows}, {columns});",
    )


def turns(functions: str) -> str:
    """Return the definitions of what ``functions`` call, nothing if they turn nothing."""
    used = [size for size in _SIZES if f"isamap_turn{size}(" in functions]
    parts = [f"#if defined(ISAMAP_SHUFFLE)\n{_block(size)}#endif\n\n{_turn(size)}" for size in used]
    return "\n".join([_SHUFFLE, *parts]) if used else ""


def _turn(size: int) -> str:
    return _FUNCTION.format(bytes=size, block=VECTOR // size)


def _block(size: int) -> str:
    """Return the function that turns a block of ``n`` rows of ``n`` units, vectors of 16 bytes."""
    n = VECTOR // size
    low = ", ".join(f"{i}, {n + i}" for i in range(n // 2))
    high = ", ".join(f"{n // 2 + i}, {n + n // 2 + i}" for i in range(n // 2))
    vector = f"isamap_units{size}"
    lines = [
        f"typedef {_TYPES[size]} {vector} __attribute__((vector_size({VECTOR})));",
        f"static inline void isamap_block{size}(char *to, const int64_t *at, const char *from,",
        "                                int64_t pitch)",
        "{",
    ]
    lines += [f"    {vector} {', '.join(f'r0_{i}' for i in range(n))};"]
    lines += [f"    memcpy(&r0_{i}, from + {i} * pitch, {VECTOR});" for i in range(n)]
    rounds = int(log2(n))
    for t in range(rounds):
        for i in range(n // 2):
            rows = f"r{t}_{i}, r{t}_{i + n // 2}"
            for half, order in enumerate((low, high)):
                lines.append(
                    f"    {vector} r{t + 1}_{2 * i + half} = ISAMAP_SHUFFLE({rows}, {order});"
                )
    lines += [f"    memcpy(to + at[{i}], &r{rounds}_{i}, {VECTOR});" for i in range(n)]
    return "\n".join([*lines, "}", ""])
