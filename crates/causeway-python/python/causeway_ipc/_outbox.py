"""What this process has sent to others by `multiprocessing` and not heard of yet, and how a receiver opens it.

A message is a ticket and a byte of the sender's that both processes have. The sender keeps the array until the receiver says in
that byte that it has opened it, and after that for as long as any other process has the memory open: so whoever has it can
send it on by the ticket of the process that made it, and nothing is copied. Where that process has ended meanwhile, the receiver
asks the sender for a copy, by the same byte, and is told the copy's ticket in a few bytes of the sender's.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import process, util
from typing import Any, NamedTuple

from . import _causeway
from ._causeway import Array, Event, Export, Pending
from ._errors import CausewayError, ExporterGone, Freed, Withdrawn
from ._lost import lost_in_pools

_PLACES = 4096
"""How many messages may be on their way at the same time."""
_SWEEP = 0.5
"""Seconds between looks for messages that have arrived, while some are on their way."""
_LONGEST = 2.0
"""Seconds between looks for memory that no other process has open any more."""
_FEW = 8
"""How many of such memories each message has looked at."""
_NOTICE = 5.0
"""Seconds after which a process that ends and waits for its receivers says so; one that no parent waits for ends then."""
_ANSWER = 4096
"""Bytes for the answer to a receiver that asks for a copy: more than the longest ticket of an array."""
_PATIENCE = 30.0
"""Seconds that a receiver waits for that answer."""
_UNDER_WAY, _ARRIVED, _COPY = 0, 1, 2
_TICKET, _FAILURE = 1, 2

linger: float | None = None
"""How long a process that ends waits for its receivers; without a number, until they have received or its parent has ended."""


class _Sent(NamedTuple):
    kept: Array | Export
    ready: Pending | None
    answer: Array | None


def _is_over(ready: Pending | None) -> bool:
    try:
        return ready is None or ready.done()
    except CausewayError:
        return True  # it failed, which receivers are told where they wait


class Outbox:
    """What this process has sent and nobody has opened yet, and what others still have open."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._arrived = _causeway.empty([_PLACES], "uint8", None)
        self._marks = self._arrived.memoryview()
        self._marks[:] = bytes(_PLACES)
        self._ticket = _causeway.share(self._arrived)
        self._sent: dict[int, _Sent] = {}
        self._open: list[Array] = []
        self._free = list(range(_PLACES))
        self._sweeper: threading.Timer | None = None
        self._pause = _SWEEP

    def post(self, ticket: str, kept: Array | Export, ready: Pending | None = None, of_another: bool = False) -> tuple[Any, ...]:
        """How to make the object in the receiver. It is kept until the receiver has it, and what was to be `ready` is."""
        answer = None
        if of_another:
            answer = _causeway.empty([_ANSWER], "uint8", None)
            answer.memoryview()[0] = 0
        with self._lock:
            self._sweep()
            if not self._free:
                raise BlockingIOError(f"{_PLACES} messages are on their way and none was received: receive some first")
            place = self._free.pop()
            self._sent[place] = _Sent(kept, ready, answer)
            self._pause = _SWEEP
            self._look_again()
        _note(self, place)
        answers = None if answer is None else _causeway.standing(answer)[0]
        return receive, (ticket, self._ticket.ticket, place, answers)

    def take_back(self, place: int) -> None:
        """Forgets a message that was not sent."""
        with self._lock:
            if self._sent.pop(place, None) is not None:
                self._marks[place] = _UNDER_WAY
                self._free.append(place)

    def outstanding(self) -> int:
        with self._lock:
            self._sweep()
            return len(self._sent)

    def _sweep(self) -> None:
        for place, (_, ready, answer) in list(self._sent.items()):
            if self._marks[place] == _ARRIVED and _is_over(ready):
                kept = self._sent.pop(place).kept
                if isinstance(kept, Array):
                    self._open += _causeway.open_elsewhere([kept])
                self._marks[place] = _UNDER_WAY
                self._free.append(place)
            elif self._marks[place] == _COPY and answer is not None and answer.memoryview()[0] == 0:
                self._copy(place)
        # A few of them each time, more than come: what is closed is given back as fast as others are sent.
        oldest, self._open = self._open[:_FEW], self._open[_FEW:]
        self._open += _causeway.open_elsewhere(oldest)

    def _copy(self, place: int) -> None:
        """Answers a receiver that could not open the ticket of the process that made an array."""
        sent = self._sent[place]
        assert isinstance(sent.kept, Array) and sent.answer is not None
        try:
            ticket, copy = _causeway.standing_copy(sent.kept)
            self._sent[place] = sent._replace(kept=copy)
            kind, said = _TICKET, ticket.encode()
        except CausewayError as error:
            kind, said = _FAILURE, str(error).encode()[: _ANSWER - 5]
        view = sent.answer.memoryview()
        view[1:5] = len(said).to_bytes(4, "little")
        view[5 : 5 + len(said)] = said
        view[0] = kind  # last: the receiver looks here first

    def _look_again(self) -> None:
        if self._sweeper is None and (self._sent or self._open):
            sweeper = threading.Timer(self._pause, self._swept)
            sweeper.daemon = True
            try:
                sweeper.start()
            except RuntimeError:
                return  # the interpreter ends, and `_drain` looks; or there are too many threads, and the next message is looked after
            self._sweeper = sweeper

    def _swept(self) -> None:
        with self._lock:
            self._sweeper = None
            self._sweep()
            self._open = _causeway.open_elsewhere(self._open)
            self._pause = _SWEEP if self._sent else min(2 * self._pause, _LONGEST)
            self._look_again()

    def drain(self) -> None:
        """Waits for the receivers of what is under way."""
        begun = time.monotonic()
        parent = process.parent_process()
        limit = _NOTICE if linger is None and parent is None else linger
        has_said = False
        while count := self.outstanding():
            waited = time.monotonic() - begun
            if limit is not None and waited >= limit:
                break
            if parent is not None and not parent.is_alive():
                return
            if waited > _NOTICE and not has_said:
                has_said = True
                warnings.warn(
                    f"process {self.pid} has ended its work and waits until {count} arrays or events that it has sent are received:"
                    " receive them, or limit the wait by causeway_ipc.multiprocessing.install(linger=seconds)",
                    RuntimeWarning,
                    stacklevel=1,
                )
            time.sleep(0.005)
        if count:
            warnings.warn(
                f"process {self.pid} ends, and {count} arrays or events that it has sent and nobody has received are lost:"
                " receive them while it runs, or have it wait longer by causeway_ipc.multiprocessing.install(linger=seconds)",
                RuntimeWarning,
                stacklevel=1,
            )


