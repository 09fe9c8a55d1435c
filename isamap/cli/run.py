"""``isamap run``: compute with the mapped code."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isamap.cli.options import kernel_options, run_options, search_options
from isamap.cli.progress import progress
from isamap_search.budget import Budget

if TYPE_CHECKING:
    import numpy as np

_HELP = """Compute a kernel on arrays with the mapped code.

Arrays are found in IN.npz by the names of the buffers; extents without a value are taken from their
shapes. Without --inputs, random arrays that respect the declared ranges are used. Without
--outputs, a summary of each output is printed. The result is not checked: 'isamap map' does that.

\b
Examples
  isamap run mm.ir --hw native
  isamap run mm.ir --hw native --inputs in.npz --outputs out.npz
"""


@click.command("run", help=_HELP)
@kernel_options
@click.option(
    "--inputs",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="IN.npz",
    help="Input arrays by buffer name.",
)
@click.option(
    "--outputs",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT.npz",
    help="Where the output arrays are written.",
)
@run_options
def command(
    path: Path,
    hardware: str,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    inputs: Path | None,
    outputs: Path | None,
    written: Path | None,
    tune: Budget | None,
    seed: int,
    threads: int,
    simulate: bool,
    records: Path | None,
    forget: bool,
    objectives: tuple[str, ...],
    sampler: str | None,
    study: str | None,
    storage: str | None,
    log: Path | None,
    rewrite: tuple[str, ...] | None,
) -> int:
    """Map, run and write or print; return the exit code."""
    from isamap.cli.output import check_apart, check_file
    from isamap.pipeline.arrays import read_arrays, write_arrays
    from isamap.pipeline.compute import compute
    from isamap.pipeline.options import Options
    from isamap.pipeline.source import files_read, load_hardware, load_kernel, load_schedule

    search = search_options(tune, records, forget, objectives, sampler, study, storage, log)
    options = Options(
        threads,
        seed,
        tune,
        simulate,
        search.records,
        rewrite,
        search=search.settings,
        schedule=None if written is None else load_schedule(written),
    )
    with progress() as tell:
        tell("read")
        kernel = load_kernel(path, dict(sizes), name)
        machine = load_hardware(hardware, trust)
        check_file(outputs)
        read = chain(filter(None, (inputs, written)), files_read(path, hardware))
        check_apart({**search.written, "--outputs": (outputs,)}, read)
        given = None if inputs is None else read_arrays(inputs)
        execution = compute(kernel, machine, given, options, tell)
    assert execution.outputs is not None
    if execution.way == "simulated":
        hint = f" ({execution.hint})" if execution.hint else ""
        click.echo(f"isamap: simulated, because {execution.reason}{hint}", err=True)
    if outputs:
        write_arrays(outputs, execution.outputs)
    else:
        for buffer, array in execution.outputs.items():
            click.echo(_summary(buffer, array))
    return 0


def _summary(name: str, array: "np.ndarray") -> str:
    import numpy as np

    values = array.astype(np.float64)
    shape = ", ".join(map(str, array.shape))
    if not array.size:
        return f"{name}[{shape}] {array.dtype}: empty"
    first = ", ".join(f"{value:.6g}" for value in values.ravel()[:4])
    more = ", ..." if array.size > 4 else ""
    return (
        f"{name}[{shape}] {array.dtype}: min {values.min():.6g}, max {values.max():.6g}, "
        f"mean {values.mean():.6g}\n  [{first}{more}]"
    )
