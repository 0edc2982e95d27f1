"""Arrays through `multiprocessing`: `install()`, and queues, pipes and pools hand over memory instead of copies.

What is sent stays open until the receiver has opened it, and longer if this process keeps it: then it can be sent on. The receiver says so in a byte of the sender's that both
processes have, so a message is good for one receiver, once; and a sender that ends first waits a while for its
receivers (`linger`).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from functools import lru_cache
from multiprocessing import util
from multiprocessing.reduction import ForkingPickler
from typing import Any

from . import _causeway
from ._causeway import Array, Event, Export, Pending
from ._errors import CausewayError

_SMALL = 64 << 10
"""NumPy arrays of fewer bytes that are not in shareable memory are copied: that is faster."""
_PLACES = 4096
"""How many messages may be on their way at the same time."""
_SWEEP = 0.5
"""Seconds between looks for messages that have arrived, while some are on their way."""
_linger = 5.0


def _is_over(ready: Pending | None) -> bool:
    try:
        return ready is None or ready.done()
    except CausewayError:
        return True  # it failed, which receivers are told where they wait


class _Outbox:
    """What this process has sent and nobody has opened yet."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._arrived = _causeway.empty([_PLACES], "uint8", None)
        self._marks = self._arrived.memoryview()
        self._marks[:] = bytes(_PLACES)
        self._ticket = _causeway.share(self._arrived)
        self._sent: dict[int, tuple[Array | Export, Pending | None]] = {}
        self._free = list(range(_PLACES))
        self._sweeper: threading.Timer | None = None
        # After the queues' own threads have written what they hold (priority -5).
        util.Finalize(self, self._drain, exitpriority=-100)

    def post(self, ticket: str, kept: Array | Export, ready: Pending | None = None) -> tuple[Any, ...]:
        """How to make the object in the receiver. It is kept until the receiver has it, and what was to be `ready` is."""
        with self._lock:
            self._sweep()
            if not self._free:
                raise BlockingIOError(f"{_PLACES} messages are on their way and none was received: receive some first")
            place = self._free.pop()
            self._sent[place] = kept, ready
            self._look_again()
        return _receive, (ticket, self._ticket.ticket, place)

    def outstanding(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._sent)

    def _sweep(self) -> None:
        arrived = [place for place, (_, ready) in self._sent.items() if self._marks[place] and _is_over(ready)]
        for place in arrived:
            del self._sent[place]
            self._marks[place] = 0
            self._free.append(place)

    def _look_again(self) -> None:
        if self._sweeper is None and self._sent:
            sweeper = threading.Timer(_SWEEP, self._swept)
            sweeper.daemon = True
            try:
                sweeper.start()
            except RuntimeError:
                return  # the interpreter ends, and `_drain` looks
            self._sweeper = sweeper

    def _swept(self) -> None:
        with self._lock:
            self._sweeper = None
            self._sweep()
            self._look_again()

    def _drain(self) -> None:
        if os.getpid() != self.pid:
            return
        deadline = time.monotonic() + _linger
        while self.outstanding() and time.monotonic() < deadline:
            time.sleep(0.005)


_outbox: _Outbox | None = None
_outbox_lock = threading.Lock()


def _forget_parent() -> None:
    """A forked child has nothing under way, and must not touch what is its parent's."""
    global _outbox, _outbox_lock, _ready_lock
    _outbox, _outbox_lock, _ready_lock = None, threading.Lock(), threading.Lock()
    _inherited.append(dict(_ready))  # neither used nor given back here
    _ready.clear()
    _marks_of.cache_clear()
    _ready_of.cache_clear()


_inherited: list[object] = []
os.register_at_fork(after_in_child=_forget_parent)


def _our_outbox() -> _Outbox:
    global _outbox
    with _outbox_lock:
        if _outbox is None:
            _outbox = _Outbox()
        return _outbox


def _send(obj: object, ready: Pending | None = None) -> tuple[Any, ...]:
    return _our_outbox().post(*_causeway.standing(obj), ready)


def _send_event(event: Event, ready: Pending | None = None) -> tuple[Any, ...]:
    export = _causeway.share(event)
    return _our_outbox().post(export.ticket, export, ready)


def outstanding() -> int:
    """How many messages of this process are on their way."""
    return _outbox.outstanding() if _outbox is not None else 0


@lru_cache(maxsize=64)
def _marks_of(ticket: str) -> memoryview:
    """The bytes in which a sender hears what has arrived."""
    opened: Array = _causeway.open(ticket)
    return opened.memoryview()


def _receive(ticket: str, marks: str, place: int) -> Any:
    arrived = _marks_of(marks)
    try:
        return _causeway.open(ticket)
    finally:
        arrived[place] = 1


def _numpy_of(array: Array) -> Any:
    return array.numpy()


def _torch_of(array: Array, requires_grad: bool, parameter: bool) -> Any:
    tensor = array.torch()
    if parameter:
        return sys.modules["torch"].nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


