"""``isamap check``: are these texts right?"""

from pathlib import Path

import click

_HELP = """Check kernels (.ir) and hardware descriptions (.yaml); nothing is mapped or run.

Every fault of every file is told with its place. Extents without a value stay open, so that what is
checked holds for all sizes.

\b
Examples
  isamap check mm.ir conv.ir
  isamap check mine.yaml
"""


@click.command("check", help=_HELP)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
def command(files: tuple[Path, ...]) -> int:
    """Load each file; print what it holds, or its faults; return the exit code."""
    from isamap.diagnostics import IsamapError

    code = 0
    for path in files:
        try:
            click.echo(f"{path}: {_check(path)}")
        except IsamapError as error:
            for diagnostic in error.diagnostics:
                click.echo(diagnostic.render(), err=True)
            code = max(code, error.exit_code)
    return code


def _check(path: Path) -> str:
    """Return what a right file holds, in words."""
    if path.suffix in (".yaml", ".yml"):
        from isamap.pipeline.source import load_hardware

        machine = load_hardware(path)
        return f"good: machine {machine.name}, {_count(len(machine.entries), 'instruction')}"
    from isamap.diagnostics import ArgumentsError, fail
    from isamap.text.load import load_module

    module = load_module(path)
    if not (module.kernels or module.instructions or module.programs):
        raise ArgumentsError(fail("E701", f"'{path}' holds no kernel"))
    parts = [
        _count(len(module.kernels), "kernel"),
        *([_count(len(module.instructions), "instruction")] if module.instructions else []),
        *([_count(len(module.programs), "program")] if module.programs else []),
    ]
    return f"good: {', '.join(parts)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
