"""What this process has sent to others by `multiprocessing` and not heard of yet, and how a receiver opens it.

A message is a ticket, a number, and a word of the sender's that both processes have. The sender keeps the array until the receiver
says in that word that it has opened it, and after that for as long as any other process has the memory open: so whoever has it can
send it on by the ticket of the process that made it, and nothing is copied. Where that process has ended meanwhile, the receiver
asks the sender for a copy, by the same word, and is told the copy's ticket in a few bytes of the sender's.
"""

from __future__ import annotations

import _thread
import itertools
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import process, util
from typing import Any, NamedTuple

from . import _causeway
from ._causeway import Array, Event, Export, Pending
from ._errors import CausewayError, ExporterGone, Freed, LimitReached, Timeout, Unreachable, Withdrawn
from ._lost import lost_in_pools
from ._message import Message, current, thread
from ._readers import Written

_PLACES = 4096
"""How many arrays and events may be on their way at the same time."""
_SWEEP = 0.5
"""Seconds between looks for messages that have arrived, while some are on their way."""
_LONGEST = 2.0
"""Seconds between looks for memory that no other process has open any more."""
_FEW = 8
"""How many of such memories are looked at for each message."""
_PART = 4
"""What part of what is on its way comes to a look for what has arrived: so a message costs as many looks at others."""
_NOTICE = 5.0
"""Seconds after which a process that ends and waits for its receivers says so; one that no parent waits for ends then."""
_ANSWER = 4096
"""Bytes for the answer to a receiver that asks for a copy: more than the longest ticket of an array."""
_PATIENCE = 30.0
"""Seconds that a receiver waits for that answer."""
_RETURN = 5.0
"""Seconds in which a process makes its socket anew that somebody has removed, or comes below a limit that it had reached."""
_UNDER_WAY, _ARRIVED, _COPY = 0, 1, 2
"""What is in a word, beside the number of the message: the sender writes the first, and its receiver the others."""
_TICKET, _FAILURE = 1, 2

linger: float | None = None
"""How long a process that ends waits for its receivers; without a number, until they have received or its parent has ended."""


class _Sent(NamedTuple):
    number: int
    kept: Array | Export
    ready: Pending | None
    answer: Array | None
    message: Message | None


def _mark(number: int, state: int) -> int:
    return number << 2 | state


def _warn(sentence: str) -> None:
    """A warning of a process that ends: it waits also where warnings are exceptions, or cannot be shown."""
    try:
        warnings.warn(sentence, RuntimeWarning, stacklevel=1)
    except Exception:
        if sys.stderr is not None:
            with suppress(Exception):
                print(sentence, file=sys.stderr)


def _ends_without_parent() -> bool:
    """Whether this process ends, and the one that waited for it has ended."""
    parent = process.parent_process()
    return getattr(util, "_exiting") and parent is not None and not parent.is_alive()


def _is_over(ready: Pending | None) -> bool:
    try:
        return ready is None or ready.done()
    except CausewayError:
        return True  # it failed, which receivers are told where they wait


class TooManyMessages(LimitReached, BlockingIOError):
    """As many arrays and events as there may be are on their way."""

    is_transient = True


