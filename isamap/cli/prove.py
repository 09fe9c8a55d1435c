"""``isamap prove``: the certificate of a mapped kernel, made or checked again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isamap.cli.options import free_kernel_options
from isamap.cli.progress import progress

if TYPE_CHECKING:
    from isamap.proof.certificate import Certificate, Limits

_HELP = """Prove a mapping and the code that was made of it, for all sizes.

Maps the kernel as 'isamap map' does, then states and proves what must hold: the
laws of the mapping, that each iteration is computed once, that every access of the
code lies in its array, and what integers and floats do. Extents without a value
are proved for all values, not for samples. Besides, kernel and code are run modulo
a prime, where nothing rounds, and compared.

A claim is proved, refuted, or unknown; what is relied on without proof is told as
assumed. The exit code is 0 if everything is proved, 4 if something is refuted, and
6 if something is unknown.

\b
Examples
  isamap prove mm.ir --hw gemm16
  isamap prove mm.ir --hw x86_avx512 --set M=61 --save mm.proof.json
  isamap prove --check mm.proof.json
  isamap prove --check mm.proof.json mm.ir --hw x86_avx512 --set M=61
"""

_SHOWN = 5
"""Differences of a certificate that are told."""

_CODES = {"proved": 0, "refuted": 4, "unknown": 6}


@click.command("prove", help=_HELP)
@free_kernel_options
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE", help="Write the certificate."
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Check a saved certificate in place of mapping: derive its claims anew and prove them. "
    "With KERNEL.ir or --hw, also that it is about these.",
)
@click.option(
    "--timeout",
    type=click.IntRange(1, 10**6),
    metavar="MS",
    default=5000,
    show_default=True,
    help="Milliseconds that the solver may take for one lemma.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Prove every legal mapping, not only the chosen one."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    path: Path | None,
    hardware: str | None,
    sizes: tuple[tuple[str, int], ...],
    name: str | None,
    trust: bool,
    save: Path | None,
    checked: Path | None,
    timeout: int,
    everything: bool,
    as_json: bool,
) -> int:
    """Prove or check; print the claims; return the exit code."""
    from isamap.proof.certificate import Limits

    limits = Limits(milliseconds=timeout)
    if checked is not None:
        if save is not None or everything:
            raise click.UsageError("--check FILE takes no --save or --all.")
        expected = _Expected(path, dict(sizes), name, hardware, trust)
        return _check(checked, expected, limits, as_json)
    if path is None or hardware is None:
        raise click.UsageError("KERNEL.ir and --hw are needed, or --check FILE.")
    from isamap.cli.output import check_apart, check_file
    from isamap.cli.proofs import all_lines, proof_lines
    from isamap.pipeline.mapped import map_kernel
    from isamap.pipeline.prove import prove_mappings, prove_result
    from isamap.pipeline.source import files_read, load_hardware, load_kernel
    from isamap.proof.saved import certificate_json
    from isamap.proof.saved import save as write

    with progress() as tell:
        tell("read")
        kernel = load_kernel(path, dict(sizes), name)
        machine = load_hardware(hardware, trust)
        check_file(save)
        check_apart({"--save": (save,)}, files_read(path, hardware))
        result = map_kernel(kernel, machine, tell=tell)
        tell("prove")
        certificate = prove_result(result, limits)
        others = tuple(prove_mappings(result, limits)) if everything else ()
    if save is not None:
        write(certificate, save)
    if as_json:
        click.echo(json.dumps(certificate_json(certificate), indent=2))
    else:
        click.echo("\n".join(proof_lines(certificate)))
        if everything:
            click.echo("\n".join(["", *all_lines(others)]))
        if save is not None:
            click.echo(f"saved     {save}")
    found = {claim.verdict for other in others for claim in other.claims}
    return max(_code(certificate), 4 if "refuted" in found else 6 if "unknown" in found else 0)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a saved proof should be about; nothing where that is not said."""

    kernel: Path | None
    sizes: dict[str, int]
    name: str | None
    hardware: str | None
    trust: bool


def _check(path: Path, expected: _Expected, limits: "Limits", as_json: bool) -> int:
    from isamap.cli.proofs import proof_lines
    from isamap.diagnostics import fail
    from isamap.pipeline.source import load_hardware, load_kernel
    from isamap.proof.recheck import foreign, recheck
    from isamap.proof.saved import certificate_json, load

    with progress() as tell:
        tell("read")
        data = load(path)
        kernel = machine = found = None
        if expected.kernel is not None:
            kernel = load_kernel(expected.kernel, expected.sizes, expected.name)
        if expected.hardware is not None:
            machine = load_hardware(expected.hardware, expected.trust)
        differences = tuple(foreign(data, kernel, machine))
        if not differences:
            tell("prove")
            found = recheck(data, limits)
            differences = found.differences
    if found is not None and not as_json:
        click.echo("\n".join(proof_lines(found.certificate)))
    if as_json:
        document = {} if found is None else certificate_json(found.certificate)
        click.echo(json.dumps({**document, "differences": list(differences)}, indent=2))
    for difference in differences[:_SHOWN]:
        click.echo(fail("E775", f"{path}: {difference}").render(), err=True)
    if (more := len(differences) - _SHOWN) > 0:
        click.echo(f"and {more} more", err=True)
    if found is None:  # Of something else nothing is proved.
        return 1
    code = _code(found.certificate)
    return code if code == 4 else 1 if differences else code


def _code(certificate: "Certificate") -> int:
    return _CODES[certificate.verdict]
