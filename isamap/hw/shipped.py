"""The descriptions that ship with isamap."""

from difflib import get_close_matches

from isamap.diagnostics import Source
from isamap.hw.yaml_nodes import decode
from isamap.resources import shipped


def shipped_names() -> tuple[str, ...]:
    """Return the names of the descriptions that ship with isamap, sorted."""
    names = (item.name for item in shipped("hwdesc").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def near_names(name: str) -> tuple[str, ...]:
    """Return at most three names that may be meant by one that there is not, the nearest first.

    They are 'native' and shipped ones that are spelled nearly so, or of which it is a part.
    """
    known = ("native", *shipped_names())
    close = get_close_matches(name, known, n=3)
    part = [own for own in known if len(name) > 1 and name.lower() in own]
    return tuple(dict.fromkeys((*close, *part)))[:3]


def shipped_source(name: str) -> Source:
    """Return the text of a shipped description."""
    data = (shipped("hwdesc") / f"{name}.yaml").read_bytes()
    return decode(f"hwdesc/{name}.yaml", data)
