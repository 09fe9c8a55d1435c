"""Where the data files that ship with isamap are found."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def shipped(folder: str) -> Traversable:
    """Return ``isamap/<folder>`` of a wheel, or ``<checkout>/<folder>`` of a source tree."""
    installed = files("isamap") / folder
    return installed if installed.is_dir() else Path(__file__).parents[1] / folder
