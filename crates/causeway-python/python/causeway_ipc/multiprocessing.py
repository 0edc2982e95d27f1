"""Arrays through `multiprocessing`: `install()`, and queues, pipes and pools hand over memory instead of copies.

What is sent stays open until the receiver has opened it, and as long as any process has it open: so it can be sent on. The receiver says so
in a word of the sender's that both processes have (`_outbox`), so a message is good for one receiver, once; and a sender that ends
first waits for its receivers (`linger`).
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

from . import _causeway, _hooks, _outbox
from ._causeway import Array, Event, Pending, limit
from ._errors import CausewayError, Forked, InvalidUse, Unsupported
from ._hooks import give_up as give_up
from ._lost import lost_in_pools
from ._outbox import offered
from ._outbox import outstanding as outstanding
from ._outbox import send as _send
from ._outbox import send_event as _send_event

_SMALL = 64 << 10
"""NumPy arrays of fewer bytes that are not in shareable memory are copied: that is faster."""


def _forget_parent() -> None:
    """A forked child must not touch what is its parent's."""
    _inherited.append(dict(_ready))  # neither used nor given back here
    _ready.clear()
    _ready_of.cache_clear()


_inherited: list[object] = []
os.register_at_fork(after_in_child=_forget_parent)


def _is_shareable(array: object) -> bool | None:
    """Whether an array is shared in place; None for one that cannot be shared at all, which goes as its library sends it."""
    try:
        return _causeway.is_shareable(array)
    except Forked:
        raise
    except (InvalidUse, Unsupported, TypeError, BufferError, RuntimeError):
        return None  # no type or place of elements that this module knows


@lost_in_pools
def _numpy_of(array: Array, is_read_only: bool = False) -> Any:
    made = array.numpy()
    if is_read_only:
        made.flags.writeable = False
    return made


@lost_in_pools
def _torch_of(array: Array, requires_grad: bool, parameter: bool) -> Any:
    tensor = array.torch()
    if parameter:
        return sys.modules["torch"].nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


class _Remade:
    """Pickles as a call with what sending an array makes of it."""

    def __init__(self, send: Callable[[], tuple[Any, ...]]) -> None:
        self._send = send

    @classmethod
    def of(cls, array: object, ready: Pending | None = None) -> _Remade:
        return cls(partial(_send, array, ready))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._send()


class _Ready:
    """The event of a device by which what this process sends from it is ready, whatever stream it is from."""

    def __init__(self, device: str) -> None:
        self._event = Event(device)
        self.export = _causeway.share(self._event)

    def record(self, stream: object) -> Pending:
        self._event._record_after_all(stream)  # a receiver waits for the latest record
        return self._event._pending()


_ready: dict[str, _Ready] = {}


def _ready_on(device: str) -> _Ready:
    # Without a lock: the handler of a signal may send at any point, and raise.
    return _ready.get(device) or _ready.setdefault(device, _Ready(device))


