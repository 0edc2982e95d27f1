"""What is pickled and not written leaves nothing behind, whatever interrupts it, and what was written arrives, whatever it was sent
from."""

from __future__ import annotations

import linecache
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import connection, queues
from multiprocessing.reduction import ForkingPickler
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _hooks, _message, _outbox
from conftest import PATIENCE, becomes, settled

cw_multiprocessing.install()


class Interrupted(Exception):
    """What the handlers here raise."""


def by_pipe() -> tuple[Callable[[Any], None], Callable[[], Any], Any]:
    """What sends, what receives, and what is closed when no more is sent."""
    take, give = multiprocessing.Pipe(duplex=False)
    return give.send, take.recv, give


def by_queue() -> tuple[Callable[[Any], None], Callable[[], Any], Any]:
    queue = multiprocessing.SimpleQueue()
    return queue.put, queue.get, queue._writer


def has_come(receive: Any) -> bool:
    one = receive.__self__
    return one.poll(0) if isinstance(one, connection.Connection) else not one.empty()


WAYS = pytest.mark.parametrize("way", [by_pipe, by_queue])


class AtLine:
    """Does something before a certain line, counted from the beginning, of those that send and start threads."""

    FILES = {module.__file__ for module in [_outbox, _hooks, _message, cw_multiprocessing, connection, queues, threading]}

    def __init__(self, line: int, does: Any) -> None:
        self.left, self.does = line, does

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        # The interpreter looks for no signal where it leaves a `with`, nor between the begin of a `finally` and an assignment.
        is_safe = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith(("with ", "thread.message = outer"))
        if event == "line" and not is_safe:
            self.left -= 1
            if self.left == -1:
                self.does()
        return self


def at_each_line(act: Callable[[], None], does: Callable[[], None], failure: type[BaseException]) -> Any:
    """Has something done at each line of an act, and at none in the end. Whether the act ended."""
    line, is_whole = 0, False
    while not is_whole:
        tracing, at = sys.gettrace(), AtLine(line, does)
        sys.settrace(at)
        try:
            act()
            is_whole = True
        except failure:
            pass
        finally:
            sys.settrace(tracing)
        yield at.left >= 0
        line += 1
    assert line > 40


@WAYS
@pytest.mark.parametrize("failure", [KeyboardInterrupt, TimeoutError])
def test_an_interrupted_send_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], way: Any) -> None:
    def interrupt() -> None:
        raise failure

    def act() -> None:
        send(cw.empty(4))

    monkeypatch.setattr(_outbox, "_SWEEP", 0.001)
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    kept = 0
    send, receive, end = way()
    act()  # the first has more to do than the others
    assert receive() is not None
    for is_whole in at_each_line(act, interrupt, failure):
        end.close()
        try:
            assert receive().shape == (4,), "what was written can be received"
            kept += 1
        except EOFError:
            assert not is_whole
        assert becomes(lambda: not any(outbox._sent for outbox in _outbox._outboxes.values())), "without anybody asking"
        send, receive, end = way()
    assert kept > 1, "it was interrupted before and after it was written"
    assert not failures, "and no thread has failed"
    assert _outbox.current() is None, "what comes next is no part of it"


def test_what_interrupts_a_send_may_send(peer: Any) -> None:
    program = peer("""
import multiprocessing, threading
import causeway_ipc.multiprocessing as m
sys.path.insert(0, sys.argv[1])
from conftest import settled
from test_taken_back import AtLine
array, line, sent = cw.empty(4), 0, [True]
def send_another():
    sent.append(True)
    give_other.send(array)
while sent:
    sent.clear()
    take, give = multiprocessing.Pipe(duplex=False)
    take_other, give_other = multiprocessing.Pipe(duplex=False)
    if line % 2:
        m._outbox._outboxes.clear()  # the first message of a process
    sys.settrace(AtLine(line // 2, send_another))
    give.send(array)
    sys.settrace(None)
    assert take.recv().shape == (4,)
    assert not sent or take_other.recv().shape == (4,)
    assert settled()
    line += 1
print(line > 80)
""", os.path.dirname(__file__))
    assert program.hear() == "True"


class SendsAnother:
    """An object that is pickled by sending another, which fails then."""

    def __init__(self, send: Callable[[], None]) -> None:
        self.send = send

    def __reduce__(self) -> Any:
        self.send()
        raise Interrupted


@WAYS
@pytest.mark.parametrize("other_way", [by_pipe, by_queue])
def test_what_is_sent_while_another_is_sent_arrives_though_that_fails(way: Any, other_way: Any) -> None:
    send, receive, _ = way()
    send_other, receive_other, _ = other_way()
    sent: list[int] = []

    def send_another() -> None:
        sent.append(len(sent))
        send_other(np.full(1 << 17, sent[-1]))

    def interrupt() -> None:
        send_another()
        raise Interrupted

    def act() -> None:
        send(cw.empty(4))

    with pytest.raises(Interrupted):
        send(SendsAnother(send_another))
    for _ in at_each_line(act, interrupt, Interrupted):
        cw_multiprocessing.outstanding()  # gives back what is taken back
        assert [receive_other()[0] for _ in sent] == sent
        sent.clear()
        while has_come(receive):
            assert receive().shape == (4,), "what was written before it was interrupted"
    assert settled()


