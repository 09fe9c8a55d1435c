"""The C prototypes of a kernel and the header that documents them."""

from isamap.emit import literals, names
from isamap.emit.source import Parameter
from isamap.ir.nodes import Kernel

_ROLES = {"in": "read", "const": "read", "out": "written", "inout": "read and written"}


def pointer(parameter: Parameter, restrict: bool) -> str:
    """Return the declaration of one pointer parameter."""
    const = "" if parameter.is_output else "const "
    star = "*restrict " if restrict else "*"
    return f"{const}{literals.memory_type(parameter.dtype)} {star}{names.buffer(parameter.name)}"


def signature(
    entry: str, parameters: tuple[Parameter, ...], symbols: tuple[str, ...], restrict: bool = True
) -> str:
    """Return the head of the kernel's function."""
    items = [pointer(p, restrict) for p in parameters]
    items += [f"int64_t {names.symbol(s)}" for s in symbols]
    return wrapped(f"int {entry}", [*items, "void *workspace", "int threads"])


def workspace_signature(entry: str, symbols: tuple[str, ...]) -> str:
    """Return the head of the function that tells the workspace's size."""
    items = [f"int64_t {names.symbol(s)}" for s in symbols]
    return wrapped(f"size_t {entry}_workspace", [*items, "int threads"])


def header_text(
    entry: str,
    parameters: tuple[Parameter, ...],
    symbols: tuple[str, ...],
    requires: tuple[str, ...],
    kernel: Kernel,
) -> str:
    """Return the header: what each argument is, then the prototypes."""
    guard = f"ISAMAP_{entry.upper()}_H"
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
        f"/* Kernel {names.comment(kernel.name)}.",
        "",
        *_arguments(parameters, symbols),
        "   workspace: at least as many bytes as the second function tells, of any alignment and",
        "     content; NULL if it tells 0.  One call at a time may use it.",
        "   threads: how many threads compute, 1 or more.",
        "",
        "   Arrays are dense, the last dimension contiguous, and must not overlap.",
        "   Returns 0; -1 if an extent is below 1; -2 if the workspace is missing"
        + ("." if not requires else ";"),
        *(
            f"   {number} unless {names.comment(condition)}{';' if number < len(requires) else '.'}"
            for number, condition in enumerate(requires, 1)
        ),
        "*/",
        signature(entry, parameters, symbols, restrict=False) + ";",
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
