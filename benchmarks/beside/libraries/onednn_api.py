"""oneDNN's C interface, as much of it as ``onednn.py`` needs: layouts, memory, primitives.

Numbers are those of ``dnnl_types.h``, which are the same in all versions 3.  What the library made
lives as long as the object here that stands for it.
"""

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_float, c_int, c_int64, c_size_t, c_void_p
from functools import partial
from importlib.metadata import PackageNotFoundError, files

import numpy as np
from numpy.typing import DTypeLike

from beside.inputs import Array
from beside.places import CONSTANT, INPUT, RESULT, Address, at, room

PACKAGE = "onednn-cpu-gomp"

SRC, SRC_1, DST, WEIGHTS, BIAS, SCALE, SHIFT = 1, 2, 17, 33, 41, 51, 52
SCALES = 1 << 12
"""The operands of a call, and what makes one of them its scale."""

DIRECT, WINOGRAD, AUTO = 1, 2, 3
RELU, SQUARE, LINEAR, SWISH = 0x20, 0x23, 0x26, 0x2C
ADD = 0x1FFF0
INFERENCE, ACCURATE, SCALED_AND_SHIFTED = 96, 0x30000, 2 | 4
"""How to convolve; functions of an element; of two; what for; which soft-max; of a layer norm."""

_ANY, _EXEC_ARG = 1, 255
_STATUS = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 5: "runtime error"}
_ELEMENTS = {"bfloat16": 2, "float32": 3, "int32": 4, "int8": 5, "uint8": 6}


class Refused(Exception):
    """The library does not do this; the message names the call and the reason."""


def _loaded() -> ctypes.PyDLL:
    """Return the library; PackageNotFoundError if its package is not installed."""
    found = [file for file in files(PACKAGE) or () if file.name == "libdnnl.so.3"]
    if not found:
        raise PackageNotFoundError(PACKAGE)
    # No call lets go of the interpreter's lock: nothing else in this process would take it.
    library = ctypes.PyDLL(str(found[0].locate()))
    library.dnnl_memory_desc_get_size.restype = c_size_t
    library.dnnl_primitive_desc_query_md.restype = c_void_p
    library.dnnl_version.restype = POINTER(c_int)
    return library


LIBRARY = _loaded()


def version() -> str:
    """Return the version of the library: ``3.2.0``."""
    return ".".join(map(str, LIBRARY.dnnl_version()[:3]))


def checked(name: str, *words: object) -> None:
    """Call ``dnnl_NAME``; Refused unless it is a success."""
    plain = [word.pointer if isinstance(word, Handle) else word for word in words]
    status = getattr(LIBRARY, f"dnnl_{name}")(*plain)
    if status:
        raise Refused(f"dnnl_{name}: {_STATUS.get(status, status)}")


class Handle:
    """What ``dnnl_NAME`` makes, as ``dnnl_KIND_destroy`` ends it."""

    def __init__(self, kind: str, name: str, *words: object) -> None:
        self.pointer = c_void_p()
        checked(name, byref(self.pointer), *words)
        destroy = getattr(LIBRARY, f"dnnl_{kind}_destroy")
        weakref.finalize(self, destroy, self.pointer).atexit = False


ENGINE = Handle("engine", "engine_create", 1, c_size_t(0))
_STREAM = Handle("stream", "stream_create", ENGINE, 1)


def dims(*sizes: int) -> "ctypes.Array[c_int64]":
    """Return sizes, or strides, as the library takes them."""
    return (c_int64 * len(sizes))(*sizes)


