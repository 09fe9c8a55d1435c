"""This machine: which CPU features it has, and whether a description's code can run on it."""

import re
from pathlib import Path

from isamap.hw.accelerator import Accelerator
from isamap.hw.shipped import shipped_names, shipped_source
from isamap.hw.tools import find_tool
from isamap.hw.yaml_nodes import plain, read_nodes

_CPUINFO = Path("/proc/cpuinfo")


def cpu_features() -> frozenset[str]:
    """Return the feature names that the kernel lists for the first CPU; empty if it lists none."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    # 'flags' on x86, 'Features' on Arm.
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def runnable(accelerator: Accelerator) -> str | None:
    """Return why native code for a description cannot run here, or None if it can."""
    toolchain = accelerator.toolchain
    if toolchain is None:
        return f"{accelerator.name} has no toolchain"
    if toolchain.runner:
        if find_tool(toolchain.runner[0]) is None:
            return f"the runner '{toolchain.runner[0]}' is not installed"
    else:
        missing = [f for f in accelerator.features if f not in cpu_features()]
        if missing:
            return f"this CPU lacks {', '.join(missing)}"
    if find_tool(toolchain.compiler[0]) is None:
        return f"the compiler '{toolchain.compiler[0]}' is not installed"
    return None


def best_shipped() -> str:
    """Return the shipped description that uses the most features of this CPU."""
    present = cpu_features()
    best, most = "portable_c", -1
    for name in shipped_names():
        content = plain(read_nodes(shipped_source(name)))
        # A description without a toolchain of its own inherits one, or is simulated only.
        toolchain, features = content.get("toolchain"), content.get("features", [])
        compiles = toolchain is not None and "runner" not in toolchain
        if compiles and present.issuperset(features) and len(features) > most:
            best, most = name, len(features)
    return best
