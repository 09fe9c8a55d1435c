"""Kernels of one structure: the same text but for sizes and names."""

import re
from dataclasses import replace
from hashlib import sha256

from isamap.ir.nodes import Kernel
from isamap.ir.printer import print_kernel

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def family(kernel: Kernel) -> str:
    """Return a digest that kernels share which differ in values of extents and in names only.

    Numbers that are no extents are a part of the structure: strides, windows of a fixed size,
    tables, declared ranges of values.  So is the order in which operands are written.
    """
    extents = tuple(replace(extent, value=None) for extent in kernel.extents)
    nameless = replace(kernel, name="kernel", extents=extents)
    names = {*(e.name for e in kernel.extents), *(b.name for b in kernel.buffers)}
    names |= {v.name for statement in kernel.statements for v in statement.variables}
    places: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        word = match[0]
        return places.setdefault(word, f"n{len(places)}") if word in names else word

    text = _WORD.sub(renamed, print_kernel(nameless))
    return sha256(text.encode()).hexdigest()[:16]
