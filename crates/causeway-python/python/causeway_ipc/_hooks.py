"""What `install()` changes in `multiprocessing`, so that it is known what becomes of a message: what was not written as a whole, what is
read and not received, and what nobody will read leave nothing behind."""

from __future__ import annotations

import gc
import os
import select
import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from multiprocessing import connection, pool, popen_forkserver, popen_spawn_posix, queues, util
from multiprocessing.reduction import ForkingPickler
from types import MethodType
from typing import Any

from . import _given_up, _outbox
from ._lost import loads
from ._message import Fed, Message, Start, current, thread, to_write
from ._outbox import all_or_nothing
from ._readers import Written


_PLAIN_FEED: Any = getattr(queues.Queue, "_feed")
"""What the threads of queues call that were used before `install()`."""
_LET_GO = 1.0
"""Seconds that the thread of a queue has to drop what was given up, when the process ends."""


class _Pickled(bytearray):
    """A message as a queue or a connection writes it, and the file that a pickler makes it in."""

    def __init__(self, message: Message) -> None:
        self.message = message

    write = bytearray.extend


def install() -> None:
    """Once, however often it is called."""
    if getattr(ForkingPickler.dump, "_is_causeway", False):
        return
    _takes_back_what_fails()
    _knows_what_queues_write()
    _knows_what_children_receive()
    _tells_what_is_lost()
    _gives_up_what_is_not_done()
    _waits_behind_threads()


def _waits_behind_threads() -> None:
    """Has a process that `multiprocessing` has started wait for its receivers when its threads have ended, which may send and receive."""
    setattr(threading, "_shutdown", partial(_outbox.shutdown, getattr(threading, "_shutdown")))
    _outbox.hears_of_threads = True


def _takes_back_what_fails() -> None:
    """Has a message that cannot be pickled, or is not written as a whole, leave nothing under way: what it had posted is taken back."""
    plain_dump, plain_send, plain_put = ForkingPickler.dump, connection.Connection.send, queues.SimpleQueue.put
    plain_write: Any = getattr(connection.Connection, "_send")  # every write of a connection
    plain_write_all: Any = getattr(connection.Connection, "_send_bytes")
    plain_close: Any = getattr(connection.Connection, "_close")

    def dump(self: ForkingPickler, obj: Any) -> None:
        start = current()
        message = start.message() if isinstance(start, Start) else Message()  # whoever else has it may write it in any way
        all_or_nothing(message, plain_dump, self, obj)

    class Pickler(ForkingPickler):
        """What connections and queues pickle by: nobody else has it, and nothing else is done with it."""

        loads = staticmethod(loads)  # type: ignore[assignment]

        @classmethod
        def dumps(cls, obj: Any, protocol: int | None = None) -> memoryview:
            _looks_at_thread()
            pickled = _Pickled(to_write())
            all_or_nothing(pickled.message, plain_dump, cls(pickled, protocol), obj)
            return memoryview(pickled)

    def send(self: Any, obj: Any) -> None:
        all_or_nothing(Message(), plain_send, self, obj)

    def put(self: Any, obj: Any) -> None:
        all_or_nothing(Message(), plain_put, self, obj)

    def write_all(self: Any, data: Any) -> None:
        pickled = getattr(data, "obj", None)
        message = pickled.message if isinstance(pickled, _Pickled) else Message()
        message.due = len(data) + (4 if len(data) < 1 << 31 else 12)  # before it goes its length
        message.went.append(Written.to(self))
        if message is thread.fed and not _has_room(self, message):
            message.dropped()
            return
        all_or_nothing(message, plain_write_all, self, data)

    def write(self: Any, data: Any, write: Any = os.write) -> None:
        message = current()
        plain_write(self, data, write if message is None else partial(message.write, write))

    def close(self: Any, *arguments: Any) -> None:
        try:
            _outbox.closes(self)
        finally:
            plain_close(self, *arguments)

    dump._is_causeway = True  # type: ignore[attr-defined]
    setattr(ForkingPickler, "dump", dump)
    setattr(connection, "_ForkingPickler", Pickler)
    setattr(queues, "_ForkingPickler", Pickler)
    setattr(connection.Connection, "send", send)
    setattr(connection.Connection, "_send_bytes", write_all)
    setattr(connection.Connection, "_send", write)
    setattr(connection.Connection, "_close", close)
    setattr(queues.SimpleQueue, "put", put)


