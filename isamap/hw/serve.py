"""A described machine whose instructions another one executes: ``tpp@x86_avx512``."""

import hashlib
from dataclasses import replace

from isamap.diagnostics import HardwareError, fail
from isamap.hw.accelerator import Accelerator


def split_server(text: str) -> tuple[str, str | None]:
    """Return the name of a machine, and that of its server if one follows it after ``@``."""
    name, at, server = text.rpartition("@")
    return (name, server) if at and name else (text, None)


def served_by(machine: Accelerator, server: Accelerator) -> Accelerator:
    """Return ``machine`` as ``server`` executes it.

    HardwareError if it has C templates of its own, or the server has none.
    """
    if machine.toolchain is not None:
        text = f"'{machine.name}' has C of its own, and nothing serves it"
        hint = "a machine that is served has instructions without 'emit', and no toolchain"
        raise HardwareError(fail("E133", text, hint=hint))
    if server.toolchain is None:
        text = f"'{server.name}' serves nothing: it has no toolchain"
        raise HardwareError(fail("E133", text, hint="name a machine that code is compiled for"))
    digest = hashlib.sha256(f"{machine.digest}\n{server.digest}".encode()).hexdigest()
    return replace(
        machine,
        name=f"{machine.name}@{server.name}",
        toolchain=server.toolchain,
        features=server.features,
        digest=digest,
        trusted=machine.trusted and server.trusted,
        server=server,
    )