class Outbox:
    """What this process has sent and nobody has opened yet, and what others still have open.

    Handlers of signals, and `__del__`, may send at any point of this, and raise. So nothing here waits for a lock that the same thread
    may hold, and each change is one operation of a `dict`: a place is taken as long as it is in `_sent`.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._sweeping, self._looking = threading.Lock(), threading.Lock()
        self._arrived = _causeway.empty([_PLACES], "uint64", None)
        self._marks = self._arrived.memoryview()
        self._marks.cast("B")[:] = bytes(self._marks.nbytes)
        self._ticket = _causeway.share(self._arrived)
        self._sent: dict[int, _Sent] = {}
        self._open: list[Array] = []
        self._numbers = itertools.count(1)
        self._posted = 0
        """Since the last look."""
        self._pause = _SWEEP

    def post(
        self, waits: bool, ticket: str, kept: Array | Export, ready: Pending | None = None, of_another: bool = False
    ) -> tuple[Any, ...]:
        """How to make the object in the receiver. It is kept until the receiver has it, and what was to be `ready` is."""
        answer, answers = None, None
        if of_another:
            answer = _causeway.empty([_ANSWER], "uint8", None)
            answer.memoryview()[0] = 0
            answers = _causeway.standing(answer)[0]
        self._posted += 1
        if self._posted * _PART > len(self._sent):
            self._sweep()
        number = self._take(waits, kept, ready, answer, current())
        self._pause = _SWEEP
        if not self._looking.locked():
            with suppress(RuntimeError):  # the interpreter ends, and `drain` looks; or there are too many threads, and the next message is looked after
                _thread.start_new_thread(self._look, ())  # which no handler's exception can interrupt, unlike `Thread.start`
        return receive, (ticket, self._ticket.ticket, number, answers)

    def _take(self, waits: bool, *sent: Any) -> int:
        message, pause = sent[-1], 0.001
        while True:
            for number in itertools.islice(self._numbers, _PLACES if len(self._sent) < _PLACES else 0):
                mine, place = _Sent(number, *sent), number % _PLACES
                if self._sent.setdefault(place, mine) is mine:
                    self._marks[place] = _mark(number, _UNDER_WAY)
                    return number
            if message is not None and all(other.message is message for other in self._sent.copy().values()):
                raise LimitReached(
                    f"one message can have at most {_PLACES} arrays and events: send them in several, or one array that has them as its parts,"
                    " or the ticket of share_many({name: array, …}), which opens all of them"
                )
            self._sweep()
            others = self._sent.copy().values()
            if len(others) < _PLACES:
                continue  # there is room by now
            is_read = any(other.message is None or other.message.is_read() for other in others)
            if not waits or not is_read or _ends_without_parent():
                raise TooManyMessages(f"{_PLACES} arrays and events are on their way and none was received: receive some first")
            time.sleep(pause)
            pause = min(2 * pause, 0.05)  # a look at all of them takes a millisecond

    def outstanding(self) -> int:
        self._sweep()
        return len(self._sent)

    def give_up(self, written: Written) -> None:
        """Nobody receives what was written there and has not arrived."""
        for place, sent in self._sent.copy().items():
            if sent.message is not None and written in sent.message.went:
                sent.message.was_given_up = True  # of which more may be pickled yet
                self._sent.pop(place, None)

    def is_under_way(self, written: Written) -> bool:
        """Whether anything was written there and has not arrived."""
        return any(sent.message is not None and written in sent.message.went for sent in self._sent.copy().values())

    def _awaited(self) -> int:
        """How many messages this process waits for before it ends."""
        self._sweep()
        return sum(sent.message is None or sent.message.is_waited_for() for sent in self._sent.copy().values())

    def _sweep(self, all_open: bool = False) -> None:
        if self._sweeping.locked():
            return  # another thread looks, or this one, which a handler has interrupted
        with self._sweeping:
            posted, self._posted = self._posted, 0
            for place, sent in self._sent.copy().items():
                self._look_at(place, sent)
            # A few of them each time, more than come: what is closed is given back as fast as others are sent.
            few = len(self._open) if all_open else _FEW * max(posted, 1)
            self._open = self._open[few:] + _causeway.open_elsewhere(self._open[:few])

    def _look_at(self, place: int, sent: _Sent) -> None:
        is_lost = sent.message is not None and sent.message.is_lost()  # first: its reader may receive it, and end
        mark = self._marks[place]  # maybe of an earlier message, or of who should not have got one
        if mark == _mark(sent.number, _COPY) and sent.answer is not None and sent.answer.memoryview()[0] == 0:
            self._copy(place, sent)
        has_arrived = mark == _mark(sent.number, _ARRIVED) and _is_over(sent.ready)
        if has_arrived and isinstance(sent.kept, Array):
            self._open += _causeway.open_elsewhere([sent.kept])
        if has_arrived or is_lost:
            self._sent.pop(place, None)  # another thread may give it up at the same time

    def _copy(self, place: int, sent: _Sent) -> None:
        """Answers a receiver that could not open the ticket of the process that made an array."""
        assert isinstance(sent.kept, Array) and sent.answer is not None
        try:
            ticket, copy = _causeway.standing_copy(sent.kept)
            if self._sent.get(place) is sent:
                self._sent[place] = sent._replace(kept=copy)
            kind, said = _TICKET, ticket.encode()
        except CausewayError as error:
            kind, said = _FAILURE, str(error).encode()[: _ANSWER - 5]
        view = sent.answer.memoryview()
        view[1:5] = len(said).to_bytes(4, "little")
        view[5 : 5 + len(said)] = said
        view[0] = kind  # last: the receiver looks here first

    def _look(self) -> None:
        """What a thread does while there is anything to look for, unless another does."""
        while (self._sent or self._open) and self._looking.acquire(blocking=False):
            try:
                while self._sent or self._open:
                    time.sleep(self._pause)
                    self._sweep(all_open=True)
                    self._pause = _SWEEP if self._sent else min(2 * self._pause, _LONGEST)
            finally:
                self._looking.release()  # what is posted until here is seen by this thread still

    def drain(self) -> None:
        """Waits for the receivers of what is under way."""
        begun = time.monotonic()
        parent = process.parent_process()
        limit = _NOTICE if linger is None and parent is None else linger
        has_said = False
        while count := self._awaited():
            waited = time.monotonic() - begun
            if limit is not None and waited >= limit:
                break
            if parent is not None and not parent.is_alive():
                return
            if waited > _NOTICE and not has_said:
                has_said = True
                _warn(
                    f"process {self.pid} has ended its work and waits until {count} arrays or events that it has sent are received:"
                    " receive them, or limit the wait by causeway_ipc.multiprocessing.install(linger=seconds)"
                )
            time.sleep(min(max(waited / 20, 0.0005), 0.1))
        if count:
            _warn(
                f"process {self.pid} ends, and {count} arrays or events that it has sent and nobody has received are lost:"
                " receive them while it runs, or have it wait longer by causeway_ipc.multiprocessing.install(linger=seconds)"
            )


_outboxes: dict[object, Outbox] = {}
"""This process's own, once it has sent anything: one for all, and one of its own for each queue that has found it full."""


