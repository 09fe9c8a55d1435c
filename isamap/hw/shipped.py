"""The descriptions that ship with isamap."""

from isamap.hw.document import Document, read_document
from isamap.hw.yaml_nodes import decode
from isamap.resources import shipped


def shipped_names() -> tuple[str, ...]:
    """Return the names of the descriptions that ship with isamap, sorted."""
    names = (item.name for item in shipped("hwdesc").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def read_shipped(name: str) -> Document:
    """Return the document of a shipped description."""
    data = (shipped("hwdesc") / f"{name}.yaml").read_bytes()
    return read_document(decode(f"hwdesc/{name}.yaml", data))