def _dtype_of(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _can_be_on_device(array: Any) -> bool:
    """Whether an array of a device can be shared there, by this module's memory or as it lies."""
    try:
        _causeway.itemsize(_dtype_of(array))
    except InvalidUse:
        return False
    return _is_shareable(array) is not None


def _reduce_device(array: Any, device: str, stream: object, view_of: Any) -> tuple[_Remade, str]:
    """An array of a device, in shareable memory of it, and the ticket of the event by which it is ready.

    `view_of` makes an array of the same library of one of this module's.
    """
    if not _causeway.is_shareable(array):
        shared = view_of(_causeway.empty_like(array))
        shared[...] = array  # on the stream
        array = shared
    ready = _ready_on(device)
    return _Remade.of(array, ready.record(stream)), ready.export.ticket


@lru_cache(maxsize=64)
def _ready_of(ticket: str) -> Event:
    opened: Event = _causeway.open(ticket)
    return opened


@lost_in_pools
def _cupy_of(array: Array, ready: str) -> Any:
    library = importlib.import_module("cupy")
    _ready_of(ready).wait(library.cuda.get_current_stream())
    return library.from_dlpack(array)


def _reduce_cupy(array: Any) -> tuple[Any, ...]:
    if array.nbytes == 0 or not _can_be_on_device(array):
        return array.__reduce_ex__(4)  # type: ignore[no-any-return]
    library = importlib.import_module("cupy")
    stream = library.cuda.get_current_stream()
    return _cupy_of, _reduce_device(array, f"cuda:{array.device.id}", stream, library.from_dlpack)


@lost_in_pools
def _storage_of(array: Array) -> Any:
    return array.torch().untyped_storage()


def _device_of_torch(device: Any) -> tuple[str, int]:
    """The name here of a device that PyTorch calls `cuda`, and the current stream there."""
    torch = sys.modules["torch"]
    backend = "hip" if getattr(torch.version, "hip", None) else "cuda"
    return f"{backend}:{device.index or 0}", torch.cuda.current_stream(device).cuda_stream


def _reduce_torch_device(data: Any) -> tuple[_Remade, str]:
    device, stream = _device_of_torch(data.device)
    with sys.modules["torch"].cuda.device(data.device):
        return _reduce_device(data, device, stream, lambda array: array.torch())


def _wait_on_torchs_stream(array: Array, ready: str) -> Any:
    tensor = array.torch()
    _ready_of(ready).wait(_device_of_torch(tensor.device)[1])
    return tensor


@lost_in_pools
def _torch_of_device(array: Array, ready: str, requires_grad: bool, parameter: bool) -> Any:
    tensor = _wait_on_torchs_stream(array, ready)
    if parameter:
        return sys.modules["torch"].nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


@lost_in_pools
def _storage_of_device(array: Array, ready: str) -> Any:
    return _wait_on_torchs_stream(array, ready).untyped_storage()


_event_streams: dict[str, Any] = {}


def _reduce_torch_event(event: Any) -> tuple[Any, ...]:
    """An event of this module's that stands for what PyTorch's stands for now."""
    torch = sys.modules["torch"]
    recorded_on = getattr(event, "device", None)
    if recorded_on is None:
        recorded_on = torch.device("cuda", torch.cuda.current_device())  # never recorded: complete
    device, _ = _device_of_torch(recorded_on)
    if device not in _event_streams:
        _event_streams[device] = torch.cuda.Stream(recorded_on)
    stream = _event_streams[device]
    stream.wait_event(event)
    ours = Event(device)
    ours.record(stream.cuda_stream)
    return _send_event(ours, ours._pending())


def _reduce_numpy(array: Any) -> Any:
    is_shareable = None if array.dtype.metadata or array.dtype.names else _is_shareable(array)  # which no ticket has
    if is_shareable is None or array.nbytes == 0 or (array.nbytes < _SMALL and not is_shareable):
        return array.__reduce_ex__(4)
    if is_shareable:
        # What is read-only where it lies would be written through the receiver's view, elements of `broadcast_to` many at once.
        return _numpy_of, (_Remade.of(array), not array.flags.writeable)
    try:
        return _numpy_of, (_Remade(offered(_in_order(array))), False)
    except CausewayError as error:
        warnings.warn(
            f"this process cannot share memory, and sends arrays as without causeway_ipc.multiprocessing.install(), by copies in its messages: {error}",
            RuntimeWarning,
            stacklevel=1,
        )
        return array.__reduce_ex__(4)


def _in_order(array: Any) -> Any:
    """An array whose elements lie in C's order or Fortran's, as NumPy pickles them: any other in C's."""
    if array.flags.forc:
        return array
    copy = _causeway.empty(list(array.shape), _dtype_of(array), None)
    copy.numpy()[...] = array
    return copy


def install(*, linger: float | None = None) -> None:
    """Sends arrays of this module, events, NumPy's arrays and, if it is imported by now, PyTorch's tensors by tickets.

    - Arrays in shareable memory (`causeway_ipc.empty`, and what NumPy or PyTorch made of one) are shared in place. What was received can be
      sent on, in place too; once the process that allocated it has ended, a copy is sent, which is no more open than the array was.
    - Other NumPy arrays are copied into shareable memory: once, and not through a pipe. Where the process cannot share memory, it says so
      by a warning, and they go as NumPy sends them.
    - Arrays of CuPy, if it is imported by now, in shareable memory of their device, likewise: copied there, on their stream, unless
      they are there. An event orders the receiver's stream behind the sender's; no host waits.
    - Tensors and storages of PyTorch on CUDA devices likewise. Others in the host's own memory go as PyTorch sends them.
    - An event of PyTorch arrives as one of this module's, which stands for what it stood for when it was sent.
    - What this module has no type of elements for, or no place, goes as NumPy, CuPy or PyTorch sends it.

    `linger` is how many seconds a process that ends waits for the receivers of what it has sent. Without it, a process that
    `multiprocessing` has started waits until all is received, or its parent has ended, as it waits for what its queues hold; any
    other process waits five seconds.
    """
    _outbox.linger = None if linger is None else limit(linger)
    _hooks.install()
    ForkingPickler.register(Array, _send)
    ForkingPickler.register(Event, _send_event)
    try:
        import numpy
    except ImportError:
        pass
    else:
        ForkingPickler.register(numpy.ndarray, _reduce_numpy)
    if "cupy" in sys.modules:
        ForkingPickler.register(sys.modules["cupy"].ndarray, _reduce_cupy)
    if "torch" in sys.modules:
        if "torch.multiprocessing" in sys.modules:
            _hooks.install_torch(importlib.import_module("torch.multiprocessing.queue"))
        _install_torch(sys.modules["torch"])


def _install_torch(torch: Any) -> None:
    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]

    def for_type(kind: Any) -> None:
        torchs_own = reducers.get(kind)
        if getattr(torchs_own, "_is_causeway", False):
            return
        is_parameter = kind is torch.nn.Parameter

        def reduce(tensor: Any) -> Any:
            if tensor.layout is torch.strided and tensor.is_leaf:
                if getattr(tensor, "is_quantized", False):
                    return tensor.__reduce_ex__(4)  # PyTorch's reduction for processes loses scale and zero point
                data = tensor.detach()
                if data.is_conj() or data.is_neg():  # bits that say so are lost in PyTorch's own reduction
                    data = data.resolve_conj().resolve_neg()
                    tensor = torch.nn.Parameter(data, tensor.requires_grad) if is_parameter else data.requires_grad_(tensor.requires_grad)
                    data = data.detach()
                if data.device.type == "cuda" and data.numel() and _can_be_on_device(data):
                    return _torch_of_device, (*_reduce_torch_device(data), tensor.requires_grad, is_parameter)
                if data.device.type == "cpu" and _is_shareable(data):
                    return _torch_of, (_Remade.of(data), tensor.requires_grad, is_parameter)
            return torchs_own(tensor) if torchs_own else tensor.__reduce_ex__(4)

        reduce._is_causeway = True  # type: ignore[attr-defined]
        ForkingPickler.register(kind, reduce)

    torchs_own_storage = reducers.get(torch.UntypedStorage)

    def reduce_storage(storage: Any) -> Any:
        if storage.device.type in ("cpu", "cuda") and storage.nbytes():
            data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            if data.device.type == "cuda":
                return _storage_of_device, _reduce_torch_device(data)
            if _is_shareable(data):
                return _storage_of, (_Remade.of(data),)
        return torchs_own_storage(storage)

    if torchs_own_storage is not None and not getattr(torchs_own_storage, "_is_causeway", False):
        reduce_storage._is_causeway = True  # type: ignore[attr-defined]
        ForkingPickler.register(torch.UntypedStorage, reduce_storage)
    ForkingPickler.register(torch.cuda.Event, _reduce_torch_event)  # also where there is no device: to ask would start the driver
    for_type(torch.Tensor)
    for_type(torch.nn.Parameter)
