"""isamap: maps tensor kernels on to the instructions of described hardware.

>>> import isamap
>>> kernel = isamap.load_kernel("mm.ir", set={"N": 64})
>>> machine = isamap.load_hardware("native")
>>> result = isamap.map(kernel, machine)
>>> result.mappings[0].matching.needle.name
'vfmadd_f32'
>>> f = result.compile()
>>> f(A=a, B=b)["C"]
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isamap.diagnostics import IsamapError
    from isamap.hw.accelerator import Accelerator
    from isamap.ir.nodes import Kernel
    from isamap.pipeline.mapped import map_kernel as map
    from isamap.pipeline.options import Options
    from isamap.pipeline.report import make_report as report
    from isamap.pipeline.result import Report, Result
    from isamap.pipeline.schedule_text import schedule_text
    from isamap.pipeline.source import load_hardware, load_kernel, load_schedule
    from isamap_search.budget import Budget

__version__ = "0.1.0"

__all__ = [
    "Accelerator",
    "Budget",
    "IsamapError",
    "Kernel",
    "Options",
    "Report",
    "Result",
    "__version__",
    "load_hardware",
    "load_kernel",
    "load_schedule",
    "map",
    "report",
    "schedule_text",
]

# Imported when first used: 'isamap --version' needs none of them, nor numpy.
_HOMES = {
    "Accelerator": ("isamap.hw.accelerator", "Accelerator"),
    "Budget": ("isamap_search.budget", "Budget"),
    "IsamapError": ("isamap.diagnostics", "IsamapError"),
    "Kernel": ("isamap.ir.nodes", "Kernel"),
    "Options": ("isamap.pipeline.options", "Options"),
    "Report": ("isamap.pipeline.result", "Report"),
    "Result": ("isamap.pipeline.result", "Result"),
    "load_hardware": ("isamap.pipeline.source", "load_hardware"),
    "load_kernel": ("isamap.pipeline.source", "load_kernel"),
    "load_schedule": ("isamap.pipeline.source", "load_schedule"),
    "map": ("isamap.pipeline.mapped", "map_kernel"),
    "schedule_text": ("isamap.pipeline.schedule_text", "schedule_text"),
    "report": ("isamap.pipeline.report", "make_report"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'isamap' has no attribute '{name}'")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