def test_a_mark_of_an_earlier_message_is_not_taken_for_one_of_the_next_in_its_place(peer: Any) -> None:
    program = peer("""
import multiprocessing, os, pickle
from multiprocessing.reduction import ForkingPickler
import causeway_ipc.multiprocessing as m
m._outbox._PLACES = 16
m.install()
array = cw.empty(4)
first = bytes(ForkingPickler.dumps(array))
def receive(said):
    pickle.loads(said)
    return m.outstanding()
print(receive(first))
later = [bytes(ForkingPickler.dumps(array)) for _ in range(16)]
print(receive(first))
print([receive(said) for said in later[::-1]] == [*range(15, -1, -1)])
print(receive(first))
os._exit(0)
""")
    assert [program.hear() for _ in range(4)] == ["0", "16", "True", "0"]


@pytest.fixture
def handled() -> Any:
    """A thread that has a handler raise in the main one, once, as soon as something is so."""
    has_raised = threading.Event()

    def handle(*_: object) -> None:
        if not has_raised.is_set():
            has_raised.set()
            raise Interrupted

    def interrupt(is_so: Callable[[], bool]) -> None:
        becomes(is_so)
        # A signal that comes right before a call of the system does not interrupt it.
        while not has_raised.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    threads = list[threading.Thread]()

    def start(is_so: Callable[[], bool]) -> None:
        threads.append(threading.Thread(target=interrupt, args=[is_so]))
        threads[-1].start()

    yield start
    has_raised.set()
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGUSR1, before)


def is_sending() -> bool:
    return cw_multiprocessing.outstanding() == 1


def test_a_put_that_is_interrupted_while_it_waits_for_its_turn_leaves_nothing_behind(handled: Any) -> None:
    queue = multiprocessing.SimpleQueue()
    assert settled()
    with queue._wlock:
        handled(is_sending)
        with pytest.raises(Interrupted):
            queue.put(cw.empty(4))
    assert settled()
    queue.put(None)
    assert queue.get() is None


@WAYS
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_a_message_that_is_interrupted_while_the_pipe_is_full_leaves_nothing_behind(handled: Any, way: Any, size: int) -> None:
    send, _, end = way()
    os.set_blocking(end.fileno(), False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(end.fileno(), bytes(1))
    os.set_blocking(end.fileno(), True)
    handled(is_sending)
    with pytest.raises(Interrupted):
        send((cw.empty(4), bytes(size)))
    assert settled()


def test_a_message_of_which_a_part_was_written_leaves_nothing_behind(handled: Any) -> None:
    take, give = multiprocessing.Pipe(duplex=False)
    handled(lambda: take.poll(0) and is_sending())
    with pytest.raises(Interrupted):
        give.send((cw.empty(4), bytes(1 << 20)))
    assert settled()


@WAYS
def test_what_nobody_can_read_leaves_nothing_behind(way: Any) -> None:
    send, receive, _ = way()
    getattr(receive.__self__, "_reader", receive.__self__).close()
    with pytest.raises(BrokenPipeError):
        send(cw.empty(4))
    assert settled()


def test_what_the_thread_of_a_queue_cannot_write_leaves_nothing_behind() -> None:
    queue, failures = multiprocessing.Queue(), list[BaseException]()
    queue._on_queue_feeder_error = lambda error, obj: failures.append(error)
    queue._reader.close()
    queue.put(cw.empty(4))
    assert becomes(lambda: bool(failures)) and isinstance(failures[0], BrokenPipeError)
    assert settled()
    queue.put(Unpicklable(cw.empty(4)))
    assert becomes(lambda: len(failures) == 2) and isinstance(failures[1], Interrupted)
    assert settled()
    queue.cancel_join_thread()


class Unpicklable:
    """An array, and after it something that cannot be pickled."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getstate__(self) -> Any:
        return [self.array, SendsAnother(lambda: None)]


def put_in_vain(queue: Any, gone: Any) -> None:
    queue._reader.close()
    gone.recv()
    try:
        queue.put(cw.empty(4))
    except BrokenPipeError:
        gone.send("broken")


def test_a_process_ends_whose_message_nobody_can_read() -> None:
    context = multiprocessing.get_context("spawn")
    queue, (ours, theirs) = context.SimpleQueue(), context.Pipe()
    process = context.Process(target=put_in_vain, args=(queue, theirs))
    process.start()
    queue._reader.close()
    ours.send("closed")
    assert ours.recv() == "broken"
    process.join(PATIENCE)
    assert process.exitcode == 0


def test_pickled_bytes_that_go_another_way_are_kept() -> None:
    said = bytes(ForkingPickler.dumps(cw.empty(4)))
    with pytest.raises(Interrupted):
        multiprocessing.Pipe()[0].send(SendsAnother(lambda: ForkingPickler.dumps(cw.empty(4)) and None))
    assert cw_multiprocessing.outstanding() == 2
    assert pickle.loads(said).shape == (4,)
    assert cw_multiprocessing.outstanding() == 1
    _outbox._outboxes.clear()  # nobody will receive the other
