"""This machine: which CPU features it has, and whether a description's code can run on it."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from isamap.hw.accelerator import Accelerator
from isamap.hw.catalogue import catalogue
from isamap.hw.needed import needed
from isamap.hw.parameters import split_name
from isamap.hw.shipped import shipped_names, shipped_source
from isamap.hw.tools import find_tool
from isamap.hw.yaml_nodes import plain, read_nodes

_CPUINFO = Path("/proc/cpuinfo")
Content: TypeAlias = dict[str, Any]


def cpu_features() -> frozenset[str]:
    """Return the feature names that the kernel lists for the first CPU; empty if it lists none."""
    # 'flags' on x86, 'Features' on Arm.
    return frozenset(_of_first_cpu("flags|Features").split())


def cpu_vendor() -> str:
    """Return who made the first CPU, as the kernel says it; '' where it does not."""
    return _of_first_cpu("vendor_id")


def _of_first_cpu(names: str) -> str:
    """Return what the kernel lists under one of some names, '' if nothing."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(rf"^(?:{names})\s*:(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def lacking(features: Iterable[str]) -> tuple[str, ...]:
    """Return those of some features that the first CPU does not have."""
    present = cpu_features()
    return tuple(feature for feature in features if feature not in present)


def runnable(accelerator: Accelerator) -> str | None:
    """Return why code for a description cannot run here, or None if it can.

    A command that measures is taken to work: where it does not, what it says tells more.
    """
    toolchain = accelerator.toolchain
    if toolchain is None:
        return f"{accelerator.name} has no toolchain"
    if toolchain.runner and not toolchain.measure:
        if find_tool(toolchain.runner[0], toolchain.folder) is None:
            missing = lacking(accelerator.features)
            cause = f"this CPU lacks {', '.join(missing)}, and " if missing else ""
            return f"{cause}the runner '{toolchain.runner[0]}' is not installed"
    elif not toolchain.measure and (missing := lacking(accelerator.features)):
        return f"this CPU lacks {', '.join(missing)}"
    if find_tool(toolchain.compiler[0], toolchain.folder) is None:
        return f"the compiler '{toolchain.compiler[0]}' is not installed"
    for tool in needed(accelerator):
        if tool.is_old:
            least = catalogue()[tool.name].least
            said = f"{tool.version} is too old" if tool.version else "tells no version"
            return f"{tool.name} {said}, {least} or later is needed"
    return None


def elsewhere(accelerator: Accelerator) -> str:
    """Return why code that a toolchain makes cannot run in this process, '' if it can."""
    toolchain = accelerator.toolchain
    assert toolchain is not None, "there is no code without one"
    if command := toolchain.measure or toolchain.runner:
        return f"'{command[0]}' runs it"
    missing = lacking(accelerator.features)
    return f"this CPU lacks {', '.join(missing)}" if missing else ""


def install_command(accelerator: Accelerator) -> str:
    """Return the command that fetches the tools that a description's code is built and run with."""
    machine = accelerator.server or accelerator
    name = split_name(machine.name)[0]
    return f"isamap targets install {name if name in shipped_names() else machine.path}"


def remedy(accelerator: Accelerator) -> str:
    """Return the command that fetches the compiler or runner that is lacking, '' if none does.

    One that is too old is lacking, too.
    """
    lacking = any(not tool.is_there for tool in needed(accelerator))
    return install_command(accelerator) if lacking else ""


def best_shipped() -> str:
    """Return the shipped description that uses the most features of this CPU.

    Of several the one whose figures are of CPUs of its vendor, and of such that lack what it lacks.
    """
    present, vendor = cpu_features(), cpu_vendor()
    best, most = "portable_c", (-1, False, -1)
    for name in shipped_names():
        chain = _chain(name)
        features, made_by = chain[0].get("features", []), chain[0].get("vendor")
        lacks = chain[0].get("lacks", [])
        # A description without a toolchain of its own inherits one, or is simulated only.
        compiles = ("toolchain" in chain[0] or made_by) and not _runs_elsewhere(chain)
        fits = present.issuperset(features) and made_by in (None, vendor)
        uses = (len(features), made_by is not None, len(lacks))
        if compiles and fits and present.isdisjoint(lacks) and uses > most:
            best, most = name, uses
    return best


def _chain(name: str) -> list[Content]:
    """Return the contents of a shipped description and of those that it extends, its own first."""
    chain = [plain(read_nodes(shipped_source(name)))]
    while (parent := chain[-1].get("extends")) is not None:
        chain.append(plain(read_nodes(shipped_source(parent))))
    return chain


def _runs_elsewhere(chain: list[Content]) -> bool:
    """Return whether the nearest runner or measuring command is one."""
    tools = [content.get("toolchain", {}) for content in chain]
    nearest = (
        next((own[field] for own in tools if field in own), None) for field in ("runner", "measure")
    )
    return any(nearest)
