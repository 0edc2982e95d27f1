"""Channels: one process hands arrays to another, in order, and no faster than they are taken.

The handler of a signal may run between any two calls here, raise, or call the same channel; other threads run there, too. There are
therefore no locks, and what must not be parted is one call of `Ring`. Nothing here waits for an answer of the other process, which may be
stopped, longer than the caller wants to wait, and nothing that an event loop calls waits at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NoReturn, TypeVar

from . import _causeway, _waiting
from ._causeway import Array, Event, Export, Laid, PendingOpen, Ring
from ._errors import Busy, CausewayError, Closed, ExporterGone, Freed, Timeout, Withdrawn

_WRITER, _READER = 1, 2
_LOOK = 0.02
"""Seconds between looks whether the other process lives, while one waits for it."""
_ANSWER = 2.5
"""Seconds after which one call that asks another process has ended, also if that is stopped."""
_SMALL = 64 << 10
"""Arrays of no more bytes lie in a mapping with others: a receiver keeps the last one, and so the mapping, for the next."""
_MUCH = 1 << 20
"""Copying as many bytes takes longer than an event loop should wait."""
_IN_MEMORY = b"\1"
"""Begins a message that names an array with the text of a ticket, which is longer than a message can be."""
T = TypeVar("T")


class _Peer:
    """The other process, seen by a ticket of it that opens as long as it lives."""

    def __init__(self, ring: Ring, side: int, ticket: bytes | None = None) -> None:
        self._ring, self._side, self._ticket = ring, side, ticket
        self._pending: PendingOpen | None = None
        self._opened: object = None
        self._looked = 0.0

    def check(self) -> None:
        """Raises if it is gone; looks now and then only, and does not wait for it."""
        now = time.monotonic()
        if now - self._looked <= _LOOK:
            return
        self._looked = now
        if self._ticket is None:
            self._ticket = self._ring.note()
            if self._ticket is None:
                return
        try:
            if self._opened is not None:
                _causeway.open_message(self._ticket)  # asks nobody as long as it is open
            elif (pending := self._pending) is None:  # which another thread, or a handler, may change at any time
                self._pending = PendingOpen(self._ticket, self._ring, self._side)
            elif pending.done():
                self._opened = pending.result()
                self._pending = None
        except CausewayError as error:
            self._pending = None
            if not error.is_transient:
                raise
            self._opened = None  # it is stopped: from now on it is asked on a thread


def _wait(ring: Ring, side: int, attempt: Callable[[float], T | None], timeout: float, late: Callable[[], Exception]) -> T:
    """The first answer of `attempt` that is not None, which is asked for again whenever the other side did something.

    It is told how many seconds are left.
    """
    if (answer := attempt(timeout)) is not None:
        return answer
    deadline = time.monotonic() + timeout
    while True:
        seen = ring.seen(side)
        rest = deadline - time.monotonic()
        if (answer := attempt(rest)) is not None:
            return answer
        if rest <= 0:
            raise late()
        ring.wait(side, seen, min(rest, _LOOK))


def _is_of_sycl(stream: object) -> bool:
    return hasattr(stream, "sycl_device") and hasattr(stream, "wait")


def _copies_much(obj: Any) -> bool:
    """Whether sharing an object copies so much that an event loop should not wait for it."""
    arrays = [array for _, array in obj.items()] if hasattr(obj, "items") else [obj]
    return sum(getattr(array, "nbytes", 0) for array in arrays if not isinstance(array, Array)) > _MUCH


class Channel:
    """The writing side of a channel; `causeway_ipc.open(channel.ticket)` is the reading side, in one other process.

    What is sent is the receiver's: the sender should not write to it any more, unless it is an array of the host of at most
    64 KiB, which is copied into memory of the channel's. Arrays of a device other than the CPU need a channel of that device, whose event orders the
    receiver's stream after those of the sender.
    """

    def __init__(self, capacity: int = 8, *, device: str | None = None) -> None:
        if not isinstance(capacity, int):
            raise TypeError(f"the capacity of a channel is a number, and not {type(capacity).__name__}")
        if capacity < 1:
            raise ValueError("a channel has room for one array at least")
        self._ring = Ring(_causeway.empty([Ring.size(capacity)], "uint8", None), capacity)
        if device is not None and not isinstance(device, str):
            raise TypeError(f"a device is named by text, and not {type(device).__name__}")
        on_device = device is not None and device.partition(":")[0] not in ("cpu", "native_cpu")
        self._ready = Event(device) if on_device else None
        self._export = _causeway.share_channel(self._ring.array, self._ready)
        self._reader = _Peer(self._ring, _WRITER)
        self._is_over = False

    @property
    def ticket(self) -> str:
        """What opens the reading side, in one process."""
        return self._export.ticket

    def __reduce__(self) -> NoReturn:
        raise TypeError("a channel is not pickled: send its ticket, and open that where arrays are to be received")

    def send(self, obj: object, *, stream: object = None, timeout: float | None = 60.0) -> None:
        """Hands over an array, or a mapping of arrays by their names, when there is room.

        `stream` is the one that writes the array, where it is on a device. Without a timeout (None) it waits as long as the receiver
        lives.
        """
        timeout = _causeway.limit(timeout)
        message, exports = self._ready_to_send(obj, stream)
        _wait(self._ring, _WRITER, lambda _: self._put(message, exports), timeout, lambda: self._full(timeout))

    async def send_async(self, obj: object, *, stream: object = None, timeout: float | None = 60.0) -> None:
        """The same in an event loop."""
        timeout = _causeway.limit(timeout)
        loop = asyncio.get_running_loop()
        if self._ready is not None and _is_of_sycl(stream):
            await loop.run_in_executor(None, stream.wait)  # type: ignore[attr-defined]
            stream = None
        if self._ready is None and _copies_much(obj):
            message, exports = await loop.run_in_executor(None, self._ready_to_send, obj, stream)
        else:
            message, exports = self._ready_to_send(obj, stream)
        await _waiting.until(lambda: self._put(message, exports), timeout, lambda: self._full(timeout))

    def _ready_to_send(self, obj: Any, stream: object) -> tuple[Laid | bytes, tuple[Export, ...]]:
        """The message for an object, and the exports that it names."""
        if self._ring.is_closed(_WRITER):
            raise Closed("this channel was closed: create another")
        if self._ready is None and getattr(obj, "nbytes", _SMALL + 1) <= _SMALL:
            obj = self._ring.lay(obj)
            if isinstance(obj, Laid):
                return obj, ()
        export = _causeway.share_many(obj) if hasattr(obj, "items") else _causeway.share(obj)
        if self._ready is not None:
            self._ready._record_after_all(stream)
        ticket = export.ticket.encode()
        if len(ticket) <= Ring.LONGEST:
            return ticket, (export,)
        text = _causeway.share(_causeway.array(ticket))
        return _IN_MEMORY + text.ticket.encode(), (export, text)

    def _put(self, message: Laid | bytes, exports: tuple[Export, ...]) -> bool | None:
        if self._ring.is_closed(_READER):
            raise Closed("the receiver has closed the channel")
        if self._ring.put(message, exports):
            return True
        self._check_reader()
        return None

    @staticmethod
    def _full(timeout: float) -> Exception:
        return _waiting.too_late("the channel had no room", timeout)

    def _check_reader(self) -> None:
        try:
            self._reader.check()
        except (ExporterGone, Withdrawn, Freed) as error:
            if not self._ring.is_closed(_READER):  # which it says first
                raise ExporterGone(f"the receiver is gone: {error}") from error

    def close(self, timeout: float | None = 10.0) -> None:
        """Waits until the receiver has taken what was sent, and closes; what it has not taken by then is lost."""
        timeout = _causeway.limit(timeout)
        self._ring.close(_WRITER)
        try:
            _wait(self._ring, _WRITER, lambda _: self._is_taken(), timeout, lambda: self._left(timeout))
        finally:
            self._end()

    async def close_async(self, timeout: float | None = 10.0) -> None:
        """The same in an event loop."""
        timeout = _causeway.limit(timeout)
        self._ring.close(_WRITER)
        try:
            await _waiting.until(self._is_taken, timeout, lambda: self._left(timeout))
        finally:
            self._end()

    def _is_taken(self) -> bool | None:
        """Whether there is nobody to wait for any more."""
        self._ring.forget()
        if self._is_over or self._ring.is_empty() or self._ring.is_closed(_READER):
            return True
        try:
            self._check_reader()
        except ExporterGone:
            if not (self._is_over or self._ring.is_empty()):  # it may have taken the last of it, and gone
                raise
        return None

    @staticmethod
    def _left(timeout: float) -> Exception:
        return Timeout(f"the receiver did not take everything within {timeout} seconds, and the rest is lost: give close(timeout=…) more")

    def _end(self) -> None:
        self._is_over = True
        self._ring.forget_all()
        self._export.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return self.close()
        with contextlib.suppress(CausewayError):  # the error that ends the block says why; what is not taken now is lost
            self.close(0.5)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return await self.close_async()
        with contextlib.suppress(CausewayError):  # as in `__exit__`
            await self.close_async(0.5)


class Receiver:
    """The reading side of a channel."""

    def __init__(self, memory: Array, ready: Event | None, life: str) -> None:
        self._ring = Ring(memory)
        self._life = _causeway.share(Event())
        if not self._ring.claim(self._life.ticket.encode()):
            raise Closed("this process or another has opened this channel already: a channel has one receiver, so create another")
        self._ready, self._writer = ready, _Peer(self._ring, _READER, life.encode())
        self._opened: dict[int, Any] = {}
        self._refusal: str | None = None
        self._recent: Array | None = None

    def receive(self, *, stream: object = None, timeout: float | None = 60.0) -> Any:
        """The next array, or dictionary of arrays. Raises `Closed` after the last.

        What is submitted to `stream` from now on comes after what the sender's stream did, where the array is on a device. Without
        a timeout (None) it waits as long as the sender lives.

        If the handler of a signal raises, the next call has what this one had taken. That is so for a call that Python code makes
        by itself, `x = receiver.receive(timeout=5)`, and for `for x in receiver`, from CPython 3.11 on, without a debugger or another
        tool that traces. Where C calls it, as `functools.partial`, `next` and `list` do, in `receive(**options)`, and on CPython 3.10, the handler may run when the array has been returned and the caller does not have it yet: it is lost then.
        Handlers run in the main thread only; no other thread loses anything.
        """
        timeout = _causeway.limit(timeout)
        deadline = time.monotonic() + timeout
        rest = timeout
        while True:
            number = _wait(self._ring, _READER, self._fetch, rest, lambda: self._late(timeout))
            rest = deadline - time.monotonic()
            if self._ready is not None:
                if _is_of_sycl(stream):
                    self._ready.synchronize(min(max(rest, 0.0), threading.TIMEOUT_MAX))
                else:
                    self._ready.wait(stream)
            if (received := self._hand_out(number)) is not None:
                return received

    async def receive_async(self, *, stream: object = None, timeout: float | None = 60.0) -> Any:
        """The same in an event loop."""
        timeout = _causeway.limit(timeout)
        deadline = time.monotonic() + timeout
        rest = timeout
        while True:
            number = await _waiting.until(lambda: self._fetch(0.0), rest, lambda: self._late(timeout))
            rest = deadline - time.monotonic()
            if self._ready is not None:
                if _is_of_sycl(stream):
                    await _waiting.settled(self._ready._pending(), rest)
                else:
                    self._ready.wait(stream)
            if (received := self._hand_out(number)) is not None:
                return received

    def _hand_out(self, number: int) -> Any:
        """What was in the message of this number; None if another thread was handed it."""
        arrived = self._ring.arrived
        if number not in arrived:
            return None
        # CPython runs handlers of signals, and other threads, after calls of C and jumps back, of which there is none from
        # here on until the caller of `receive` has what it returns (before 3.11, until it is back there). Nothing here can
        # know whether a caller that is C, as `next` is, got it: what was handed out once is not handed out again.
        received = arrived[number]
        del arrived[number]
        return received

    def _fetch(self, rest: float) -> int | None:
        """The number of the first message that is opened and was not handed out; None if there is none yet."""
        fetched = self._ring.fetch()
        if fetched is None:
            self._check_writer()
            return None
        number, ticket = fetched
        if ticket is None:
            self._opened.pop(number, None)
            return number
        if (opened := self._open(number, ticket, rest)) is None:
            return None
        self._refusal = None
        if isinstance(opened, Array) and opened.nbytes <= _SMALL:
            self._recent = opened
        is_first = self._ring.accept(number, opened)  # the sender keeps it open until here
        self._opened.pop(number, None)
        return number if is_first else None

    def _open(self, number: int, ticket: bytes, rest: float) -> Any:
        """What a message names; None as long as the process that shares it does not answer: the message stays."""
        kept = self._opened
        try:
            if number not in kept:
                kept.clear()
                # In one call of C: no handler of a signal comes between what opens it and what keeps it for the next `receive`.
                if rest > _ANSWER:
                    kept.update(zip((number,), map(_causeway.open_message, (ticket,))))
                else:
                    kept.update(zip((number,), map(PendingOpen, (ticket,), (self._ring,), (_READER,))))
            opened = kept.get(number)
            if not isinstance(opened, PendingOpen):
                return opened
            return opened.result() if opened.done() else None
        except CausewayError as error:
            kept.pop(number, None)
            if error.is_transient:
                self._refusal = str(error)
            elif self._ring.advance(number):  # it can never be opened
                if isinstance(error, Withdrawn) and self._ring.is_closed(_WRITER):
                    raise Withdrawn(
                        "the sender closed the channel before this array was received: the time of its close(timeout) was over;"
                        " give it more, or receive sooner"
                    ) from error
                raise
            return None

    def _late(self, timeout: float) -> Exception:
        if self._ring.is_empty():
            return _waiting.too_late("nothing came through the channel", timeout)
        why = self._refusal or "the process that shares it has not answered: it is stopped or overloaded"
        error = Busy(f"an array came that could not be opened within {timeout} seconds; it stays, so receive again ({why})")
        error.is_transient = True
        return error

    def _check_writer(self) -> None:
        if self._ring.is_closed(_READER):
            raise Closed("this channel was closed")
        is_closed = self._ring.is_closed(_WRITER)
        if not self._ring.is_empty():
            return  # put before it was closed
        if is_closed:
            raise Closed("the sender has closed the channel, and everything was received")
        try:
            self._writer.check()
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
        self._opened.clear()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        """What comes until the sender closes the channel, however long it takes."""
        with contextlib.suppress(Closed):
            while True:
                yield self.receive(timeout=None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        """The same in an event loop."""
        with contextlib.suppress(Closed):
            while True:
                yield await self.receive_async(timeout=None)