_outbox: Outbox | None = None
_outbox_lock = threading.Lock()


def _forget_parent() -> None:
    """A forked child has nothing under way, and must not touch what is its parent's."""
    global _outbox, _outbox_lock, _marks, _marks_lock
    _inherited.extend([_outbox, _marks])  # neither used nor given back here
    _outbox, _outbox_lock, _marks, _marks_lock = None, threading.Lock(), {}, threading.Lock()


class _AtTheEnd:
    """Has a process wait for its receivers when it ends. That is registered before anything is sent: the thread of a queue may send the
    first array while the process ends already."""

    def __init__(self) -> None:
        self.register()
        util.register_after_fork(self, _AtTheEnd.register)

    def register(self) -> None:
        # After the queues' own threads have written what they hold (priority -5).
        util.Finalize(None, _drain, exitpriority=-100)


def _drain() -> None:
    if _outbox is not None and _outbox.pid == os.getpid():
        _outbox.drain()


_at_the_end = _AtTheEnd()
_inherited: list[object] = []
os.register_at_fork(after_in_child=_forget_parent)


def _ours() -> Outbox:
    global _outbox
    with _outbox_lock:
        if _outbox is None:
            _outbox = Outbox()
        return _outbox


def send(obj: object, ready: Pending | None = None) -> tuple[Any, ...]:
    ticket, array, of_another = _causeway.standing(obj)
    return _ours().post(ticket, array, ready, of_another)


