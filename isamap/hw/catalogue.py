"""The tools that descriptions name, and where they come from: data, read from one file."""

from functools import cache
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from isamap.resources import shipped

Words = Annotated[tuple[str, ...], Field(min_length=1)]


class Executed(BaseModel):
    """How an emulator tells what it executes, and lists it.

    With ``arguments`` after its own it writes to the file ``{log}``.  A line that fits ``step``
    tells that what begins at ``address`` is executed, in ``function``; lines before the first one
    of an address that fit ``listed`` say what ``text`` stands there.  ``packets`` are the programs
    whose machines execute several instructions as one step.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: Words
    step: str
    listed: str
    packets: tuple[str, ...] = ()


class Native(BaseModel):
    """How programs that run on this machine itself tell which instructions they execute.

    ``make`` makes a library of the C text ``library``, which lies beside the file that says so.
    With ``arguments`` before it a program writes to the file ``{log}`` what one call of
    ``{function}`` executes: a line that fits ``step`` for each ``address``, with how many
    ``times``.  ``listing`` prints what there is in ``{program}``; lines that fit ``listed`` say
    what ``text`` stands at an address; one that has ``stack`` in it reads or writes the stack.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    library: str
    make: Words
    arguments: Words
    step: str
    listing: Words
    listed: str
    stack: str


class Spills(BaseModel):
    """How a compiler tells what it keeps in memory for want of registers.

    With ``arguments`` it writes a line that fits ``line`` for each loop: ``place`` is the line of
    the text in which it begins, ``told`` says what.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    arguments: Words
    line: str


class Tree(BaseModel):
    """Packages that are used as if they were installed, from a folder of their own.

    Of a package and all that it depends on the paths ``keep`` are kept, and the files of the folder
    ``beside`` the catalogue are put with them.  There ``make`` are run, then and once.  In ``make``
    and in the tool's ``command`` ``{tree}`` stands for that folder.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: Words
    beside: str
    make: tuple[Words, ...] = ()


class Tool(BaseModel):
    """A program, found under its name in the catalogue.

    It is of a package of the Python Package Index (``pip``), run by ``command`` with that
    environment's ``python``, or of a package of Debian (``debian``), from the suite that goes with
    the release this machine has: its ``file``, or a ``tree`` of it.  ``version`` are arguments that
    make it tell its version, of which ``least`` is the oldest that will do.  ``what`` is a line for
    people.  ``executed`` is how an emulator tells which instructions it executes, if it does,
    ``spills`` how a compiler tells what finds no register.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    least: str
    version: Words
    pip: str | None = None
    command: Words | None = None
    debian: str | None = None
    suites: dict[str, str] = {}
    file: str | None = None
    executed: Executed | None = None
    spills: Spills | None = None
    tree: Tree | None = None


class _Entry(Tool):
    """A tool of the catalogue, or what several ``programs`` have in common: names and ``what``."""

    what: str = ""
    programs: dict[str, str] = {}

    def tools(self, name: str) -> dict[str, Tool]:
        """Return the tools of an entry called ``name``; ``{name}`` in ``file`` is each one's."""
        common = self.model_dump(exclude={"programs"})
        return {
            own: Tool(**common | {"what": what, "file": self.file and self.file.format(name=own)})
            for own, what in (self.programs or {name: self.what}).items()
        }


@cache
def catalogue() -> dict[str, Tool]:
    """Return all tools by name."""
    text = (shipped("hwdesc") / "tools" / "tools.yaml").read_text(encoding="utf-8")
    entries = TypeAdapter(dict[str, _Entry]).validate_python(yaml.safe_load(text))
    return {k: v for name, entry in entries.items() for k, v in entry.tools(name).items()}


@cache
def native_ways() -> dict[str, Native]:
    """Return how programs of this machine are counted, by what a machine is called."""
    text = (shipped("hwdesc") / "tools" / "native.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Native]).validate_python(yaml.safe_load(text))
