"""How many bytes of machine code a shared library holds, read from its ELF headers."""

import struct
from pathlib import Path

from isamap.diagnostics import ToolError, fail

_EXECUTABLE = 4  # SHF_EXECINSTR
_NO_BITS = 8  # SHT_NOBITS
# Code that the linker and the C library's start files put into every library.
_NOT_OURS = ("init", "fini", "plt")


def code_bytes(path: Path) -> int:
    """Return the bytes of a library's own executable sections.

    ToolError when the file is no ELF file: nothing else is known to tell its code's size.
    """
    data = path.read_bytes()
    try:
        return _sections(data)
    except (struct.error, IndexError, ValueError) as error:
        text = f"the size of the code in {path.name} is not known: it is no ELF file"
        raise ToolError(fail("E512", text)) from error


def _sections(data: bytes) -> int:
    if data[:4] != b"\x7fELF":
        raise ValueError("magic")
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    if wide:
        (table,) = struct.unpack_from(order + "Q", data, 0x28)
        size, count, names = struct.unpack_from(order + "HHH", data, 0x3A)
        form = order + "IIQQQQIIQQ"
    else:
        (table,) = struct.unpack_from(order + "I", data, 0x20)
        size, count, names = struct.unpack_from(order + "HHH", data, 0x2E)
        form = order + "IIIIIIIIII"
    headers = [struct.unpack_from(form, data, table + size * n) for n in range(count)]
    texts = headers[names][4]
    total = 0
    for name, kind, flags, _, _, length, *_ in headers:
        label = data[texts + name : data.index(b"\0", texts + name)].decode(errors="replace")
        if flags & _EXECUTABLE and kind != _NO_BITS and not label.strip(".").startswith(_NOT_OURS):
            total += length
    return total
