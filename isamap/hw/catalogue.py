"""The tools that descriptions name, and where they come from: data, read from one file."""

from functools import cache
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from isamap.resources import shipped

Words = Annotated[tuple[str, ...], Field(min_length=1)]


class Tool(BaseModel):
    """A program, found under its name in the catalogue.

    It is of a package of the Python Package Index (``pip``), run by ``command`` with that
    environment's ``python``, or the ``file`` of a package of Debian (``debian``), from the suite
    that goes with the release this machine has.  ``version`` are arguments that make it tell its
    version, of which ``least`` is the oldest that will do.
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


@cache
def catalogue() -> dict[str, Tool]:
    """Return all tools by name."""
    text = (shipped("hwdesc") / "tools" / "tools.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Tool]).validate_python(yaml.safe_load(text))
