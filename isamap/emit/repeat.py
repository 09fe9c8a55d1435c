"""The text that a shared library has besides: calls from data, for callers to which they cost.

``int entry_repeat(const int64_t *arguments, int64_t count)`` calls ``entry`` ``count`` times with
the same arguments: addresses, extents and the number of threads, in their order.  It returns what
the last call returned, which is the first that is not 0.
"""

from isamap.emit import literals
from isamap.emit.source import CSource


def shared_text(source: CSource) -> str:
    """Return the whole C file of a shared library."""
    kinds = []
    for parameter in source.taken:
        const = "" if parameter.is_output else "const "
        kinds.append(f"({const}{literals.memory_type(parameter.dtype)} *)(intptr_t)")
    kinds += [""] * len(source.symbols)
    kinds += ["(void *)(intptr_t)"] * (1 if source.ahead is None else 2)
    kinds.append("(int)")
    values = ", ".join(f"{kind}arguments[{n}]" for n, kind in enumerate(kinds))
    lines = [
        f"int {source.entry}_repeat(const int64_t *arguments, int64_t count)",
        "{",
        "    int result = 0;",
        "    for (; count > 0 && result == 0; --count)",
        f"        result = {source.entry}({values});",
        "    return result;",
        "}",
    ]
    return f"{source.text}\n" + "\n".join(lines) + "\n"
