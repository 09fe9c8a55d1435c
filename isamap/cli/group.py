"""The command group: finds commands lazily and turns faults into messages and exit codes."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import click

from isamap import __version__
from isamap.diagnostics import IsamapError

# Where a command lives and what the list of commands says about it.
_COMMANDS = {
    "map": ("isamap.cli.map", "Map a kernel on to a machine, run the result and check it."),
    "run": ("isamap.cli.run", "Compute a kernel on arrays with the mapped code."),
    "match": ("isamap.cli.match", "List the legal mappings of a kernel; nothing is scheduled."),
    "explain": ("isamap.cli.explain", "Explain why instructions match a kernel, or do not."),
    "prove": ("isamap.cli.prove", "Prove a mapping and its code, or check a saved proof."),
    "measure": ("isamap.cli.measure", "Measure schedules beside what was predicted of them."),
    "replay": ("isamap.cli.replay", "Run a logged search again, on its own measurements."),
    "check": ("isamap.cli.check", "Check kernels and hardware descriptions; nothing is run."),
    "targets": ("isamap.cli.targets", "Fetch and list compilers and emulators of other machines."),
    "hw": ("isamap.cli.hw", "List and show the shipped hardware descriptions."),
}

_INTERRUPTED = 130


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit codes: 0 good, 1 the input is wrong, 2 usage, 3 nothing maps, 4 the result "
    "differs, 5 a compiler, runner or device is missing or failed, 6 unknown or a limit was "
    "reached, 130 interrupted.",
)
@click.version_option(__version__, prog_name="isamap")
def group() -> None:
    """Map tensor kernels on to the instructions of described hardware.

    \b
    Begin with
      isamap hw list                               the machines that ship
      isamap check mm.ir                           is this text right?
      isamap map mm.ir --hw native                 map, compile, run, check
      isamap explain mm.ir --hw native             why instructions match or not
      isamap prove mm.ir --hw native               prove mapping and code
      isamap map mm.ir --hw native --tune 30s      look for a better schedule
      isamap run mm.ir --hw native --inputs in.npz --outputs out.npz
    """


def run(arguments: Sequence[str] | None) -> int:
    """Run the group; every fault of the user becomes a message on stderr and an exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_closed()
    try:
        # Not group.main(): it makes exit code 1 of a reader that left.
        with _few_collections(), group.make_context("isamap", given) as context:
            code = group.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        code = done.exit_code
    except IsamapError as error:
        return _report(error)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        print("isamap: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        return _unwritable(error)
    except MemoryError:
        print("error[E799]: out of memory", file=sys.stderr)
        return 6
    return code if isinstance(code, int) else 0


@contextmanager
def _few_collections() -> Iterator[None]:
    """Look for unreachable cycles seldom: a mapping makes millions of values, few in cycles."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _open_closed() -> None:
    """Open what a caller has closed (``>&-``) into nothing: nobody wants to read it.

    Otherwise Python has no stream there, and a file that is opened later gets its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _report(error: IsamapError) -> int:
    try:
        sys.stdout.flush()
        for diagnostic in error.diagnostics:
            print(diagnostic.render(), file=sys.stderr)
    except BrokenPipeError:
        _reader_left()
    return error.exit_code


def _reader_left() -> int:
    """Whoever read the output has seen enough (``| head``): no error, and nothing more to say."""
    _drop_output()
    return 0


def _unwritable(error: OSError) -> int:
    """The files that a user names tell their own faults: this is the output, or a full disk."""
    _drop_output()
    where = error.filename or "the output"
    print(f"error[E798]: cannot write {where}: {error.strerror or error}", file=sys.stderr)
    return 1


def _drop_output() -> None:
    """Python flushes stdout once more at exit; into nothing, then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
