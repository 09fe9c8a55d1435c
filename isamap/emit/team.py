"""The threads of emitted code, and functions that they execute together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isamap.emit import names
from isamap.emit.header import pointer, wrapped
from isamap.emit.source import Parameter

RUNTIME = Path(__file__).with_name("team.h").read_text(encoding="utf-8")
"""C text, after that of the description: ``isamap_together`` executes a function on threads."""

BEFORE = "#define _GNU_SOURCE 1 /* for what keeps threads on processors of their own */"
"""A line before all headers of a file with the runtime."""


def is_used(functions: str) -> bool:
    """Return whether functions need the runtime."""
    return "isamap_together(" in functions


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function takes besides threads; ``blocks`` are pointers, and whether to constants."""

    parameters: Sequence[Parameter]
    symbols: Sequence[str]
    blocks: Sequence[tuple[str, bool]]

    @property
    def names(self) -> list[str]:
        """The C names, in order."""
        found = [names.buffer(p.name) for p in self.parameters]
        return [*found, *map(names.symbol, self.symbols), *(name for name, _ in self.blocks)]

    def declared(self, restrict: bool) -> list[str]:
        """Return the C declarations, in order."""
        found = [pointer(p, restrict) for p in self.parameters]
        found += [f"int64_t {names.symbol(s)}" for s in self.symbols]
        return found + [f"{'const ' * constant}void *{name}" for name, constant in self.blocks]


def part_head(name: str, arguments: Arguments) -> str:
    """Return the head of the function that does one thread's part of the function ``name``."""
    threads = ["uint64_t *loops", "int thread", "int threads"]
    return wrapped(f"static void {name}_part", [*arguments.declared(True), *threads])


def share_text(name: str, arguments: Arguments) -> str:
    """Return the structure of a call's arguments, and the function that a team executes on it."""
    fields = [f"    {declared};" for declared in arguments.declared(False)]
    given = [f"call->{argument}" for argument in arguments.names]
    lines = [
        f"struct {name}_call {{",
        *fields,
        "};",
        "",
        f"static void {name}_share(const void *given, uint64_t *loops, int thread, int threads)",
        "{",
        f"    const struct {name}_call *const call = given;",
        *(f"    {line}" for line in _call(f"{name}_part", [*given, "loops", "thread", "threads"])),
        "}",
    ]
    return "\n".join(lines) + "\n"


def together_lines(name: str, arguments: Arguments) -> list[str]:
    """Return the statements that have a team of ``threads`` execute the function ``name``."""
    head, *rest = _call("", arguments.names)
    opened = [f"const struct {name}_call call = {{{head[1:]}", *rest]
    opened[-1] = opened[-1].removesuffix(");") + "};"
    return [*opened, f"isamap_together({name}_share, &call, threads);"]


def _call(function: str, arguments: Sequence[str]) -> list[str]:
    """Return a call, several lines if it is long."""
    line = f"{function}({', '.join(arguments)});"
    if len(line) <= 90:
        return [line]
    lines = [f"{function}("]
    for argument in arguments:
        if len(lines[-1]) + len(argument) > 86 or len(lines) == 1:
            lines.append("   ")
        lines[-1] += f" {argument},"
    lines[-1] = lines[-1].removesuffix(",") + ");"
    return lines
