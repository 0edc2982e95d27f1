"""What was read and is not received to its end keeps no sender waiting, and what a signal interrupts goes on for others: wherever a handler
raises."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _outbox
from conftest import becomes, settled
from test_handlers import Interrupted as Handled
from test_handlers import Trip
from test_handlers import interrupted as interrupted  # a fixture

import causeway_ipc.multiprocessing
cw.multiprocessing.install()


class Interrupted(Exception):
    """What is raised at each moment."""


def at_each_moment(act: Callable[[], None]) -> Iterator[bool]:
    """Calls something again and again; an exception comes at the first call or return in it, at the second, and so on. Whether it did."""
    for moment in itertools.count(1):
        left = moment

        def profile(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Interrupted  # CPython profiles no more then

        was_interrupted = False
        try:
            sys.setprofile(profile)
            act()
            left = 0  # it comes no more
        except Interrupted:
            was_interrupted = True
        finally:
            sys.setprofile(None)
        yield was_interrupted
        if not was_interrupted:
            return


def pipe() -> tuple[Callable[[Any], None], Callable[[], Any], Callable[[], bool]]:
    take, give = multiprocessing.Pipe(duplex=False)
    return give.send, take.recv, lambda: not give.closed and take.poll(0)


def simple_queue() -> tuple[Callable[[Any], None], Callable[[], Any], Callable[[], bool]]:
    queue = multiprocessing.SimpleQueue()
    return queue.put, queue.get, lambda: not queue.empty()


def queue() -> tuple[Callable[[Any], None], Callable[[], Any], Callable[[], bool]]:
    queue = multiprocessing.Queue()
    return queue.put, queue.get, lambda: queue._reader.poll(0)


WAYS = pytest.mark.parametrize("way", [pipe, simple_queue, queue])


@WAYS
def test_what_is_lost_in_a_receive_that_is_interrupted_at_any_moment_keeps_no_sender_waiting(way: Any) -> None:
    array, lost = cw.array(np.arange(4)), 0

    def prepare() -> Callable[[], bool]:
        nonlocal receive
        send, receive, is_there = way()
        send([array, "text", array])
        assert becomes(is_there)
        return is_there

    receive: Any = None
    is_there = prepare()
    for was_interrupted in at_each_moment(lambda: receive() and None):
        if was_interrupted and is_there():  # it was not read, or not the whole of it
            for outbox in _outbox._outboxes.values():
                outbox._sent.clear()
        else:
            assert settled()
            lost += was_interrupted
        is_there = prepare()
    assert receive()[1] == "text" and settled()
    assert lost > 5


class Unwilling:
    """Cannot be made by a receiver."""

    def __reduce__(self) -> Any:
        return refuse, ()


def refuse() -> None:
    raise ZeroDivisionError


@WAYS
def test_arrays_behind_what_cannot_be_received_keep_no_sender_waiting(way: Any) -> None:
    send, receive, _ = way()
    array = cw.array(np.arange(4))
    for message in [[Unwilling(), array], {"first": array, "refused": Unwilling(), "last": {"of": array}}]:
        send(message)
        with pytest.raises(ZeroDivisionError):
            receive()
        assert settled()
    send(array)
    assert receive().tolist() == [0, 1, 2, 3]


class Interrupting:
    """Ends what pickles it by an exception, while the handler of a signal is about to raise another."""

    def __reduce__(self) -> Any:
        -Trip()
        raise ZeroDivisionError


def test_a_message_that_is_interrupted_twice_leaves_nothing_under_way(interrupted: None) -> None:
    with pytest.raises(Handled):
        getattr(connection, "_ForkingPickler").dumps([cw.empty(4), Interrupting()])
    assert settled()


def test_a_read_message_that_is_interrupted_twice_keeps_no_sender_waiting(interrupted: None) -> None:
    take, give = multiprocessing.Pipe(duplex=False)
    give.send([MakesTrouble(), cw.empty(4)])
    with pytest.raises(Handled):
        take.recv()
    assert settled()


class MakesTrouble:
    def __reduce__(self) -> Any:
        return trouble, ()


def trouble() -> None:
    -Trip()
    raise ZeroDivisionError


def test_a_share_that_is_interrupted_at_any_moment_ends_no_other_expiry(peer: Any) -> None:
    other = peer("""
sys.path.insert(0, sys.argv[1])
import threading, time
from test_given_up import at_each_moment
array = cw.empty(4)
def expires():
    export = cw.share(array, expires=0.01)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            cw.open(export.ticket)
        except cw.Withdrawn:
            return True
        time.sleep(0.001)
    return False
for was_interrupted in at_each_moment(lambda: cw.share(array, expires=3600) and None):
    thread = threading.Thread(target=lambda: print(expires()))
    thread.start()
    thread.join()
    print(expires())
print("done")
""", os.path.dirname(__file__))  # fmt: skip
    heard = list(iter(other.hear, "done"))
    assert len(heard) > 8 and set(heard) == {"True"}


def test_a_message_has_so_many_arrays_and_no_more() -> None:
    whole = cw.empty((5000, 4), "float32")
    with pytest.raises(cw.LimitReached, match="one message can have at most 4096 arrays") as refused:
        cw_multiprocessing.ForkingPickler.dumps([whole[row] for row in range(4097)])
    assert not refused.value.is_transient and not isinstance(refused.value, BlockingIOError)
    assert settled()


def test_what_is_read_only_where_it_lies_arrives_so() -> None:
    take, give = multiprocessing.Pipe(duplex=False)
    array = cw.empty(4, "float32").numpy()
    array[:] = 3
    for view, is_read_only in [(np.broadcast_to(array, (5, 4)), True), (array[::2], False)]:
        give.send(view)
        received = take.recv()
        assert received.tolist() == view.tolist() and received.flags.writeable is not is_read_only


def send_behind_what_cannot_be_made(queue: Any) -> None:
    queue.put([Unwilling(), cw.array(np.arange(4))])


def receive_one(queue: Any) -> None:
    queue.get()


def test_a_receiver_that_ends_by_what_it_cannot_receive_keeps_no_sender_from_ending() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    acts = [send_behind_what_cannot_be_made, receive_one]
    processes = [context.Process(target=act, args=(queue,)) for act in acts]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=30)
    assert [process.exitcode for process in processes] == [0, 1]


FORKED = """
import multiprocessing, os, sys, time
import causeway_ipc as cw, numpy as np
import causeway_ipc.multiprocessing
cw.multiprocessing.install()
take, give = multiprocessing.Pipe(duplex=False)
if not os.fork():
    give.send(cw.array(np.arange(4)))
    sys.exit()
time.sleep(0.5)
print(take.recv().tolist())
"""


def test_what_a_forked_child_has_sent_outlives_its_last_statement(peer: Any) -> None:
    assert peer(FORKED).hear() == "[0, 1, 2, 3]"
