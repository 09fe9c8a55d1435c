"""The fields of a hardware description: their names, their kinds, what each may hold.

Values arrive as the text that the author wrote, and each field's type reads it; the same types are
published as JSON Schema for editors.  What concerns several fields at once is checked in
:mod:`isamap.hw.check`.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from isamap.hw.units import (
    WRITTEN,
    Dimension,
    parse_quantity,
    parse_whole,
    quantity_pattern,
    shorten,
    with_values,
)
from isamap.ir.dtype import DTYPES
from isamap.ir.numeric import Flush, Order, Rounding

FORMAT = 1
"""The version of the format that this reads."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found a {_kind(value)}")
    return value


def _kind(value: object) -> str:
    return "list" if isinstance(value, list) else "mapping" if isinstance(value, dict) else "value"


def _name(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(_NAME, text, re.ASCII) or len(text) > 64:
        raise ValueError(f"expected a name (letters, digits, _), found '{shorten(text)}'")
    return text


def _dtype(value: object) -> str:
    text = _text(value)
    if text not in DTYPES:
        raise ValueError(f"unknown type '{shorten(text)}', expected one of {', '.join(DTYPES)}")
    return text


def _words(value: object) -> object:
    """A list of texts; one text alone stands for a list of one."""
    return [value] if isinstance(value, str) else value


def _busy(value: object, info: ValidationInfo) -> dict[str, Fraction | None]:
    """A list of units; one text alone stands for a list of one; or the cycles of each."""
    if isinstance(value, dict):
        cycles: dict[str, Fraction | None] = {}
        for unit, one in value.items():
            try:
                cycles[unit] = _positive(parse_quantity(_number(one, info), "cycles"))
            except ValueError as error:
                raise ValueError(f"'{unit}': {error}") from None
        return cycles
    if not isinstance(value, str | list):
        raise ValueError("expected units, or a mapping of units to cycles")
    return dict.fromkeys(map(_text, [value] if isinstance(value, str) else value))


def times(units: Mapping[str, Fraction | None] | None) -> list[Fraction]:
    """Return the cycles that units have of their own."""
    return [cycles for cycles in (units or {}).values() if cycles is not None]


def _several(value: object) -> object:
    """A list of mappings; one mapping alone stands for a list of one."""
    if value == []:
        raise ValueError("expected a mapping or a list of them, found an empty list")
    return [value] if isinstance(value, dict) else value


def _or_one(field: dict[str, Any]) -> None:
    """Let the schema of a list take one of its items as well."""
    one = field.pop("items")
    field["anyOf"] = [one, {"type": field.pop("type"), "items": one, "minItems": 1}]


def _whole(value: object, info: ValidationInfo) -> int:
    return parse_whole(_number(value, info))


def _number(value: object, info: ValidationInfo) -> str:
    """Return the text of a number, parameters of the description replaced by their values."""
    return with_values(_text(value), info.context or {})


def _positive(value: Fraction) -> Fraction:
    if value <= 0:
        raise ValueError(f"expected more than 0, found {value}")
    return value


def _not_negative(value: Fraction) -> Fraction:
    if value < 0:
        raise ValueError(f"expected 0 or more, found {value}")
    return value


def _at_least_one(value: int) -> int:
    if value < 1:
        raise ValueError(f"expected at least 1, found {value}")
    return value


def _flag(value: object) -> bool:
    text = _text(value)
    if text not in ("true", "false"):
        raise ValueError(f"expected true or false, found '{shorten(text)}'")
    return text == "true"


def _whole_bytes(value: object, info: ValidationInfo) -> int:
    size = parse_quantity(_number(value, info), "bytes")
    if size.denominator != 1 or size < 1:
        raise ValueError(f"expected a whole number of bytes, at least 1, found {value}")
    return int(size)


def _power_of_two(value: int) -> int:
    if value < 1 or value & (value - 1):
        raise ValueError(f"expected a power of two, found {value}")
    return value


def _quantity(dimension: Dimension) -> BeforeValidator:
    def read(value: object, info: ValidationInfo) -> Fraction:
        return parse_quantity(_number(value, info), dimension)

    return BeforeValidator(read)


def _quantity_schema(dimension: Dimension, bare: bool = False) -> WithJsonSchema:
    text: dict[str, Any] = {"type": "string", "pattern": quantity_pattern(dimension)}
    return WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, text]} if bare else text)


