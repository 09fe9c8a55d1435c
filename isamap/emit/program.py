"""The text of a program that computes a kernel once: arrays come in and go out through pipes.

All numbers are little-endian.  Standard input: ``MAGIC``, then as int64 the thread count, how many
times to compute, the symbols and the number of elements of every parameter, then the content of the
input arrays.  Computing often, or not at all, tells what computing takes.
Standard output: ``MAGIC``, the function's result as int64 and, if that is 0, the content of the
output arrays.  Arrays follow each other in the order of the parameters.
"""

from isamap.emit import expressions, literals, names
from isamap.emit.expressions import Env
from isamap.emit.source import Ahead, CSource, Parameter

MAGIC = b"isamap1\n"
"""The first bytes of both streams."""

BAD_INPUT = 101
"""Exit status of a program whose input is not what it expects."""

NO_MEMORY = 102
"""Exit status of a program that gets no memory."""

SUPPORT = """\
#include <stdio.h>
#include <stdlib.h>

static void isamap_swap_bytes(unsigned char *bytes, size_t count, size_t width)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; i < count; ++i)
        for (size_t j = 0; j < width / 2; ++j) {
            const unsigned char byte = bytes[i * width + j];
            bytes[i * width + j] = bytes[i * width + width - 1 - j];
            bytes[i * width + width - 1 - j] = byte;
        }
#else
    (void)bytes, (void)count, (void)width;
#endif
}

static void isamap_get(void *target, size_t count, size_t width)
{
    size_t done = 0;
    while (done < count) {
        const size_t more = fread((char *)target + done * width, width, count - done, stdin);
        if (more == 0) exit(101);
        done += more;
    }
    isamap_swap_bytes(target, count, width);
}

static void isamap_put(void *source, size_t count, size_t width)
{
    size_t done = 0;
    isamap_swap_bytes(source, count, width);
    while (done < count) {
        const size_t more = fwrite((char *)source + done * width, width, count - done, stdout);
        if (more == 0) exit(101);
        done += more;
    }
}

static int64_t isamap_get_number(void)
{
    int64_t value;
    isamap_get(&value, 1, sizeof value);
    return value;
}
"""
"""How a program reads and writes numbers and elements."""

_ROOM = """\
/* Memory that begins at a cache line. */
static void *isamap_room_for(size_t bytes)
{
    char *found = malloc(bytes + 64);
    if (found == NULL) exit(102);
    return found + (64 - (uintptr_t)found % 64);
}
"""


def program_text(source: CSource) -> str:
    """Return the whole C file of the program."""
    return f"{source.text}\n{SUPPORT}\n{_ROOM}\n{_main(source)}"


def _main(source: CSource) -> str:
    env = Env().with_symbols(source.symbols)
    symbols = [names.symbol(s) for s in source.symbols]
    lines = [
        "char isamap_magic[8];",
        "isamap_get(isamap_magic, 8, 1);",
        'if (memcmp(isamap_magic, "isamap1\\n", 8) != 0) return 101;',
        "const int isamap_threads = (int)isamap_get_number();",
        "int64_t isamap_runs = isamap_get_number();",
        *(f"const int64_t {s} = isamap_get_number();" for s in symbols),
    ]
    for p in source.parameters:
        lines.append(f"if (isamap_get_number() != {expressions.text(p.size, env)}) return 101;")
    for p in source.parameters:
        size, c_type, pointer = _size(p, env), literals.memory_type(p.dtype), names.buffer(p.name)
        lines.append(f"{c_type} *{pointer} = isamap_room_for({size} * sizeof({c_type}));")
        # What a kernel forgets to write is then seen as not-a-number or as -1.
        fill = f"memset({pointer}, 0xff, {size} * sizeof({c_type}));"
        lines.append(f"isamap_get({pointer}, {size}, sizeof({c_type}));" if p.is_input else fill)
    arguments = ", ".join([*symbols, "isamap_threads"])
    pointers = [names.buffer(p.name) for p in source.taken]
    lines += [
        "int64_t isamap_result = 0;",
        *([] if source.ahead is None else _ahead(source.entry, source.ahead)),
        f"const size_t isamap_bytes = {source.entry}_workspace({arguments});",
        "void *isamap_space = isamap_bytes ? isamap_room_for(isamap_bytes) : NULL;",
        # Each run is a call as others make it: neither put in line nor merged with the one before.
        f"__typeof__(&{source.entry}) volatile isamap_entry = {source.entry};",
        "for (; isamap_runs > 0 && isamap_result == 0; --isamap_runs)",
        "    isamap_result = isamap_entry("
        + ", ".join([*pointers, *symbols, *(["isamap_prepared"] if source.ahead else [])])
        + ", isamap_space, isamap_threads);",
        'fwrite("isamap1\\n", 1, 8, stdout);',
        "isamap_put(&isamap_result, 1, sizeof isamap_result);",
        "if (isamap_result != 0) return 0;",
    ]
    for p in source.parameters:
        if p.is_output:
            c_type, pointer = literals.memory_type(p.dtype), names.buffer(p.name)
            lines.append(f"isamap_put({pointer}, {_size(p, env)}, sizeof({c_type}));")
    lines.append("return fflush(stdout) == 0 ? 0 : 101;")
    return "\n".join(["int main(void)", "{", *(f"    {line}" for line in lines), "}"]) + "\n"


def _ahead(entry: str, ahead: Ahead) -> list[str]:
    """Return the statements that prepare constants."""
    symbols = [names.symbol(s) for s in ahead.symbols]
    pointers = [names.buffer(p.name) for p in ahead.parameters]
    arguments = ", ".join([*symbols, "isamap_threads"])
    blocks = ["isamap_prepared", "isamap_scratch", "isamap_threads"]
    return [
        f"void *isamap_prepared = isamap_room_for({entry}_prepared({', '.join(symbols)}));",
        f"const size_t isamap_needed = {entry}_prepare_workspace({arguments});",
        "void *isamap_scratch = isamap_needed ? isamap_room_for(isamap_needed) : NULL;",
        f"isamap_result = {entry}_prepare({', '.join([*pointers, *symbols, *blocks])});",
    ]


def _size(parameter: Parameter, env: Env) -> str:
    return f"(size_t)({expressions.text(parameter.size, env)})"