def strided(shape: Sequence[int], dtype: DTypeLike, order: Sequence[int] = ()) -> Handle:
    """Return the layout of an array whose axes lie in an order, the last one close; that of C."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order or range(len(shape))):
        strides[axis], step = step, step * shape[axis]
    return _layout("strides", shape, dtype, dims(*strides))


def chosen(shape: Sequence[int], dtype: DTypeLike) -> Handle:
    """Return a layout that a primitive chooses."""
    return _layout("tag", shape, dtype, _ANY)


def _layout(how: str, shape: Sequence[int], dtype: DTypeLike, word: object) -> Handle:
    name, element = f"memory_desc_create_with_{how}", _ELEMENTS[np.dtype(dtype).name]
    return Handle("memory_desc", name, len(shape), dims(*shape), element, word)


class Memory(Handle):
    """A buffer whose elements lie as a layout says."""

    def __init__(self, layout: Handle | c_void_p, buffer: Array) -> None:
        self.layout, self.address = layout, at(buffer)
        super().__init__("memory", "memory_create", layout, ENGINE, self.address)

    @classmethod
    def room(cls, layout: Handle | c_void_p, begin: int) -> "Memory":
        """Return room for a layout that begins so many bytes into a page."""
        asked = layout.pointer if isinstance(layout, Handle) else layout
        return cls(layout, room((LIBRARY.dnnl_memory_desc_get_size(asked),), np.uint8, begin))

    @classmethod
    def of(cls, array: Array, layout: Handle | c_void_p, begin: int) -> "Memory":
        """Return the elements of an array in a layout, so many bytes into a page."""
        whole = np.ascontiguousarray(array)
        found = cls.room(layout, begin)
        cls(strided(whole.shape, whole.dtype), whole).copy_to(found)
        return found

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return the elements in an array in the order of C, bf16 as f32."""
        found = np.empty(shape, dtype)
        self.copy_to(Memory(strided(shape, dtype), found))
        return found.astype(np.float32) if found.dtype.name == "bfloat16" else found

    def copy_to(self, other: "Memory") -> None:
        """Copy the elements to another layout."""
        Primitive("reorder", self.layout, ENGINE, other.layout, ENGINE).call(
            {SRC: self, DST: other}
        )


class Attributes(Handle):
    """What a primitive does with its sums before it stores them."""

    def __init__(self) -> None:
        super().__init__("primitive_attr", "primitive_attr_create")
        self._after = Handle("post_ops", "post_ops_create")

    def then(self, function: int, alpha: float = 0, beta: float = 0) -> "Attributes":
        """Return these, with a function of an element behind."""
        checked("post_ops_append_eltwise", self._after, function, c_float(alpha), c_float(beta))
        checked("primitive_attr_set_post_ops", self, self._after)
        return self

    def scaled(self, operand: int) -> "Attributes":
        """Return these, with a number that an operand is multiplied by, or a result divided."""
        checked("primitive_attr_set_scales_mask", self, operand, 0)
        return self


class _Operand(ctypes.Structure):
    _fields_ = (("number", c_int), ("memory", c_void_p))


class Primitive(Handle):
    """A primitive for certain layouts; Refused if the library has none."""

    def __init__(self, name: str, *words: object, attributes: Attributes | None = None) -> None:
        create = f"{name}_primitive_desc_create"
        self._description = Handle("primitive_desc", create, *words, attributes)
        super().__init__("primitive", "primitive_create", self._description)

    def layout(self, operand: int) -> Address:
        """Return the layout of an operand."""
        asked = self._description.pointer, _EXEC_ARG, operand
        return Address(LIBRARY.dnnl_primitive_desc_query_md(*asked), self)

    def operands(self, given: Mapping[int, Array]) -> dict[int, Memory]:
        """Return arrays in the layouts that it takes, and room for the result."""
        found = {DST: Memory.room(self.layout(DST), RESULT)}
        for operand, array in given.items():
            plain = strided(array.shape, array.dtype)
            layout = plain if operand & SCALES else self.layout(operand)
            found[operand] = Memory.of(array, layout, INPUT if operand == SRC else CONSTANT)
        return found

    def call(self, operands: Mapping[int, Memory]) -> Callable[[], int]:
        """Return what executes it once, tried; it holds all that it needs."""
        pairs = [_Operand(number, memory.pointer) for number, memory in operands.items()]
        array = (_Operand * len(pairs))(*pairs)
        place = Address(ctypes.addressof(array), array, self, operands)
        words = self.pointer, _STREAM.pointer, c_int(len(pairs)), place
        checked("primitive_execute", *words)
        return partial(LIBRARY.dnnl_primitive_execute, *words)