Name: TypeAlias = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"})
]
Text: TypeAlias = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
Source: TypeAlias = Annotated[
    str,
    BeforeValidator(_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}),
]
Words: TypeAlias = Annotated[
    tuple[Text, ...],
    BeforeValidator(_words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Count: TypeAlias = Annotated[
    int,
    BeforeValidator(_whole),
    AfterValidator(_at_least_one),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": f"^{WRITTEN}$"},
            ]
        }
    ),
]
Flag: TypeAlias = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
Power: TypeAlias = Annotated[
    int,
    BeforeValidator(_whole),
    AfterValidator(_power_of_two),
    WithJsonSchema({"type": "integer", "minimum": 1}),
]
Bytes: TypeAlias = Annotated[int, BeforeValidator(_whole_bytes), _quantity_schema("bytes")]
Rate: TypeAlias = Annotated[
    Fraction, AfterValidator(_positive), _quantity("bytes/cycle"), _quantity_schema("bytes/cycle")
]
Frequency: TypeAlias = Annotated[
    Fraction, AfterValidator(_positive), _quantity("frequency"), _quantity_schema("frequency")
]
Cycles: TypeAlias = Annotated[
    Fraction,
    AfterValidator(_not_negative),
    _quantity("cycles"),
    _quantity_schema("cycles", bare=True),
]
Throughput: TypeAlias = Annotated[
    Fraction,
    AfterValidator(_positive),
    _quantity("cycles"),
    _quantity_schema("cycles", bare=True),
]
Busy: TypeAlias = Annotated[
    dict[str, Fraction | None],
    PlainValidator(_busy),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
                {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [
                            {"type": "number", "exclusiveMinimum": 0},
                            {"type": "string", "pattern": quantity_pattern("cycles")},
                        ]
                    },
                },
            ]
        }
    ),
]
"""Units that are busy, and for how many cycles each, None where all are as long."""
Energy: TypeAlias = Annotated[
    Fraction, AfterValidator(_not_negative), _quantity("energy"), _quantity_schema("energy")
]
Area: TypeAlias = Annotated[
    Fraction, AfterValidator(_not_negative), _quantity("area"), _quantity_schema("area")
]
Type: TypeAlias = Annotated[
    str, BeforeValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(DTYPES)})
]


