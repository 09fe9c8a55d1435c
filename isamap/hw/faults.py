"""What tools are recorded to compute wrongly: data, read from one file."""

import re
from functools import cache

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from isamap.resources import shipped


class Fault(BaseModel):
    """Something that a ``tool`` does wrongly in the versions of a range.

    ``first`` is the oldest of these versions, ``before`` the oldest one that is right again, None
    where there is no end.  ``instruction`` is a name of the description ``target``, with or without
    the types that are bound to it; ``what`` says what is wrong.

    If all of it is known, ``computes`` are the statements that are computed in place of its own,
    with their locals, and ``within`` is how far floats may be from what is right or from what these
    give.  What is wrong in another way is then not recorded.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    first: str | None = Field(None, alias="from")
    before: str | None = None
    target: str
    instruction: str
    what: str
    computes: str | None = None
    within: float | None = Field(None, gt=0, allow_inf_nan=False)

    def is_of(self, version: str) -> bool:
        """Whether a version of the tool has it."""
        if self.first is not None and older(version, self.first):
            return False
        return self.before is None or older(version, self.before)

    @property
    def is_exact(self) -> bool:
        """Whether it says what comes out in place of what should."""
        return self.computes is not None or self.within is not None


def older(version: str, other: str) -> bool:
    """Return whether a version, numbers with dots between, comes before another one."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)]

    return numbers(version) < numbers(other)


def faults_of(text: str) -> tuple[Fault, ...]:
    """Return the faults that a text lists.  ValueError if it is no such list."""
    return TypeAdapter(tuple[Fault, ...]).validate_python(yaml.safe_load(text))


@cache
def recorded_faults() -> tuple[Fault, ...]:
    """Return the faults that ship with isamap."""
    return faults_of((shipped("hwdesc") / "tools" / "faults.yaml").read_text(encoding="utf-8"))
