"""Channels: one process hands arrays to another, in order, and no faster than they are taken."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NoReturn, TypeVar

from . import _causeway, _waiting
from ._causeway import Array, Event, Export, Ring
from ._errors import Closed, ExporterGone, Freed, Withdrawn

_WRITER, _READER = 1, 2
_LOOK = 0.02
"""Seconds between looks whether the other process lives, while one waits for it."""
_SMALL = 64 << 10
"""Arrays of no more bytes lie in a mapping with others: a receiver keeps the last one, and so the mapping, for the next."""
T = TypeVar("T")

_FULL = "the channel had no room"
_EMPTY = "nothing came through the channel"


class _Peer:
    """The other process, seen by a ticket of it that opens as long as it lives."""

    def __init__(self) -> None:
        self._looked = 0.0

    def check(self, ticket: str) -> None:
        """Raises if it is gone; looks now and then only."""
        now = time.monotonic()
        if now - self._looked > _LOOK:
            self._looked = now
            _causeway.open(ticket, timeout=1.0)


def _wait(ring: Ring, side: int, attempt: Callable[[], T | None], timeout: float, what: str) -> T:
    """The first answer of `attempt` that is not None, which is asked for again whenever the other side did something."""
    if (answer := attempt()) is not None:
        return answer
    deadline = time.monotonic() + timeout
    while True:
        seen = ring.seen(side)
        if (answer := attempt()) is not None:
            return answer
        rest = deadline - time.monotonic()
        if rest <= 0:
            raise _waiting.too_late(what, timeout)
        ring.wait(side, seen, min(rest, _LOOK))


class Channel:
    """The writing side of a channel; `causeway_ipc.open(channel.ticket)` is the reading side, in one other process.

    What is sent is the receiver's: the sender should not write to it any more, unless it is an array of the host of at most
    64 KiB, which is copied into memory of the channel's. Arrays of a device other than the CPU need a channel of that device, whose event orders the
    receiver's stream after those of the sender.
    """

    def __init__(self, capacity: int = 8, *, device: str | None = None) -> None:
        if capacity < 1:
            raise ValueError("a channel has room for one array at least")
        self._ring = Ring(_causeway.empty([Ring.size(capacity)], "uint8", None), capacity)
        on_device = device is not None and device.partition(":")[0] not in ("cpu", "native_cpu")
        self._ready = Event(device) if on_device else None
        self._export = _causeway.share_channel(self._ring.array, self._ready)
        self._reader = _Peer()
        self._lock = threading.Lock()
        self._sent: deque[tuple[int, Export | None]] = deque()
        self._closed = False

    @property
    def ticket(self) -> str:
        """What opens the reading side, in one process."""
        return self._export.ticket

    def __reduce__(self) -> NoReturn:
        raise TypeError("a channel is not pickled: send its ticket, and open that where arrays are to be received")

    def send(self, obj: object, *, stream: object = None, timeout: float = 60.0) -> None:
        """Hands over an array, or a mapping of arrays by their names, when there is room.

        `stream` is the one that writes the array, where it is on a device.
        """
        message, export = self._ready_to_send(obj, stream)
        try:
            _wait(self._ring, _WRITER, lambda: self._put(message, export), timeout, _FULL)
        except BaseException:
            self._not_sent(message, export)
            raise

    async def send_async(self, obj: object, *, stream: object = None, timeout: float = 60.0) -> None:
        """The same in an event loop."""
        message, export = self._ready_to_send(obj, stream)
        try:
            await _waiting.until(lambda: self._put(message, export), timeout, _FULL)
        except BaseException:
            self._not_sent(message, export)
            raise

    def _ready_to_send(self, obj: object, stream: object) -> tuple[bytes, Export | None]:
        if self._closed:
            raise Closed("this channel was closed: create another")
        if self._ready is None and getattr(obj, "nbytes", _SMALL + 1) <= _SMALL:
            message = self._ring.lay(obj)
            if message:
                return message, None
            if message is not None:
                obj = _causeway.array(obj)  # the receiver keeps all the blocks
        export = _causeway.share_many(obj) if hasattr(obj, "items") else _causeway.share(obj)
        if self._ready is not None:
            self._ready._record_after_all(stream)
        return export.ticket.encode(), export

    def _not_sent(self, message: bytes, export: Export | None) -> None:
        if export is None:
            self._ring.take_back(message)
        else:
            export.close()

    def _put(self, message: bytes, export: Export | None) -> bool | None:
        with self._lock:
            self._forget()
            if self._ring.is_closed(_READER):
                raise Closed("the receiver has closed the channel")
            if self._closed:
                raise Closed("this channel was closed while something waited to be sent")
            number = self._ring.put(message)
            if number is not None:
                self._sent.append((number, export))
                return True
        self._check_reader()
        return None

    def _forget(self) -> None:
        """Closes the exports of what the receiver has opened."""
        taken = self._ring.taken
        while self._sent and self._sent[0][0] < taken:
            export = self._sent.popleft()[1]
            if export is not None:
                export.close()

    def _check_reader(self) -> None:
        note = self._ring.note()
        if note is None:
            return
        try:
            self._reader.check(note.decode("ascii", "replace"))
        except (ExporterGone, Withdrawn, Freed) as error:
            if not self._ring.is_closed(_READER):  # which it says first
                raise ExporterGone(f"the receiver is gone: {error}") from error

    def close(self, timeout: float = 10.0) -> None:
        """Waits until the receiver has taken what was sent, and closes; what it has not taken by then is lost."""
        _ = self._ring.taken  # a forked child is refused, and does not wait for a lock of its parent's
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._ring.close(_WRITER)

        def is_empty() -> bool | None:
            with self._lock:
                self._forget()
                if not self._sent or self._ring.is_closed(_READER):
                    return True
            try:
                self._check_reader()
            except ExporterGone:
                with self._lock:
                    self._forget()  # it may have taken the last of it, and gone
                    if self._sent:
                        raise
            return None

        try:
            _wait(self._ring, _WRITER, is_empty, timeout, "the receiver did not take everything")
        finally:
            self._sent.clear()
            self._export.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(10.0 if kind is None else 0.5)


class Receiver:
    """The reading side of a channel."""

    def __init__(self, memory: Array, ready: Event | None, life: str) -> None:
        self._ring = Ring(memory)
        if not self._ring.claim():
            raise Closed("another process has opened this channel already: it is for two, so create another")
        self._ready, self._writer_life, self._writer = ready, life, _Peer()
        self._lock = threading.Lock()
        self._recent: Array | None = None
        self._life = _causeway.share(Event())
        self._ring.leave(self._life.ticket.encode())

    def receive(self, *, stream: object = None, timeout: float = 60.0) -> Any:
        """The next array, or dictionary of arrays. Raises `Closed` after the last.

        What is submitted to `stream` from now on comes after what the sender's stream did, where the array is on a device.
        """
        return _wait(self._ring, _READER, lambda: self._take(stream), timeout, _EMPTY)

    async def receive_async(self, *, stream: object = None, timeout: float = 60.0) -> Any:
        """The same in an event loop."""
        return await _waiting.until(lambda: self._take(stream), timeout, _EMPTY)

    def _take(self, stream: object) -> Any:
        _ = self._ring.taken  # as in `close` of a channel
        with self._lock:
            message = self._ring.take()
            if isinstance(message, bytes):
                try:
                    opened = _causeway.open(message.decode("ascii", "replace"))
                finally:
                    self._ring.advance()  # the sender keeps an array open until here
        if isinstance(message, Array):
            return message
        if message is None:
            self._check_writer()
            return None
        if self._ready is not None:
            self._ready.wait(stream)
        if isinstance(opened, Array) and opened.nbytes <= _SMALL:
            self._recent = opened
        return opened

    def _check_writer(self) -> None:
        if self._ring.is_closed(_READER):
            raise Closed("this channel was closed")
        is_closed = self._ring.is_closed(_WRITER)
        if not self._ring.is_empty():
            return  # put before it was closed
        if is_closed:
            raise Closed("the sender has closed the channel, and everything was received")
        try:
            self._writer.check(self._writer_life)
        except (ExporterGone, Withdrawn, Freed) as error:
            if self._ring.is_empty() and not self._ring.is_closed(_WRITER):
                raise ExporterGone(f"the sender is gone: {error}") from error

    def __reduce__(self) -> NoReturn:
        raise TypeError("a receiver is not pickled: open the ticket of the channel where arrays are to be received")

    def close(self) -> None:
        """Tells the sender that nobody receives any more."""
        self._ring.close(_READER)
        self._life.close()
        self._recent = None

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                yield self.receive()
        except Closed:
            return

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while True:
                yield await self.receive_async()
        except Closed:
            return
