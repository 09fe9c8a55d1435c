"""The text of a program that calls many small functions, each on many sets of arrays.

All numbers are little-endian.  Standard input: ``MAGIC``, then batches, then -1.  A batch is, as
int64, the function's number, the number of sets, the symbols, and of each array the elements of one
set; then each array's content in all sets, one array after the other.  Standard output: ``MAGIC``,
then for each batch as int64 the first set that was refused and the first one that wrote where it
may not, -1 for none; then the written arrays' content in all sets.

An array ends where memory ends, if the system lets a program say so: reading beyond it is fatal.
In every second set arrays that may begin anywhere do: off any alignment but their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from isamap.emit.c import function_text, preamble_text
from isamap.emit.program import SUPPORT
from isamap.emit.templates import Machine
from isamap.hw.accelerator import Accelerator
from isamap.ir.nodes import Kernel
from isamap.lower.nodes import LoweredKernel

ROOM = 1 << 16
"""Bytes that a program has for an array in one set, and for what lies around it, at least."""

BATCH = 1 << 20
"""Bytes that all arrays may take in all sets of a batch of several."""

_AROUND = 1 << 12
"""Bytes around an array that are looked at, or lost because of its alignment, at most."""


@dataclass(frozen=True, slots=True)
class Function:
    """What a function of a battery is made of; ``alignments`` are in bytes, in order of arrays.

    ``anywhere`` are the positions of arrays that begin at all multiples of theirs, the others lie
    as near to the end of memory as they can.  ``largest`` are the bytes of its largest array in one
    set.
    """

    lowered: LoweredKernel
    kernel: Kernel
    alignments: tuple[int, ...]
    anywhere: frozenset[int] = frozenset()
    largest: int = 0


_MAIN = """\
#if defined(__linux__) && __STDC_HOSTED__
#include <sys/mman.h>
#include <unistd.h>

/* Memory up to a page that may not be touched. */
static unsigned char *isamap_place(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *const room = mmap(NULL, ISAMAP_ROOM + page, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mprotect(room + ISAMAP_ROOM, page, PROT_NONE) != 0) exit(102);
    return room;
}
enum { ISAMAP_BEHIND = 0 };
#else
static unsigned char *isamap_place(void)
{
    unsigned char *const room = malloc(ISAMAP_ROOM + 64);
    if (room == NULL) exit(102);
    return room + (64 - (uintptr_t)room % 64);
}
enum { ISAMAP_BEHIND = 32 };
#endif

enum { ISAMAP_BEFORE = 64, ISAMAP_LINE = 64 };

/* Where an array begins: as near to the end as its alignment lets it be, or in steps of that
   before there, all in turn. */
static size_t isamap_begin(size_t bytes, size_t align, size_t turn)
{
    const size_t last = (ISAMAP_ROOM - ISAMAP_BEHIND - bytes) & ~(align - 1);
    const size_t others = align < ISAMAP_LINE ? ISAMAP_LINE / align - 1 : 0;
    return turn == 0 || others == 0 ? last : last - (1 + turn % others) * align;
}

static int isamap_same(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (bytes[i] != 0xa5) return 0;
    return 1;
}

