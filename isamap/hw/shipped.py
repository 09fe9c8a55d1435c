"""The descriptions that ship with isamap."""

from isamap.diagnostics import Source
from isamap.hw.yaml_nodes import decode
from isamap.resources import shipped


def shipped_names() -> tuple[str, ...]:
    """Return the names of the descriptions that ship with isamap, sorted."""
    names = (item.name for item in shipped("hwdesc").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def shipped_source(name: str) -> Source:
    """Return the text of a shipped description."""
    data = (shipped("hwdesc") / f"{name}.yaml").read_bytes()
    return decode(f"hwdesc/{name}.yaml", data)
