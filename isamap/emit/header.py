"""The C prototypes of a kernel and the header that documents them."""

from isamap.emit import literals, names
from isamap.emit.source import Ahead, Parameter
from isamap.ir.nodes import Kernel

_ROLES = {"in": "read", "const": "read", "out": "written", "inout": "read and written"}

EXPORTED = """\
#if defined(__GNUC__) && defined(__ELF__)
#define ISAMAP_EXPORTED __attribute__((visibility("protected"), noinline))
#else
#define ISAMAP_EXPORTED
#endif
"""
"""C text ahead of all functions: what marks those of a file that others call.

A shared library that calls such a function gets its own, whatever else in the process is called
alike: a C library has a ``step`` and a ``send``, and comes first.  It is a call, which a loop that
repeats it does not merge with the next.
"""


def exported(head: str) -> str:
    """Return the head of the definition of a function that other files call."""
    return f"ISAMAP_EXPORTED {head}"


def pointer(parameter: Parameter, restrict: bool) -> str:
    """Return the declaration of one pointer parameter."""
    const = "" if parameter.is_output else "const "
    star = "*restrict " if restrict else "*"
    return f"{const}{literals.memory_type(parameter.dtype)} {star}{names.buffer(parameter.name)}"


def signature(
    entry: str,
    parameters: tuple[Parameter, ...],
    symbols: tuple[str, ...],
    prepared: bool = False,
    restrict: bool = True,
) -> str:
    """Return the head of the kernel's function, which may take what was ``prepared``."""
    items = [pointer(p, restrict) for p in parameters]
    items += [f"int64_t {names.symbol(s)}" for s in symbols]
    items += ["const void *prepared"] if prepared else []
    return wrapped(f"int {entry}", [*items, "void *workspace", "int threads"])


def workspace_signature(entry: str, symbols: tuple[str, ...]) -> str:
    """Return the head of the function that tells the workspace's size."""
    items = [f"int64_t {names.symbol(s)}" for s in symbols]
    return wrapped(f"size_t {entry}_workspace", [*items, "int threads"])


def prepare_signature(entry: str, ahead: Ahead, restrict: bool = True) -> str:
    """Return the head of the function that prepares constants."""
    items = [pointer(p, restrict) for p in ahead.parameters]
    items += [f"int64_t {names.symbol(s)}" for s in ahead.symbols]
    return wrapped(
        f"int {entry}_prepare", [*items, "void *prepared", "void *workspace", "int threads"]
    )


def prepared_signature(entry: str, symbols: tuple[str, ...]) -> str:
    """Return the head of the function that tells the bytes of what is prepared."""
    items = [f"int64_t {names.symbol(s)}" for s in symbols]
    return wrapped(f"size_t {entry}_prepared", items or ["void"])


def prepare_workspace_signature(entry: str, symbols: tuple[str, ...]) -> str:
    """Return the head of the function that tells the workspace's size of preparing."""
    return workspace_signature(f"{entry}_prepare", symbols)


def header_text(
    entry: str,
    parameters: tuple[Parameter, ...],
    symbols: tuple[str, ...],
    requires: tuple[str, ...],
    kernel: Kernel,
    ahead: Ahead | None = None,
    asks: bool = False,
) -> str:
    """Return the header: what each argument is, then the prototypes.

    With ``asks`` the function asks the machine for a permission.
    """
    guard = f"ISAMAP_{entry.upper()}_H"
    only = ahead.only if ahead is not None else frozenset()
    taken = tuple(p for p in parameters if p.name not in only)
    missing = "if the workspace is missing"
    if ahead is not None:
        missing += ", -3 if what was prepared is"
    if asks:
        missing += ";\n   -4 if the machine does not permit to use registers that it needs"
    lines = [
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *([] if ahead is None else _prepare_lines(entry, ahead)),
        f"/* Kernel {names.comment(kernel.name)}.",
        "",
        *_arguments(taken, symbols),
        *(
            []
            if ahead is None
            else [
                f"   prepared: what {entry}_prepare wrote, where it wrote it.  Several calls may",
                "     read it at once.",
            ]
        ),
        f"   workspace: at least as many bytes as {entry}_workspace tells, of any alignment and",
        "     content; NULL if it tells 0.  One call at a time may use it.",
        "   threads: how many threads compute, 1 or more.",
        "",
        "   Arrays are dense, the last dimension contiguous, and must not overlap.",
        f"   Returns 0; -1 if an extent is below 1; -2 {missing}" + ("." if not requires else ";"),
        *(
            f"   {number} unless {names.comment(condition)}{';' if number < len(requires) else '.'}"
            for number, condition in enumerate(requires, 1)
        ),
        "*/",
        signature(entry, taken, symbols, ahead is not None, restrict=False) + ";",
        "",
        workspace_signature(entry, symbols) + ";",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _prepare_lines(entry: str, ahead: Ahead) -> list[str]:
    """Return the documented prototypes of what comes before the calls."""
    return [
        "/* Prepares constants, once for all calls with them"
        + (" and with these extents." if ahead.symbols else "."),
        "",
        *_arguments(ahead.parameters, ahead.symbols),
        f"   prepared: receives as many bytes as {entry}_prepared tells, at any address.",
        f"   workspace: as many bytes as {entry}_prepare_workspace tells, needed for this call",
        "     alone; NULL if it tells 0.",
        "   threads: how many threads compute, 1 or more.",
        "",
        "   Returns what the kernel's function returns.",
        "*/",
        prepare_signature(entry, ahead, restrict=False) + ";",
        "",
        prepared_signature(entry, ahead.symbols) + ";",
        "",
        prepare_workspace_signature(entry, ahead.symbols) + ";",
        "",
    ]


def _arguments(parameters: tuple[Parameter, ...], symbols: tuple[str, ...]) -> list[str]:
    lines = []
    for p in parameters:
        shape = ", ".join(map(str, p.shape))
        line = f"   {names.buffer(p.name)}: {p.name}, {p.dtype}[{shape}], {_ROLES[p.role]}"
        if p.alignment > p.dtype.bytes:
            line += f", aligned to {p.alignment} bytes"
        lines.append(names.comment(f"{line}."))
    lines += [names.comment(f"   {names.symbol(s)}: the extent {s}.") for s in symbols]
    return lines


def wrapped(head: str, items: list[str]) -> str:
    """Return ``head(items)``, one item a line if it is too long for one."""
    line = f"{head}({', '.join(items)})"
    if len(line) <= 100:
        return line
    return f"{head}(\n    " + ",\n    ".join(items) + ")"
