"""What emission gives: C text with everything that a caller of it must know."""

from dataclasses import dataclass

from isamap.ir.dtype import DType
from isamap.ir.index import Index
from isamap.ir.nodes import Role


@dataclass(frozen=True, slots=True)
class Parameter:
    """A pointer parameter: a dense row-major array.

    ``size`` is its number of elements; ``alignment`` the bytes to which its address must be
    aligned, that of its element unless an instruction asks for more.
    """

    name: str
    role: Role
    dtype: DType
    shape: tuple[Index, ...]
    size: Index
    alignment: int

    @property
    def is_input(self) -> bool:
        """Whether its content is read before it is written."""
        return self.role in ("in", "const", "inout")

    @property
    def is_output(self) -> bool:
        """Whether it is written."""
        return self.role in ("out", "inout")


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is made of constants once, ahead of the calls that use it.

    The function is ``int entry_prepare(pointers..., int64_t symbols..., void *prepared, void
    *workspace, int threads)``: it takes ``parameters`` and those ``symbols`` on which its work
    depends, and its results are those of ``entry``.  ``size_t entry_prepared(int64_t symbols...)``
    tells the bytes of ``prepared``, ``size_t entry_prepare_workspace(int64_t symbols..., int
    threads)`` those of its workspace.  Constants in ``only`` are not taken by calls.
    """

    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    only: frozenset[str]


@dataclass(frozen=True, slots=True)
class CSource:
    """A C file, its header and its calling convention.

    ``entry`` is the function ``int entry(pointers..., int64_t symbols..., void *workspace, int
    threads)``, where ``size_t entry_workspace(int64_t symbols..., int threads)`` tells how many
    bytes ``workspace`` must have. It returns 0, -1 for a symbol below 1, -2 for a missing
    workspace, -4 where the machine does not permit to use its registers, and ``k`` for the violated
    ``requires[k - 1]``, a condition in words.

    Where constants are prepared ``ahead``, ``const void *prepared`` comes before ``workspace``,
    what ``entry_prepare`` wrote and where it wrote it; -3 says that it is missing.

    ``preamble`` holds the includes and what the ``functions``, the kernel's own, need of the
    description's prelude.  ``permits`` are the C expressions of which none may be 0.  ``inner`` are
    the kernel's buffers that no caller gives, its tables and locals, with their roles.
    """

    entry: str
    preamble: str
    functions: str
    header: str
    parameters: tuple[Parameter, ...]
    symbols: tuple[str, ...]
    requires: tuple[str, ...] = ()
    ahead: Ahead | None = None
    permits: tuple[str, ...] = ()
    inner: tuple[tuple[str, Role], ...] = ()

    @property
    def taken(self) -> tuple[Parameter, ...]:
        """The parameters of a call: all but constants that are only prepared."""
        only = self.ahead.only if self.ahead is not None else frozenset()
        return tuple(p for p in self.parameters if p.name not in only)

    @property
    def text(self) -> str:
        """The whole C file."""
        return f"{self.preamble}\n{self.functions}"

    def parameter(self, name: str) -> Parameter:
        """Return the parameter called ``name``."""
        return next(p for p in self.parameters if p.name == name)

    def failure(self, code: int) -> str:
        """Return in words what a non-zero result of ``entry`` means."""
        if code == -1:
            return "an extent is below 1"
        if code == -2:
            return "the workspace is missing"
        if code == -3:
            return "what was prepared is missing"
        if code == -4:
            told = " and ".join(f"'{permit}'" for permit in self.permits)
            return (
                f"this machine does not permit to use registers that the code needs: {told} fails"
            )
        if 1 <= code <= len(self.requires):
            return f"'{self.requires[code - 1]}' does not hold"
        return f"the function returned {code}"