def _forget_parent() -> None:
    """A forked child has nothing under way, and must not touch what is its parent's."""
    global _outboxes, _marks, _has_drained
    _has_drained = False
    _inherited.extend([_outboxes, _marks])  # neither used nor given back here
    _outboxes, _marks = {}, {}
    _at_the_end.register()  # `multiprocessing` forgets this again in its own children, and calls what is registered for them


class _AtTheEnd:
    """Has a process wait for its receivers when it ends. That is registered before anything is sent: the thread of a queue may send the
    first array while the process ends already."""

    def __init__(self) -> None:
        self.register()
        util.register_after_fork(self, _AtTheEnd.register)

    def register(self) -> None:
        # After the queues' own threads have written what they hold (priority -5).
        util.Finalize(None, _drain, exitpriority=-100)


at_the_end: list[Callable[[], None]] = []
hears_of_threads = False
"""Whether `shutdown` is called where the process waits for its threads."""
_has_drained = False


def _drain() -> None:
    threads = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
    if not (threads and hears_of_threads and process.parent_process() is not None):
        _drain_now()


def shutdown(plain: Callable[[], None]) -> None:
    """Waits for all threads as `threading` does. What `multiprocessing` has started does that last, and its threads may send and receive
    until then; one that such a thread has forked ends without a word to this module before."""
    try:
        plain()
    finally:
        if process.parent_process() is not None and not _has_drained:
            _drain_now()


def _drain_now() -> None:
    global _has_drained
    _has_drained = True
    for call in at_the_end:
        call()
    for outbox in _outboxes.copy().values():
        if outbox.pid == os.getpid():
            outbox.drain()


_at_the_end = _AtTheEnd()
_inherited: list[object] = []
os.register_at_fork(after_in_child=_forget_parent)


def _outbox_of(whom: object) -> Outbox:
    return _outboxes.get(whom) or _outboxes.setdefault(whom, Outbox())


def _post(*what: Any) -> tuple[Any, ...]:
    message = current()
    try:
        return _outbox_of(None).post(False, *what)
    except TooManyMessages:
        if message is None or message is not thread.fed:
            raise
    # The thread of a queue waits, as for a pipe that is full: the queue would lose what it has not written. It waits for its own readers.
    return _outbox_of(message.went[0]).post(True, *what)


def give_up(written: Written) -> None:
    """Nobody will receive what was written there."""
    for outbox in _outboxes.copy().values():
        outbox.give_up(written)


def closes(connection: Any) -> None:
    """A connection is about to be closed, after which it cannot be asked whether anybody reads from it."""
    written: Written | None = getattr(connection, "_causeway_written", None)
    if written is not None and any(outbox.is_under_way(written) for outbox in _outboxes.copy().values()):
        written.closes(connection._handle)


def offered(obj: object, ready: Pending | None = None) -> Callable[[], tuple[Any, ...]]:
    """What sends an array, which is in shareable memory by now, copied if need be."""
    ticket, array, of_another = _causeway.standing(obj)
    return partial(_post, ticket, array, ready, of_another)


def send(obj: object, ready: Pending | None = None) -> tuple[Any, ...]:
    return offered(obj, ready)()


def send_event(event: Event, ready: Pending | None = None) -> tuple[Any, ...]:
    export = _causeway.share(event)
    return _post(export.ticket, export, ready)