def send_event(event: Event, ready: Pending | None = None) -> tuple[Any, ...]:
    export = _causeway.share(event)
    return _ours().post(export.ticket, export, ready)


def outstanding() -> int:
    """How many messages of this process are on their way."""
    return _outbox.outstanding() if _outbox is not None else 0


_noted = threading.local()


def _note(outbox: Outbox, place: int) -> None:
    if (places := getattr(_noted, "places", None)) is not None:
        places.append((outbox, place))


@contextmanager
def all_or_nothing(failures: type[BaseException] = BaseException) -> Iterator[None]:
    """What was posted inside is taken back if it fails: a message that was not written as a whole is received by nobody."""
    outer = getattr(_noted, "places", None)
    places: list[tuple[Outbox, int]] = []
    _noted.places = places
    try:
        yield
    except failures:
        for outbox, place in places:
            outbox.take_back(place)
        raise
    else:
        if outer is not None:
            outer += places
    finally:
        _noted.places = outer


_marks: dict[str, memoryview] = {}
_marks_lock = threading.Lock()


def _marks_of(ticket: str) -> memoryview:
    """The bytes in which a sender hears what has arrived. They stay open as long as the sender lives."""
    with _marks_lock:
        if (marks := _marks.get(ticket)) is None:
            for other in [other for other in _marks if not _lives(other)]:
                del _marks[other]  # which has a whole block of the memory of an ended process
            opened: Array = _causeway.open(ticket)
            marks = _marks[ticket] = opened.memoryview()
        return marks


def _lives(ticket: str) -> bool:
    try:
        _causeway.open(ticket, timeout=0.0)
    except _DEAD:
        return False
    except CausewayError:
        pass  # it did not answer in time
    return True


_DEAD = (Withdrawn, Freed, ExporterGone)
_SENDER_GONE = (
    "the process that sent this has ended before it was received: receive before you end it (a process that ends by itself waits until it"
    " is received, or for as long as its install(linger=…) says; one that is killed does not)"
)
_MAKER_GONE = (
    "the process that made this array has ended, or offers it no more, and who sent it on had no right to a copy, or has ended too: keep the"
    " process that made it, and the array there, until it was received"
)


@lost_in_pools
def receive(ticket: str, marks: str, place: int, answers: str | None) -> Any:
    """What was sent. The sender is told, also if it cannot be opened."""
    try:
        arrived = _marks_of(marks)
    except _DEAD as error:
        raise type(error)(_SENDER_GONE) from error
    try:
        try:
            return _causeway.open(ticket)
        except _DEAD as error:
            if answers is None:
                raise type(error)(_SENDER_GONE) from error
            return _copy_of(arrived, place, answers, marks, error)
    finally:
        arrived[place] = _ARRIVED


def _copy_of(arrived: memoryview, place: int, answers: str, marks: str, error: CausewayError) -> Any:
    """A copy of an array whose maker is gone, from the process that sent it on."""
    try:
        answer = _causeway.open(answers).memoryview()
        arrived[place] = _COPY
        deadline = time.monotonic() + _PATIENCE
        while answer[0] == 0:
            if time.monotonic() > deadline:
                raise ExporterGone(f"{_MAKER_GONE} (the sender did not answer within {_PATIENCE:.0f} s)")
            time.sleep(0.005)
            _causeway.open(marks)  # the sender lives
        said = bytes(answer[5 : 5 + int.from_bytes(answer[1:5], "little")]).decode()
        if answer[0] == _FAILURE:
            raise type(error)(said) from error
        return _causeway.open(said)
    except _DEAD as gone:
        raise type(gone)(_MAKER_GONE if str(gone) == str(error) else str(gone)) from error
