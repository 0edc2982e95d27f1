"""Arrays and events that processes share.

One process shares an array, another opens it by its ticket, and both have the same memory:

    import numpy, causeway_ipc
    array = causeway_ipc.empty((1000, 1000), "float32")
    numpy.asarray(array)[:] = 1
    export = causeway_ipc.share(array)
    print(export.ticket)                       # text, to be sent by whatever means you have

    opened = causeway_ipc.open(ticket)         # in the other process
    numpy.asarray(opened).sum()
"""

from __future__ import annotations

import atexit
import math
import operator
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

from . import _interpreter as _interpreter  # first: what it refuses must not load the rest
from . import _causeway, _sycl, _views
from ._causeway import Array, Event, Export, __version__, array, devices, open, share, share_many
from ._channel import Channel, Receiver
from ._errors import (
    Busy,
    CausewayError,
    Closed,
    DriverError,
    ExporterGone,
    Forked,
    Freed,
    InvalidTicket,
    InvalidUse,
    LimitReached,
    NotPermitted,
    OtherHost,
    OutOfMemory,
    Timeout,
    Unreachable,
    Unsupported,
    Withdrawn,
    WrongDevice,
)
from ._sycl import sycl_environment

__all__ = [
    "Array", "Busy", "CausewayError", "Channel", "Closed", "DriverError", "Event", "Export", "ExporterGone", "Forked",
    "Freed", "InvalidTicket", "InvalidUse", "LimitReached", "NotPermitted", "OtherHost", "OutOfMemory", "Receiver", "Timeout",
    "Unreachable", "Unsupported", "Withdrawn", "WrongDevice", "__version__", "array", "devices", "empty", "empty_many", "open", "share", "share_many",
    "sycl_environment",
]  # fmt: skip

_BUILTIN = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


_SPELT = {kind.__name__: name for kind, name in _BUILTIN.items()} | {
    f"{letter}{size}": f"{kind}{8 * size}"
    for letter, kind, sizes in [("i", "int", (1, 2, 4, 8)), ("u", "uint", (1, 2, 4, 8)), ("f", "float", (2, 4, 8)), ("c", "complex", (8, 16))]
    for size in sizes
} | {
    "half": "float16", "single": "float32", "double": "float64", "csingle": "complex64", "cdouble": "complex128", "bool_": "bool",
    "byte": "int8", "short": "int16", "intc": "int32", "longlong": "int64", "intp": "int64",
    "ubyte": "uint8", "ushort": "uint16", "uintc": "uint32", "ulonglong": "uint64", "uintp": "uint64",
}  # fmt: skip
"""How NumPy spells types, too."""


def _dtype_name(dtype: object) -> str:
    """The name of a type of elements: a string, or a type of Python, NumPy, ml_dtypes or PyTorch."""
    other = ">" if sys.byteorder == "little" else "<"
    if getattr(dtype, "isnative", True) is False or (isinstance(dtype, str) and dtype.startswith(other)):
        raise InvalidUse(f"elements of {dtype!r} are not in this machine's byte order, which shared arrays have: take dtype.newbyteorder('=')")
    if isinstance(dtype, str):
        named = _SPELT.get(dtype.lstrip("<>=|"), dtype)
    elif isinstance(dtype, type):
        named = _BUILTIN.get(dtype, dtype.__name__)
    else:
        named = getattr(dtype, "name", None) or str(dtype)
    return named.removeprefix("torch.")


def _lengths(shape: SupportsIndex | Iterable[int]) -> list[int]:
    """The lengths of a shape, or the one that an index says, NumPy's integers too."""
    try:
        return list(shape)  # type: ignore[arg-type]
    except TypeError:
        return [operator.index(shape)]  # type: ignore[arg-type]


def empty(
    shape: SupportsIndex | Sequence[int],
    dtype: object = "float32",
    device: str | None = None,
    *,
    access: str | None = None,
    read_only: bool = False,
) -> Array:
    """An array in memory that processes can share, contents unspecified; on the CPU unless a device is named.

    `access` says who may open it: "same-user" (as without it), "user:UID" or "process:PID". With `read_only`, only this
    process writes it: the kernel refuses others a mapping for writing.
    """
    lengths = [shape] if isinstance(shape, int) else _lengths(shape)
    return _causeway.empty(lengths, _dtype_name(dtype), device, access=access, read_only=read_only)


_TOGETHER = 256
"""Arrays in one allocation begin at multiples of this, as the allocations of drivers do at the least."""


def empty_many(
    arrays: Mapping[str, Any],
    device: str | None = None,
    *,
    access: str | None = None,
    read_only: bool = False,
) -> dict[str, Array]:
    """Arrays by their names, all in one allocation, contents unspecified: `share_many` of them is one export, and one open.

    `arrays` says the shape and the type of each: by an array or tensor that has them, or as a pair of both. The rest is as for
    `empty`. The memory is given back with the last of them.
    """
    made: list[tuple[str, int, str, list[int]]] = []
    end = 0
    if not hasattr(arrays, "items"):
        raise TypeError(f"empty_many takes arrays by their names, {{name: array}}, and not {type(arrays).__name__}: empty(shape, dtype) is for one")
    for name, like in arrays.items():
        if not isinstance(like, tuple) and not (hasattr(like, "shape") and hasattr(like, "dtype")):
            raise TypeError(f"empty_many takes an array, or a pair of a shape and a type, and not {type(like).__name__}")
        shape, dtype = like if isinstance(like, tuple) else (like.shape, like.dtype)
        lengths, element = _lengths(shape), _dtype_name(dtype)
        made.append((name, end, element, lengths))
        end += _causeway.itemsize(element) * math.prod(lengths)
        end += -end % _TOGETHER
        if end >= 1 << 63:
            raise InvalidUse(f"arrays of {end} bytes in all cannot be")
    memory = _causeway.empty([end], "uint8", device, access=access, read_only=read_only)
    return {name: memory._at(start, element, lengths) for name, start, element, lengths in made}


if sys.version_info >= (3, 12):  # from there on, Python classes can be buffers
    Array.__buffer__ = lambda self, flags: _views.buffer_of(self)  # type: ignore[method-assign]

_sycl.keep_apart()

os.register_at_fork(before=_causeway.before_fork)


def _finish_last() -> None:
    """Has `finish` run at the end of the interpreter, after the queues of `multiprocessing`, whose threads send arrays, have ended."""
    util = sys.modules.get("multiprocessing.util")
    ends_queues = getattr(util, "_exit_function", None)
    if ends_queues is not None:
        atexit.unregister(ends_queues)
    atexit.register(_causeway.finish)
    if ends_queues is not None:
        atexit.register(ends_queues)


_finish_last()
