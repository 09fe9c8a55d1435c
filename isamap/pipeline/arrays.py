"""Arrays by buffer name: read from a file, checked against a kernel, written to a file."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from isamap.diagnostics import ArgumentsError, Diagnostic, fail
from isamap.ir.dtype import DType
from isamap.ir.nodes import Kernel
from isamap.pipeline.sizes import Symbols, all_sizes, shape_of
from isamap.run.arguments import not_taken


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file; ArgumentsError when it is none."""
    try:
        # A file of our own: numpy leaves a broken archive open.
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                single = path.suffix == ".npy"
                what = "holds one array, not an .npz archive" if single else "is no .npz archive"
                raise ArgumentsError(fail("E731", f"'{path}' {what}"))
            archive = np.load(file, allow_pickle=False)
            return {name: _member(path, name, _content(archive, name)) for name in archive.files}
    except (
        OSError,
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        text = f"cannot read arrays from '{path}': {reason}"
        raise ArgumentsError(fail("E731", text)) from error


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to an .npz file; ArgumentsError when it cannot be written."""
    try:
        # Not np.savez: a buffer may be called like one of its parameters.
        with path.open("wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, _raw(array), allow_pickle=False)
    except OSError as error:
        raise ArgumentsError(fail("E732", f"cannot write '{path}': {error.strerror}")) from error


def input_names(kernel: Kernel) -> tuple[str, ...]:
    """Return the buffers that a caller gives."""
    return tuple(b.name for b in kernel.buffers if b.role in ("in", "const", "inout"))


def output_names(kernel: Kernel) -> tuple[str, ...]:
    """Return the buffers that a kernel writes for its caller."""
    return tuple(b.name for b in kernel.buffers if b.role in ("out", "inout"))


def typed_arrays(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs of a kernel, each of its buffer's type.

    An .npz file keeps bf16, f8 and 4-bit elements as raw bytes; these get their type back.  Raises
    ArgumentsError for missing, unknown and wrongly typed arrays, all of them at once.
    """
    wanted = input_names(kernel)
    held = ", ".join(arrays) or "none"
    hint = f"arrays are found by the names of the buffers; there are: {held}"
    faults = [
        fail("E733", f"no array for input '{name}' of kernel '{kernel.name}'", hint=hint)
        for name in wanted
        if name not in arrays
    ]
    for name in arrays:
        if name not in wanted:
            text = f"kernel '{kernel.name}' has no input '{name}'; it has: {', '.join(wanted)}"
            role = next((b.role for b in kernel.buffers if b.name == name), None)
            faults.append(fail("E734", text, hint=not_taken(name, role)))
    typed = {}
    for name in wanted:
        if name in arrays:
            dtype = kernel.buffer(name).dtype
            array = _typed(arrays[name], dtype)
            if array is None:
                faults.append(_wrong_type(name, dtype, arrays[name]))
            else:
                typed[name] = array
    if faults:
        raise ArgumentsError(faults)
    return typed


def check_shapes(kernel: Kernel, arrays: Mapping[str, np.ndarray], symbols: Symbols) -> None:
    """Raise ArgumentsError for every array whose shape is not its buffer's."""
    faults = []
    for name, array in arrays.items():
        shape = shape_of(kernel, name, symbols)
        if array.shape != shape:
            text = f"'{name}' has shape {list(shape)} in the kernel but {list(array.shape)} here"
            faults.append(fail("E736", text, hint=_sizes_told(kernel, name, symbols)))
    if faults:
        raise ArgumentsError(faults)


def _sizes_told(kernel: Kernel, buffer: str, symbols: Symbols) -> str | None:
    """Return what the extents of a buffer are and how they are set; None if it has none."""
    shape = kernel.buffer(buffer).shape
    names = dict.fromkeys(name for extent in shape for name in sorted(extent.names))
    if not names:
        return None
    values = all_sizes(kernel, symbols)
    whole = f"{buffer}[{', '.join(map(str, shape))}]"
    sizes = ", ".join(f"{name} is {values[name]}" for name in names)
    return f"it is {whole}, where {sizes}; --set gives an extent a size"


_NO_TYPE, _BYTES = b"'descr': '<f1'", b"'descr': '|V1'"
"""What numpy writes of the elements of f8e5m2 and cannot read, and what it writes of f8e4m3."""


def _raw(array: np.ndarray) -> np.ndarray:
    """Return an array as numpy can write and read it: elements of types of others as bytes."""
    array = np.asarray(array)
    is_foreign = array.dtype.isbuiltin == 2
    return array.view(f"V{array.dtype.itemsize}") if is_foreign else array


def _content(archive: "np.lib.npyio.NpzFile", name: str) -> object:
    """Return a member of an archive, also of a type that numpy writes but does not read."""
    try:
        content: object = archive[name]
    except ValueError:
        assert archive.zip is not None
        (member,) = {name, f"{name}.npy"} & set(archive.zip.namelist())
        head, text, rest = archive.zip.read(member).partition(_NO_TYPE)
        if not text or len(head) > len(np.lib.format.MAGIC_PREFIX) + 8:
            raise
        return np.lib.format.read_array(io.BytesIO(head + _BYTES + rest), allow_pickle=False)
    return content


def _member(path: Path, name: str, content: object) -> np.ndarray:
    """Return an array of an archive; whatever else lies in one is read as bytes."""
    if isinstance(content, np.ndarray):
        return content
    raise ArgumentsError(fail("E731", f"'{name}' in '{path}' is no array"))


def _typed(array: np.ndarray, dtype: DType) -> np.ndarray | None:
    if array.dtype == dtype.numpy:
        return array
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.numpy.itemsize:
        return array.view(dtype.numpy)
    return None


def _wrong_type(name: str, dtype: DType, array: np.ndarray) -> Diagnostic:
    text = f"'{name}' is {dtype} in the kernel but the array holds {array.dtype}"
    return fail("E735", text, hint=f"convert it first, {name}.astype('{dtype.numpy.name}')")