class _Remade:
    """Pickles as a call with what `_send` makes of an array."""

    def __init__(self, array: object, ready: Pending | None = None) -> None:
        self.array, self.ready = array, ready

    def __reduce__(self) -> tuple[Any, ...]:
        return _send(self.array, self.ready)


class _Ready:
    """The event of a device by which what this process sends from it is ready, whatever stream it is from."""

    def __init__(self, device: str) -> None:
        self._event = Event(device)
        self.export = _causeway.share(self._event)

    def record(self, stream: int) -> Pending:
        self._event._record_after_all(stream)  # a receiver waits for the latest record
        return self._event._pending()


_ready_lock = threading.Lock()
_ready: dict[str, _Ready] = {}


def _ready_on(device: str) -> _Ready:
    with _ready_lock:
        if device not in _ready:
            _ready[device] = _Ready(device)
        return _ready[device]


def _reduce_device(array: Any, device: str, stream: int, view_of: Any) -> tuple[_Remade, str]:
    """An array of a device, in shareable memory of it, and the ticket of the event by which it is ready.

    `view_of` makes an array of the same library of one of this module's.
    """
    if not _causeway.is_shareable(array):
        shared = view_of(_causeway.empty(list(array.shape), str(array.dtype).removeprefix("torch."), device))
        shared[...] = array  # on the stream
        array = shared
    ready = _ready_on(device)
    return _Remade(array, ready.record(stream)), ready.export.ticket


@lru_cache(maxsize=64)
def _ready_of(ticket: str) -> Event:
    opened: Event = _causeway.open(ticket)
    return opened


def _cupy_of(array: Array, ready: str) -> Any:
    library = importlib.import_module("cupy")
    _ready_of(ready).wait(library.cuda.get_current_stream().ptr)
    return library.from_dlpack(array)


def _reduce_cupy(array: Any) -> tuple[Any, ...]:
    if array.nbytes == 0:
        return array.__reduce_ex__(4)  # type: ignore[no-any-return]
    library = importlib.import_module("cupy")
    stream = library.cuda.get_current_stream().ptr
    return _cupy_of, _reduce_device(array, f"cuda:{array.device.id}", stream, library.from_dlpack)


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


def _torch_of_device(array: Array, ready: str, requires_grad: bool, parameter: bool) -> Any:
    tensor = _wait_on_torchs_stream(array, ready)
    if parameter:
        return sys.modules["torch"].nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


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
    is_known = array.dtype.kind in "biufc" and array.dtype.isnative and array.dtype.itemsize <= 16
    is_known |= array.dtype.name.startswith(("bfloat16", "float8_"))  # of ml_dtypes
    if not is_known or array.nbytes == 0 or (array.nbytes < _SMALL and not _causeway.is_shareable(array)):
        return array.__reduce_ex__(4)
    return _numpy_of, (_Remade(array),)


def install(*, linger: float = 5.0) -> None:
    """Sends arrays of this module, events, NumPy's arrays and, if it is imported by now, PyTorch's tensors by tickets.

    - Arrays in shareable memory (`causeway_ipc.empty`, and what NumPy or PyTorch made of one) are shared in place, and
      what was received can be sent on as long as the process that allocated it keeps it.
    - Other NumPy arrays are copied into shareable memory: once, and not through a pipe.
    - Arrays of CuPy, if it is imported by now, in shareable memory of their device, likewise: copied there, on their stream, unless
      they are there. An event orders the receiver's stream behind the sender's; no host waits.
    - Tensors and storages of PyTorch on CUDA devices likewise. Others in the host's own memory go as PyTorch sends them.
    - An event of PyTorch arrives as one of this module's, which stands for what it stood for when it was sent.

    `linger` is how many seconds a process that ends waits for the receivers of what it has sent.
    """
    global _linger
    _linger = linger
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
                data = tensor.detach()
                if data.device.type == "cuda" and data.numel():
                    return _torch_of_device, (*_reduce_torch_device(data), tensor.requires_grad, is_parameter)
                if data.device.type == "cpu" and _causeway.is_shareable(data):
                    return _torch_of, (_Remade(data), tensor.requires_grad, is_parameter)
            return torchs_own(tensor) if torchs_own else tensor.__reduce_ex__(4)

        reduce._is_causeway = True  # type: ignore[attr-defined]
        ForkingPickler.register(kind, reduce)

    torchs_own_storage = reducers.get(torch.UntypedStorage)

    def reduce_storage(storage: Any) -> Any:
        if storage.device.type in ("cpu", "cuda") and storage.nbytes():
            data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            if data.device.type == "cuda":
                return _storage_of_device, _reduce_torch_device(data)
            if _causeway.is_shareable(data):
                return _storage_of, (_Remade(data),)
        return torchs_own_storage(storage)

    if torchs_own_storage is not None and not getattr(torchs_own_storage, "_is_causeway", False):
        reduce_storage._is_causeway = True  # type: ignore[attr-defined]
        ForkingPickler.register(torch.UntypedStorage, reduce_storage)
    ForkingPickler.register(torch.cuda.Event, _reduce_torch_event)  # also where there is no device: to ask would start the driver
    for_type(torch.Tensor)
    for_type(torch.nn.Parameter)