def outstanding() -> int:
    """How many messages of this process are on their way."""
    return sum(outbox.outstanding() for outbox in _outboxes.copy().values())


def all_or_nothing(message: Message, call: Callable[..., Any], *arguments: Any) -> None:
    """Calls what pickles or writes a message."""
    outer = current()
    try:
        thread.message = message
        call(*arguments)
    except BaseException:
        message.was_broken_off = True  # before any call, after which the handler of another signal could raise
        outstanding()  # gives back what it had posted
        raise
    finally:
        thread.message = outer


_marks: dict[str, memoryview] = {}


def _marks_of(ticket: str) -> memoryview:
    """The words in which a sender hears what has arrived. They stay open as long as the sender lives."""
    if (marks := _marks.get(ticket)) is None:
        opened: Array = _open_while_alive(ticket)
        marks = _marks.setdefault(ticket, opened.memoryview())
        for other in list(_marks):
            if other != ticket and not _lives(other):
                _marks.pop(other, None)  # which has a whole block of the memory of an ended process
    return marks


def _open_while_alive(ticket: str) -> Any:
    """Opens a ticket. A process that does not answer, because it is stopped or has much to do, is asked again as long as it lives; one
    whose socket was removed, with its folder, for as long as it takes to make another; and so long where a limit of it, or of this process, is
    reached."""
    deadline = math.inf
    while True:
        try:
            return _causeway.open(ticket)
        except Timeout:
            time.sleep(0.01)
        except (Unreachable, LimitReached):
            deadline = min(deadline, time.monotonic() + _RETURN)
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.05)


def _say(marks: memoryview, number: int, state: int) -> None:
    """Tells a sender what became of its message, unless it has given up that message, and has another in its place."""
    place = number % len(marks)
    if marks[place] >> 2 <= number:
        marks[place] = _mark(number, state)


def tell(marks: str, number: int) -> None:
    """Tells a sender that its message was given up, as soon as it answers: it would wait for ever at its end. So this is for a thread."""
    while True:
        try:
            _say(_marks_of(marks), number, _ARRIVED)
            return
        except CausewayError as error:
            if not error.is_transient:
                return
        time.sleep(0.1)  # a limit of this process was reached


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
    "the process that sent this has ended before it was received, or has given it up: receive before you end it (a process that ends by"
    " itself waits until it is received, or for as long as its install(linger=…) says; one that is killed does not)"
)
_MAKER_GONE = (
    "the process that made this array has ended, or offers it no more, and who sent it on had no right to a copy, or has ended too: keep the"
    " process that made it, and the array there, until it was received"
)


@lost_in_pools
def receive(ticket: str, marks: str, number: int, answers: str | None) -> Any:
    """What was sent. The sender is told, also if it cannot be opened."""
    try:
        arrived = _marks_of(marks)
    except _DEAD as error:
        raise type(error)(_SENDER_GONE) from error
    except BaseException:
        try:
            _thread.start_new_thread(tell, (marks, number))  # before any other call: as in `all_or_nothing`
        except RuntimeError:
            pass  # the interpreter ends
        raise
    place, mark = number % len(arrived), _mark(number, _ARRIVED)
    try:
        try:
            return _open_while_alive(ticket)
        except _DEAD as error:
            if answers is None:
                raise type(error)(_SENDER_GONE) from error
            return _copy_of(arrived, number, answers, marks, error)
    finally:
        # As `_say`, in which a handler could raise before it is said: CPython runs them at calls and at jumps back.
        if arrived[place] >> 2 <= number:
            arrived[place] = mark


def _copy_of(arrived: memoryview, number: int, answers: str, marks: str, error: CausewayError) -> Any:
    """A copy of an array whose maker is gone, from the process that sent it on."""
    try:
        answer = _open_while_alive(answers).memoryview()
        _say(arrived, number, _COPY)
        deadline = time.monotonic() + _PATIENCE
        while answer[0] == 0:
            if time.monotonic() > deadline:
                raise ExporterGone(f"{_MAKER_GONE} (the sender did not answer within {_PATIENCE:.0f} s)")
            time.sleep(0.005)
            if not _lives(marks):
                raise ExporterGone(_MAKER_GONE)
        said = bytes(answer[5 : 5 + int.from_bytes(answer[1:5], "little")]).decode()
        if answer[0] == _FAILURE:
            raise type(error)(said) from error
        return _open_while_alive(said)
    except _DEAD as gone:
        raise type(gone)(_MAKER_GONE if str(gone) == str(error) else str(gone)) from error
