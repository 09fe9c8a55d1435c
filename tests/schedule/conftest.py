"""The command line as a function, as in the tests of the commands."""

from tests.cli.conftest import isamap

__all__ = ["isamap"]