int main(void)
{
    char magic[8];
    unsigned char *rooms[ISAMAP_ARRAYS], *places[ISAMAP_ARRAYS];
    int64_t numbers[ISAMAP_NUMBERS];
    size_t turn = 0;
    unsigned char *const input = malloc(ISAMAP_BATCH), *const output = malloc(ISAMAP_BATCH);
    if (input == NULL || output == NULL) return 102;
    for (int a = 0; a < ISAMAP_ARRAYS; ++a) rooms[a] = isamap_place();
    isamap_get(magic, 8, 1);
    if (memcmp(magic, ISAMAP_MAGIC, 8) != 0) return 101;
    fwrite(ISAMAP_MAGIC, 1, 8, stdout);
    for (;;) {
        const int64_t which = isamap_get_number();
        if (which < 0) break;
        const isamap_function *const f = &isamap_functions[which];
        const size_t sets = (size_t)isamap_get_number();
        size_t begin[ISAMAP_ARRAYS], bytes[ISAMAP_ARRAYS], at[ISAMAP_ARRAYS];
        size_t elements[ISAMAP_ARRAYS], used = 0;
        for (int n = 0; n < f->numbers; ++n) numbers[n] = isamap_get_number();
        for (int a = 0; a < f->arrays; ++a) {
            elements[a] = (size_t)isamap_get_number();
            bytes[a] = elements[a] * f->widths[a];
            at[a] = used;
            used += sets * bytes[a];
            if (bytes[a] + ISAMAP_BEFORE + ISAMAP_LINE + ISAMAP_BEHIND > ISAMAP_ROOM ||
                used > ISAMAP_BATCH)
                return 101;
        }
        for (int a = 0; a < f->arrays; ++a)
            isamap_get(input + at[a], sets * elements[a], f->widths[a]);
        int64_t refused = -1, strays = -1;
        for (size_t s = 0; s < sets; ++s, ++turn) {
            for (int a = 0; a < f->arrays; ++a) {
                const size_t moved = f->anywhere[a] && turn % 2 ? (turn + 1) / 2 * (a + 1) : 0;
                begin[a] = isamap_begin(bytes[a], f->aligns[a], moved);
                places[a] = rooms[a] + begin[a];
                memset(places[a] - ISAMAP_BEFORE, 0xa5, ISAMAP_BEFORE);
                memset(places[a] + bytes[a], 0xa5, ISAMAP_ROOM - begin[a] - bytes[a]);
                memcpy(places[a], input + at[a] + s * bytes[a], bytes[a]);
            }
            if (f->call(places, numbers) != 0 && refused < 0) refused = (int64_t)s;
            for (int a = 0; a < f->arrays; ++a) {
                if (strays < 0 && (!isamap_same(places[a] - ISAMAP_BEFORE, ISAMAP_BEFORE) ||
                                   !isamap_same(places[a] + bytes[a],
                                                ISAMAP_ROOM - begin[a] - bytes[a])))
                    strays = (int64_t)s;
                if (f->written[a]) memcpy(output + at[a] + s * bytes[a], places[a], bytes[a]);
            }
        }
        isamap_put(&refused, 1, sizeof refused);
        isamap_put(&strays, 1, sizeof strays);
        for (int a = 0; a < f->arrays; ++a)
            if (f->written[a]) isamap_put(output + at[a], sets * elements[a], f->widths[a]);
    }
    return fflush(stdout) == 0 ? 0 : 101;
}
"""


def battery_text(accelerator: Accelerator, functions: Sequence[Function]) -> str:
    """Return the whole C file of the program.

    HardwareError if an instruction or a register cannot be written in C.
    """
    machine = Machine.of(accelerator)
    texts = [function_text(f.lowered, machine, f.kernel) for f in functions]
    body = "\n".join(texts)
    most = max(len(f.kernel.buffers) for f in functions)
    symbols = max(len(f.lowered.symbols) for f in functions)
    rows = [_row(number, function) for number, function in enumerate(functions)]
    largest = max(f.largest for f in functions)
    room = max(ROOM, -(-largest // _AROUND) * _AROUND + _AROUND)
    batch = max(BATCH, most * room)
    parts = [
        "#define _DEFAULT_SOURCE",
        preamble_text(accelerator, body),
        body,
        SUPPORT,
        f"enum {{ ISAMAP_ROOM = {room}, ISAMAP_BATCH = {batch}, ISAMAP_ARRAYS = {most} }};",
        f"enum {{ ISAMAP_NUMBERS = {max(1, symbols)} }};",
        '#define ISAMAP_MAGIC "isamap1\\n"',
        "typedef struct {",
        "    int (*call)(unsigned char *const *places, const int64_t *numbers);",
        "    int arrays, numbers;",
        "    unsigned char widths[ISAMAP_ARRAYS], written[ISAMAP_ARRAYS];",
        "    unsigned char anywhere[ISAMAP_ARRAYS];",
        "    unsigned short aligns[ISAMAP_ARRAYS];",
        "} isamap_function;",
        *(call for call, _ in rows),
        "static const isamap_function isamap_functions[] = {",
        *(row for _, row in rows),
        "};",
        _MAIN,
    ]
    return "\n".join(parts)


def bare_text(accelerator: Accelerator) -> str:
    """Return a C file that has what all programs of a description have, and does nothing."""
    begun = f"#define _DEFAULT_SOURCE\n{preamble_text(accelerator, '')}"
    return f"{begun}\nint main(void) {{ return 0; }}\n"


def _row(number: int, function: Function) -> tuple[str, str]:
    """Return the function that spreads the arguments, and its row of the table."""
    buffers, symbols = function.kernel.buffers, function.lowered.symbols
    arguments = [f"(void *)places[{at}]" for at in range(len(buffers))]
    arguments += [f"numbers[{at}]" for at in range(len(symbols))]
    call = (
        f"static int isamap_call_{number}(unsigned char *const *places, const int64_t *numbers)\n"
        "{\n"
        "    (void)places, (void)numbers;\n"
        f"    return {function.lowered.name}({', '.join([*arguments, 'NULL', '1'])});\n"
        "}\n"
    )
    widths = ", ".join(str(b.dtype.bytes) for b in buffers)
    written = ", ".join(str(int(b.role != "in")) for b in buffers)
    anywhere = ", ".join(str(int(at in function.anywhere)) for at in range(len(buffers)))
    aligns = ", ".join(map(str, function.alignments))
    head = f"isamap_call_{number}, {len(buffers)}, {len(symbols)}"
    row = f"{head}, {{{widths}}}, {{{written}}}, {{{anywhere}}}, {{{aligns}}}"
    return call, f"    {{{row}}},"
