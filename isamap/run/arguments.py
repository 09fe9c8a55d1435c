"""Arrays and extents given to a compiled kernel: inferred, checked, told about."""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from isamap.diagnostics import ArgumentsError, Diagnostic, fail
from isamap.emit.source import CSource, Parameter
from isamap.ir.index import Index
from isamap.ir.nodes import Role
from isamap.run.protocol import shape_of


def check_arrays(
    source: CSource,
    arrays: Mapping[str, np.ndarray],
    symbols: Mapping[str, int],
    held: Container[str] = (),
) -> None:
    """ArgumentsError unless every input is there with its type and shape, and every extent.

    Those that are ``held`` were given before.
    """
    found = _symbol_faults(source, symbols, source.symbols)
    if found:
        raise ArgumentsError(found)
    for parameter in source.parameters:
        if parameter.name in held:
            continue
        if parameter.is_input and parameter.name not in arrays:
            found.append(fail("E520", f"no array is given for {described(parameter)}"))
        elif parameter.name in arrays:
            found += array_faults(parameter, arrays[parameter.name], symbols)
    if found:
        raise ArgumentsError(found)


def array_faults(
    parameter: Parameter, array: np.ndarray, symbols: Mapping[str, int]
) -> list[Diagnostic]:
    """Return what is wrong with one array."""
    wanted = parameter.dtype.numpy
    if array.dtype != wanted:
        return [
            fail("E521", f"{described(parameter)} takes {wanted} elements, found {array.dtype}")
        ]
    shape = shape_of(parameter, symbols)
    if array.shape != shape:
        return [fail("E522", f"{described(parameter)} has shape {shape} here, found {array.shape}")]
    return []


def described(parameter: Parameter) -> str:
    """Return a parameter as one declares it: ``X : f32[M, 3]``."""
    return f"{parameter.name} : {parameter.dtype}[{', '.join(map(str, parameter.shape))}]"


def not_taken(name: str, role: Role | None) -> str | None:
    """Return why nobody gives a buffer of the kernel, None where its role does not say."""
    match role:
        case "table":
            return f"{name} is a table: its elements are written in the kernel, leave it out"
        case "local":
            return f"{name} is local: it exists within the kernel only, leave it out"
        case _:
            return None


def infer_symbols(
    source: CSource,
    arrays: Mapping[str, np.ndarray],
    given: Mapping[str, int],
    wanted: Sequence[str] | None = None,
) -> dict[str, int]:
    """Return the values of symbols that ``given`` and the shapes of ``arrays`` tell.

    ArgumentsError for a wrong number of dimensions, or a symbol that nothing tells: any, or one of
    those that are ``wanted``.
    """
    values = dict(given)
    faults = [
        fail(
            "E522",
            f"{described(p)} has {len(p.shape)} dimensions, found shape {arrays[p.name].shape}",
        )
        for p in source.parameters
        if p.name in arrays and arrays[p.name].ndim != len(p.shape)
    ]
    if faults:
        raise ArgumentsError(faults)
    known = [
        (extent, length)
        for p in source.parameters
        if p.name in arrays
        for extent, length in zip(p.shape, arrays[p.name].shape, strict=True)
    ]
    while found := _solved(known, values):
        values |= found
    if faults := _symbol_faults(source, values, source.symbols if wanted is None else wanted):
        raise ArgumentsError(faults)
    return values


def _solved(known: list[tuple[Index, int]], values: Mapping[str, int]) -> dict[str, int]:
    """Return a symbol that is the only unknown of some extent, with its value."""
    for extent, length in known:
        rest = extent.substitute(values)
        names = sorted(rest.names)
        if len(names) != 1 or not rest.is_linear_in(names):
            continue
        factor = rest.coefficient(names[0]).constant
        if factor:
            value, remainder = divmod(length - rest.offset, factor)
            # A length that no whole number gives is told by the check of the shapes.
            return {names[0]: max(1, value + (remainder > 0))}
    return {}


def _symbol_faults(
    source: CSource, values: Mapping[str, int], wanted: Sequence[str]
) -> list[Diagnostic]:
    faults = []
    for name in source.symbols:
        if name in wanted and name not in values:
            faults.append(fail("E523", f"extent {name} has no value and no array's shape tells it"))
        elif values.get(name, 1) < 1:
            faults.append(fail("E524", f"extent {name} must be 1 or more, found {values[name]}"))
    unknown = [name for name in values if name not in source.symbols]
    faults += [fail("E525", f"there is no extent {name} to give a value") for name in unknown]
    return faults
