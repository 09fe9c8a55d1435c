"""The certificate of a mapped kernel, and of every mapping that could have been chosen."""

from collections.abc import Iterator
from dataclasses import dataclass

from isamap.ir.statements import bind_extents
from isamap.mapping.matching import Mapping
from isamap.pipeline.result import Result
from isamap.proof.certificate import Certificate, Limits, certify, decide
from isamap.proof.claim import Claim
from isamap.proof.demands import mapping_demands
from isamap.proof.evidence import Evidence, mapping_obligations

QUICK = Limits(
    milliseconds=2000, seconds=1.0, calls=2_000, iterations=500_000, sizes=3, smaller=False
)
"""What ``isamap map`` spends on proofs: what this leaves open it reports as unknown."""


def prove_result(result: Result, limits: Limits | None = None) -> Certificate:
    """Return the certificate of a mapped kernel; see :func:`isamap.proof.certificate.certify`."""
    evidence = Evidence(
        result.kernel,
        result.rewritings,
        result.mapped,
        result.accelerator,
        result.schedule,
        result.lowered,
    )
    return certify(evidence, limits)


@dataclass(frozen=True, slots=True)
class ProvedMapping:
    """A legal mapping of the statement called ``statement``, and what was claimed of it."""

    statement: str
    mapping: Mapping
    claims: tuple[Claim, ...]


def prove_mappings(result: Result, limits: Limits | None = None) -> Iterator[ProvedMapping]:
    """Yield every legal mapping of every statement with its claims, chosen or not."""
    bound = bind_extents(result.mapped)
    for statement in result.statements:
        for mapping in statement.mappings:
            found = (
                *mapping_obligations(mapping, bound, statement.name),
                *mapping_demands(mapping, {}, bound.permissions, statement.name),
            )
            yield ProvedMapping(statement.name, mapping, decide(found, limits or Limits()))
