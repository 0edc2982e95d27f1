"""Arrays as other libraries of the host see them. NumPy is imported when it is asked for."""

from __future__ import annotations

import builtins
import ctypes
import importlib
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ._causeway import Array, Export
from ._errors import Unsupported

# A character for each type that a memoryview can have.
_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float32": "f", "float64": "d",
}  # fmt: skip
_KINDS = dict.fromkeys("bhilqn", "int") | dict.fromkeys("BHILQNc", "uint") | dict.fromkeys("efd", "float")
"""What the characters are whose widths differ between machines and ways to write them."""


class _Bits:
    """An array under NumPy's type string of integers of the same width."""

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = array._interface(f"<u{array.itemsize}")
        self._array = array  # NumPy keeps this object, and so the memory


def numpy(array: Array) -> Any:
    """A view of an array on the CPU, also of types that come from ml_dtypes."""
    try:
        np = importlib.import_module("numpy")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this needs NumPy (pip install numpy); array.memoryview() reads and writes without it", name="numpy"
        ) from None
    if array.device != "cpu":
        raise TypeError(
            f"this array is on {array.device}, where NumPy cannot read it: "
            "numpy.from_dlpack(array, device='cpu') copies it"
        )
    if hasattr(array, "__array_interface__"):
        return np.asarray(_Known(array))
    try:
        types = importlib.import_module("ml_dtypes")
    except ImportError:
        raise TypeError(f"NumPy has no {array.dtype}: install ml_dtypes, or use array.torch()") from None
    return np.asarray(_Bits(array)).view(getattr(types, array.dtype))


class _Known:
    """Only the array interface, so that NumPy looks for nothing else."""

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = array.__array_interface__
        self._array = array


def torch(array: Array) -> Any:
    """A tensor over the array. PyTorch's DLPack does not know the types of 8 bits yet; its tensors do."""
    library = importlib.import_module("torch")
    if array.is_read_only:
        warnings.warn(
            "this array is for reading only, which PyTorch's tensors cannot be: a write to the tensor ends this process; clone() is a copy",
            stacklevel=2,
        )
    eight_bits = array.dtype.startswith("float8")
    # A capsule, since PyTorch would ask for its current stream first, and nothing here is under way on any.
    version = (1, 0) if array.is_read_only else None
    tensor = library.from_dlpack((array._bits("uint8") if eight_bits else array).__dlpack__(max_version=version))
    return tensor.view(getattr(library, array.dtype)) if eight_bits else tensor


@lru_cache(maxsize=64)
def _holder(size: int) -> Any:
    """A class of so many bytes, derived so that its objects have attributes: a view keeps its object, which keeps the array."""
    return type("Holder", (ctypes.c_char * size,), {})


def memoryview_of(array: Array) -> Any:
    """The bytes of a contiguous array on the CPU."""
    if array.device != "cpu":
        raise BufferError(f"an array on {array.device} is no buffer, which the processor reads: array.torch() and array.cupy() know its device")
    if not array.is_contiguous:
        raise BufferError("only contiguous arrays are buffers; numpy.asarray(array) knows strides")
    holder = _holder(array.nbytes)
    held = holder.from_address(array.ptr) if array.nbytes else holder()
    held._array = array
    view: Any = builtins.memoryview(held).cast("B")
    if array.is_read_only:
        view = view.toreadonly()
    character = _FORMATS.get(array.dtype)
    if character is None or array.nbytes == 0:
        return view
    return view.cast(character, list(array.shape))


def buffer_of(array: Array) -> Any:
    """What the array is as a buffer. Refused where the buffer would not say type and shape: NumPy, which asks for this first, then
    asks for the array interface."""
    if array.dtype not in _FORMATS or array.size == 0 or array.ndim == 0:
        raise BufferError(f"as a buffer, an array of {array.dtype} and shape {array.shape} is its bytes: array.memoryview() gives those")
    return memoryview_of(array)


def iterate(array: Array) -> Iterator[Array]:
    """The parts of an array along its first dimension."""
    return (array[number] for number in range(len(array)))


def describe(obj: object) -> tuple[bytes, str, list[int], bool]:
    """Bytes, type and shape of an object that speaks the buffer protocol and nothing else, and whether the bytes are in Fortran's order."""
    try:
        view: Any = memoryview(obj)  # type: ignore[arg-type]
    except TypeError:
        if isinstance(obj, Export):
            raise TypeError("an export is what share(array) gives: pass its ticket on, or share its array again") from None
        raise TypeError(
            f"{type(obj).__name__} cannot be shared: it speaks neither DLPack, nor an array interface, nor the buffer protocol;"
            " numpy.asarray(…) makes an array of numbers"
        ) from None
    others = ">!" if sys.byteorder == "little" else "<"
    character = view.format.lstrip("@=<>!") if view.format[0] not in others or view.itemsize == 1 else ""
    name = "bool" if character == "?" else f"{_KINDS[character]}{8 * view.itemsize}" if character in _KINDS else None
    if name is None:
        raise TypeError(f"elements of the format {view.format!r} cannot be shared: memoryview(…).cast('B') has their bytes")
    return view.tobytes("A"), name, list(view.shape), view.f_contiguous and not view.c_contiguous


def sycl_device(obj: Any, interface: dict[str, Any]) -> str:
    """The name here of the device that an array of SYCL is on: `cpu` for what the host can read."""
    place: Any = interface.get("syclobj")
    queue = getattr(obj, "sycl_queue", place)
    device = getattr(queue, "sycl_device", None)
    if device is None and hasattr(place, "get_devices"):
        (device, *_) = place.get_devices()
    name = getattr(device, "filter_string", place)
    parts = name.split(":") if isinstance(name, str) else []
    if "cpu" in parts or "native_cpu" in parts:
        return "cpu"
    if "level_zero" in parts or "cuda" in parts:
        ordinal = parts[-1] if parts[-1].isdigit() else "0"
        return f"{'level_zero' if 'level_zero' in parts else 'cuda'}:{ordinal}"
    raise Unsupported(f"arrays of SYCL on {name} cannot be shared: those of its level_zero, cuda and CPU devices can")