def _has_room(connection: Any, message: Message) -> bool:
    """Waits until there is room for a message of a queue; False for one that is given up meanwhile."""
    poll = select.poll()
    poll.register(connection._handle, select.POLLOUT)
    while not poll.poll(20):
        if message.was_given_up:
            return False
    return True


def _fed(queues_thread: threading.Thread, buffer: Any, send_bytes: Any) -> Fed | None:
    """What the thread of a queue takes from, and writes to a connection."""
    if not hasattr(queues_thread, "_causeway_fed"):
        writer = getattr(send_bytes, "__self__", None)
        fed = Fed(buffer, Written.to(writer)) if isinstance(writer, connection.Connection) else None
        setattr(queues_thread, "_causeway_fed", fed)
    known: Fed | None = getattr(queues_thread, "_causeway_fed")
    return known


def _fed_before(queues_thread: threading.Thread) -> Fed | None:
    """What a thread takes from if it is that of a queue which was used before `install()`: it takes from the queue itself."""
    if getattr(queues_thread, "_target", None) is not _PLAIN_FEED:
        return None
    buffer, _, send_bytes, *_ = getattr(queues_thread, "_args")
    return _fed(queues_thread, buffer, send_bytes)


def _looks_at_thread() -> None:
    """Such a thread has taken what it pickles now."""
    if thread.message is None and (fed := _fed_before(threading.current_thread())) is not None:
        fed.takes()


def _knows_queues_of_before() -> None:
    """Has such threads known, and those that nobody waits for be so at the end."""
    all_fed = [fed for one in threading.enumerate() if (fed := _fed_before(one)) is not None]
    if all_fed:
        its = [one for one in gc.get_objects() if issubclass(type(one), queues.Queue) and getattr(one, "_joincancelled", False)]
        for fed in all_fed:
            if any(fed.buffer is one._buffer for one in its):
                fed.written.wait_for_nobody()


def _writer_of(through: Any) -> Any:
    """The connection that a queue writes to."""
    writer = getattr(through, "_writer", through)
    return getattr(writer, "conn", writer)  # PyTorch's queues have it in a wrapper


def _knows_what_queues_write() -> None:
    """Has what the thread of a queue is about to write known to go there, and a queue that is not waited for be so at its end."""
    plain_cancel = queues.Queue.cancel_join_thread
    plain_join: Any = getattr(queues.Queue, "_finalize_join")

    def feed(buffer: Any, notempty: Any, send_bytes: Any, *others: Any) -> None:
        fed = _fed(threading.current_thread(), buffer, send_bytes)
        _PLAIN_FEED(buffer if fed is None else fed, notempty, send_bytes, *others)

    def join(waited_for: Any) -> None:
        begun = time.monotonic()
        while (one := waited_for()) is not None and one.is_alive():
            fed = getattr(one, "_causeway_fed", None)
            if fed is None or not fed.was_given_up():
                begun = time.monotonic()
            elif time.monotonic() - begun > _LET_GO:
                return  # it waits for a reader, or for a writer that waits for one, in the midst of a message maybe
            one.join(0.05)
        plain_join(waited_for)

    def looks_first(plain_put: Any) -> Any:
        def put(self: Any, *arguments: Any, **options: Any) -> None:
            if self._joincancelled:
                Written.to(_writer_of(self)).wait_for_nobody()
            plain_put(self, *arguments, **options)

        return put

    def cancel_join_thread(self: Any) -> None:
        plain_cancel(self)
        Written.to(_writer_of(self)).wait_for_nobody()

    setattr(queues.Queue, "_feed", staticmethod(feed))
    setattr(queues.Queue, "_finalize_join", staticmethod(join))
    for finalizer in _finalizers():
        if finalizer._callback is plain_join:
            finalizer._callback = join
    for kind in [queues.Queue, queues.JoinableQueue]:
        setattr(kind, "put", looks_first(kind.put))
    setattr(queues.Queue, "cancel_join_thread", cancel_join_thread)
    _knows_queues_of_before()


def _knows_what_children_receive() -> None:
    """Has what a process is started with be given up when it ends without having received it."""

    def launches(popen: Any) -> None:
        plain_launch = popen._launch

        def launch(self: Any, process: Any) -> None:
            all_or_nothing(Start(self), plain_launch, self, process)

        popen._launch = launch

    for module in [popen_spawn_posix, popen_forkserver]:
        launches(module.Popen)


