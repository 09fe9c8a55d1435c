"""From a sample to something that runs."""

from isamap.emit.c import emit_c
from isamap.emit.source import CSource
from isamap.run.build import build_shared
from isamap.run.callable import Compiled
from isamap.run.worker import Loaded
from tests.emit.machines import machine
from tests.emit.samples import Sample

MACHINE = machine()


def emitted(sample: Sample) -> CSource:
    """Return the C of a sample."""
    return emit_c(sample.lowered, MACHINE, sample.kernel)


def loaded(sample: Sample) -> Loaded:
    """Return a sample ready for a worker."""
    source = emitted(sample)
    return Loaded(build_shared(source, MACHINE), source)


def compiled(sample: Sample) -> Compiled:
    """Return a sample as a callable."""
    kernel = loaded(sample)
    return Compiled(kernel.source, kernel.path)
