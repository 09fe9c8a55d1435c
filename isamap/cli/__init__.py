"""The command line: ``isamap map``, ``run``, ``match``, ``check``, ``hw``.

One file per command, each imported only when it is asked for, so that help and version are quick.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``arguments`` default to the process's."""
    from isamap.cli.group import run

    return run(arguments)