class Model(BaseModel):
    """What all parts of a description share: frozen, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StorageModel(Model):
    """A place where operands live: register file, scratchpad, cache or memory."""

    kind: Literal["registers", "scratchpad", "cache", "memory", "immediate"] = Field(
        description="registers (C variables), scratchpad (placed by the schedule), cache (seen by "
        "the cost model only), memory (what pointers reach), immediate (constants in the code)"
    )
    count: Count | None = Field(None, description="registers: how many there are")
    bits: Count | None = Field(None, description="registers: width of each, in bits")
    within: Name | None = Field(
        None, description="registers: the register file that these are a part of, or made of"
    )
    size: Bytes | None = Field(None, description="scratchpad, cache: capacity, as in '48 KiB'")
    banks: Count = Field(1, description="scratchpad: banks that are accessed side by side")
    alignment: Count = Field(
        1, description="memory: bytes to which arrays are aligned; scratchpad: bytes of a row"
    )
    line: Count | None = Field(None, description="cache: bytes of a line")
    ways: Count | None = Field(None, description="cache: lines in a set")
    streams: Count | None = Field(
        None, description="cache: walks through memory whose next lines hardware brings by itself"
    )
    regional: bool = Field(
        False,
        description="cache: hardware does so in regions of memory, so that rows which lie next to "
        "each other and are read side by side are one walk",
    )
    read: Rate | None = Field(
        None,
        description="cache, memory: rate at which it is read; registers, scratchpad: at which "
        "they are filled",
    )
    write: Rate | None = Field(
        None,
        description="cache, memory: rate at which it is written; registers, scratchpad: at which "
        "they are emptied",
    )
    latency: Cycles = Field(Fraction(0), description="cycles until what is read arrives")
    types: dict[Type, Text] = Field(
        default_factory=dict, description="registers: the C type that holds each element type"
    )
    prefetch: Text | None = Field(
        None, description="cache: C template that brings the line at {address} here"
    )
    fence: Text | None = Field(
        None, description="memory: C text after which all see what was written past the caches"
    )
    spare: Count | None = Field(
        None, description="registers: how many of them blocks chosen by rule leave to the compiler"
    )
    renamed: Flag = Field(
        False,
        description="registers: one may be loaded again while its last value is still being used",
    )
    numbered: Flag = Field(
        False, description="registers: no C variables; templates get numbers, from 0 to count - 1"
    )
    permit: Text = Field(
        "", description="registers: a C expression that is 0 where they cannot be used; each call"
    )
    enter: Text = Field(
        "", description="registers: C statements of each thread before it uses them"
    )
    leave: Text = Field("", description="registers: C statements of each thread when it is done")
    function: Words = Field(
        (), description="registers: C attributes of the functions that use them, put before each"
    )


class ParameterModel(Model):
    """A number of the machine that is chosen when the description is loaded."""

    what: Text = Field("", description="what it is, for people")
    default: Count = Field(description="its value unless another one is asked for")
    values: tuple[Count, ...] = Field(description="the values that it can have")


class NumericModel(Model):
    """How an instruction adds and rounds floats, where its statement leaves that open."""

    fused: Flag = Field(False, description="a product that is added is not rounded first")
    sums: dict[Name, Order] = Field(
        default_factory=dict,
        description="how terms are added over reduction variables, the outermost first",
    )
    groups: dict[Name, Count] = Field(
        default_factory=dict,
        description="so many neighbouring terms over a variable have a sum of their own",
    )
    zero: Flag = Field(
        False, description="a sum of terms of its own begins with zero, not with a term"
    )
    rounding: Rounding = Field(
        "nearest", description="of each step in f32: to the nearest (ties to even), or to odd"
    )
    flush: Flush = Field(
        "never",
        description="subnormal f32 are zero in the arguments and results of each step; results "
        "that are so before they are rounded, or after",
    )


class InstructionModel(Model):
    """One machine operation, or a family of them over type parameters."""

    semantics: Text = Field(description="'instruction NAME { ... }' in the language of kernels")
    emit: Text | None = Field(None, description="C template: {operand}, {extent}, {T}; {{ is {")
    bypass: Text | None = Field(
        None,
        description="C template of the same store past the caches, which needs no alignment, or of "
        "the same load that leaves nothing in the first cache",
    )
    throughput: Throughput | None = Field(
        None,
        description="cycles for which one instruction keeps one of each of its units busy; not "
        "where 'units' has the cycles of each",
    )
    latency: Cycles = Field(description="cycles from operands to result")
    latency_from: dict[Name, Cycles] = Field(
        default_factory=dict,
        description="cycles from an operand to the result where they are fewer, as from what is "
        "added last",
    )
    length: Count = Field(1, description="machine instructions of which it consists")
    besides: dict[Name, Count] = Field(
        default_factory=dict,
        description="registers that its C takes besides those of its operands, by register file",
    )
    units: Busy = Field(
        default_factory=dict,
        description="execution units that it occupies; a mapping where for unlike times",
    )
    align: dict[Name, Power] = Field(
        default_factory=dict, description="bytes to which an operand in memory must be aligned"
    )
    same: tuple[Name, ...] = Field(
        (), description="operands that must be one register, as where an input is overwritten"
    )
    constraints: Words = Field(
        (), description="what must hold of axes and extents at every use, as in 'k % 4 == 0'"
    )
    states: dict[Name, Source] = Field(
        default_factory=dict,
        description="states that it finds set, to an extent, an immediate operand or a number",
    )
    numeric: Annotated[tuple[NumericModel, ...], BeforeValidator(_several)] = Field(
        (),
        description="which bits come out where the statement leaves that open; a list where "
        "machines may differ",
        json_schema_extra=_or_one,
    )
    energy: Energy | None = Field(None, description="energy of one, as in '12 pJ'")
    area: Area | None = Field(None, description="silicon area, as in '350 um2'")
    source: Text | None = Field(None, description="where the figures come from")


class ChangeModel(Model):
    """What is another thing of an inherited instruction; what it computes stays."""

    emit: Text | None = Field(None, description="C template")
    throughput: Throughput | None = Field(None, description="cycles that it keeps units busy for")
    latency: Cycles | None = Field(None, description="cycles from operands to result")
    latency_from: dict[Name, Cycles] = Field(
        default_factory=dict,
        description="cycles from an operand to the result where they are fewer, as from what is "
        "added last",
    )
    length: Count | None = Field(None, description="machine instructions of which it consists")
    besides: dict[Name, Count] = Field(
        default_factory=dict,
        description="registers that its C takes besides those of its operands, by register file",
    )
    units: Busy | None = Field(
        None, description="execution units that it occupies; a mapping where for unlike times"
    )
    align: dict[Name, Power] = Field(
        default_factory=dict, description="bytes to which an operand in memory must be aligned"
    )
    numeric: Annotated[tuple[NumericModel, ...], BeforeValidator(_several)] = Field(
        (), description="which bits come out", json_schema_extra=_or_one
    )
    energy: Energy | None = Field(None, description="energy of one, as in '12 pJ'")
    area: Area | None = Field(None, description="silicon area, as in '350 um2'")
    source: Text | None = Field(None, description="where the figures come from")


class StateModel(Model):
    """Something that instructions find set, until it is set again."""

    throughput: Annotated[Cycles, AfterValidator(_positive)] = Field(
        description="cycles for which setting it keeps each of its units busy"
    )
    units: Words = Field(description="execution units that setting it occupies")
    count: Count = Field(1, description="values that it holds at once")
    emit: Text | None = Field(None, description="C template that gives it the value '{value}'")


class EmulatorModel(Model):
    """How executables are made and run where the CPU lacks features."""

    runner: Words = Field(description="put before the executable's path")
    program: Words | None = Field(None, description="make an executable, in place of the usual")


class TokensModel(Model):
    """How code posts tokens and waits for them, where units wait for nothing else."""

    type: Text = Field(description="C type of a token; one of zeros is not waited for")
    post: Text = Field(description="C expression: a token of all that {unit} was given so far")
    wait: Text = Field(
        description="C statement: {unit} starts nothing more before the work of {token} is done"
    )
    idle: Text = Field(description="C statement that returns when all units are done")


class ToolchainModel(Model):
    """How emitted C becomes something that runs; argument lists, never shell text."""

    compiler: Words | None = Field(None, description="program and its first arguments")
    flags: Words = Field((), description="added to every compilation")
    shared: Words | None = Field(None, description="make a shared library")
    program: Words | None = Field(None, description="make an executable")
    runner: Words | None = Field(None, description="put before the executable's path")
    measure: Words | None = Field(
        None, description="runs an executable and counts its cycles; see docs/targets.md"
    )
    seconds: Count | None = Field(
        None, description="how long a run by 'runner' or 'measure' may take; 60 unless given"
    )
    emulator: EmulatorModel | None = Field(
        None, description="a runner for CPUs that lack some of the description's features"
    )
    start: Text | None = Field(
        None,
        description="C text of an executable without a C library: isamap_read, isamap_write, "
        "isamap_end and the entry, which calls isamap_main",
    )
    headers: Words = Field((), description="headers included at the top")
    includes: Words = Field((), description="folders beside the description that have headers")
    team: Text = Field(
        "",
        description="C text by which all cores execute calls on scratchpads in step: "
        "isamap_share, isamap_together and isamap_meet",
    )
    tokens: TokensModel | None = Field(
        None, description="how units that are queues are told to wait, where they wait for tokens"
    )
    prelude: Text = Field("", description="C text put after the headers")
    unroll: Count | None = Field(
        None,
        description="instructions that innermost loops are to have at least: "
        "the compiler is asked to repeat shorter ones",
    )
    vector: Count | None = Field(
        None,
        description="bytes of the vectors that the compiler makes of loops over single elements: "
        "it is asked to (#pragma omp simd, which gcc and clang heed with -fopenmp-simd)",
    )


class DescriptionModel(Model):
    """A hardware description of isamap."""

    format: Annotated[
        int, BeforeValidator(_whole), WithJsonSchema({"type": "integer", "const": FORMAT})
    ] = Field(description="version of this format")
    name: Name = Field(description="the name that reports use")
    title: Text = Field("", description="one line for people")
    extends: Text | None = Field(
        None, description="a shipped description, or a file beside this one, that this one adds to"
    )
    source: Text | None = Field(None, description="where figures without a source come from")
    clock: Frequency | None = Field(None, description="as in '3.0 GHz'")
    cores: Count | None = Field(None, description="cores that run at the same time")
    issue: Count | None = Field(None, description="instructions started per cycle and core")
    unroll: Count | None = Field(
        None, description="steps of a sum in one body, at most, where loops cost something"
    )
    queues: Literal["interlocked", "tokens"] | None = Field(
        None,
        description="units are queues side by side, each in the order of the program: hardware "
        "holds back what must wait for another one (interlocked), or they wait for tokens only",
    )
    host: Words = Field(
        (),
        description="units that are no queues where the others wait for tokens: the program's own",
    )
    features: Words = Field((), description="CPU features (/proc/cpuinfo) that the code needs")
    vendor: Text | None = Field(
        None,
        description="who made the CPUs that the figures are of (vendor_id of /proc/cpuinfo): it is "
        "'native' on no others, though its code runs there, too",
    )
    lacks: Words = Field(
        (),
        description="CPU features (/proc/cpuinfo) that the CPUs do not have that the figures are "
        "of: it is 'native' on none that has one",
    )
    parameters: dict[Name, ParameterModel] = Field(
        default_factory=dict,
        description="numbers chosen when it is loaded: factors in numbers, {NAME} in texts",
    )
    units: dict[Name, Count] = Field(
        default_factory=dict, description="execution units and how many there are of each"
    )
    merge: dict[Name, Name] = Field(
        default_factory=dict,
        description="units that are another one here: what occupies the first occupies the second",
    )
    states: dict[Name, StateModel] = Field(
        default_factory=dict, description="what instructions find set: pitches, scales, modes"
    )
    storages: dict[Name, StorageModel] = Field(
        default_factory=dict, description="storages, nearest to the units first"
    )
    without: Words = Field(
        (), description="inherited instructions and caches that this machine lacks"
    )
    change: dict[Name, ChangeModel] = Field(
        default_factory=dict,
        description="inherited instructions, by name, of which some fields are others here",
    )
    instructions: tuple[InstructionModel, ...] = Field((), description="what the machine can do")
    toolchain: ToolchainModel | None = Field(
        None, description="compiler and runner; without one the machine is simulated"
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a description, as published in ``hwdesc/schema.json``."""
    schema = _without_null(DescriptionModel.model_json_schema(mode="validation"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_null(schema: Any) -> Any:
    """A field may be absent, but not empty: nothing in the file is null."""
    match schema:
        case {"anyOf": [inner, {"type": "null"}], **rest}:
            kept = {key: value for key, value in rest.items() if key != "default"}
            return {**_without_null(inner), **kept}
        case dict():
            return {key: _without_null(value) for key, value in schema.items()}
        case list():
            return [_without_null(item) for item in schema]
        case _:
            return schema