def _finalizers() -> list[Any]:
    """What is to be called when this process ends, by `multiprocessing`."""
    return list(getattr(util, "_finalizer_registry").values())


def _gives_up_what_is_not_done() -> None:
    """Has pools and executors that end give up what their workers have not received, also those that there are."""
    from concurrent.futures import process as futures  # here alone: a receiver may import this module where the interpreter ends, and that one not

    plain_terminate: Any = getattr(pool.Pool, "_terminate_pool").__func__
    manager: Any = getattr(futures, "_ExecutorManagerThread")
    last = "_join_executor_internals" if hasattr(manager, "_join_executor_internals") else "join_executor_internals"  # before CPython 3.12
    plain_join = getattr(manager, last)

    def terminate(cls: Any, taskqueue: Any, inqueue: Any, *others: Any) -> None:
        try:
            plain_terminate(cls, taskqueue, inqueue, *others)
        finally:
            if hasattr(inqueue, "_writer"):  # threads have another
                give_up(inqueue)

    def join(self: Any, *arguments: Any, **options: Any) -> None:
        try:
            plain_join(self, *arguments, **options)
        finally:
            give_up(self.call_queue)

    setattr(pool.Pool, "_terminate_pool", classmethod(terminate))
    for finalizer in _finalizers():
        ends = finalizer._callback
        if getattr(ends, "__func__", None) is plain_terminate:
            finalizer._callback = MethodType(terminate, ends.__self__)
    setattr(manager, last, join)


def _tells_what_is_lost() -> None:
    """Has the senders of a message that was read, and is not received to its end, know that it was given up."""
    setattr(connection.Connection, "_recv", _given_up.read)
    setattr(connection.Connection, "_recv_bytes", _given_up.part_of_such_a_call(getattr(connection.Connection, "_recv_bytes")))
    setattr(connection.Connection, "recv", _given_up.tells_what_is_lost(connection.Connection.recv))
    setattr(queues.Queue, "get", _given_up.tells_what_is_lost(queues.Queue.get))
    setattr(queues.SimpleQueue, "get", _given_up.tells_what_is_lost(queues.SimpleQueue.get))


def install_torch(queue: Any) -> None:
    """Has the connections of PyTorch's queues, which pickle by themselves, send and receive as those that they wrap."""

    def send(self: Any, obj: Any) -> None:
        self.conn.send(obj)

    def recv(self: Any) -> Any:
        return self.conn.recv()

    queue.ConnectionWrapper.send = send
    queue.ConnectionWrapper.recv = recv


def give_up(through: Any) -> None:
    """Gives up what was sent through a connection or a queue of `multiprocessing` and was not received: nobody will receive it. What a
    `Queue` has not written yet is dropped. What is sent there later is sent as ever. Pools and executors that end do this for what they have
    not done."""
    writer = _writer_of(through)
    if not isinstance(writer, connection.Connection):
        raise TypeError(f"give_up takes a connection or a queue of multiprocessing that this process writes to, and not {type(through).__name__}")
    written = Written.to(writer)
    if isinstance(through, queues.Queue):
        _drop_unwritten(through)
        taken = written.in_hand = written.in_hand or Message(written)  # what was taken before `install()` has none
        taken.dropped = partial(_makes_room_in, weakref.ref(through))  # its thread has what is taken, and would keep the queue
        taken.was_given_up = True
    _outbox.give_up(written)


def _drop_unwritten(queue: Any) -> None:
    end, buffer, is_closed, count = getattr(queues, "_sentinel"), queue._buffer, False, 0
    with queue._notempty:
        with suppress(IndexError):  # the queue's thread takes from the other side meanwhile
            while True:
                if buffer.pop() is end:
                    is_closed = True
                else:
                    count += 1
        if is_closed:
            buffer.append(end)
    for _ in range(count):
        _makes_room(queue)


def _makes_room_in(queue: weakref.ref[Any]) -> None:
    there = queue()
    if there is not None:
        _makes_room(there)


def _makes_room(queue: Any) -> None:
    """Something of the queue is dropped."""
    queue._sem.release()  # there is room for others
    if isinstance(queue, queues.JoinableQueue):
        queue.task_done()  # which nobody else will say of it
