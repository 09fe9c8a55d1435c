"""The command line, as tests of it have it."""

from tests.cli.conftest import isamap, matmul

__all__ = ["isamap", "matmul"]
