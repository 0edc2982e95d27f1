"""Handlers of signals that raise while an array is received: what is kept for the next call, in which forms of the call, and how often an
array is opened. And the timeouts and sentences of channels."""

from __future__ import annotations

import _thread
import asyncio
import functools
import math
import signal
import sys
from collections.abc import Iterator
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest
from conftest import Peer

LARGE = 20_000
"""Elements of an array that does not fit into a block."""

FORMS = """
import asyncio, functools, random, signal, threading
class Interrupted(Exception): pass
armed = False
def handle(*_):
    if armed: raise Interrupted
signal.signal(signal.SIGALRM, handle)
channel = cw.Channel(64)
receiver = cw.open(channel.ticket)
options, partial = {"timeout": 30}, functools.partial(receiver.receive, timeout=30)
form = sys.argv[1]

async def main():                                       # does not wait: what it receives is there
    global armed
    received, interruptions = [], 0
    for number in range(2000):
        channel.send(np.full(3, number))
        array, iterator = None, iter(receiver)
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, 1e-6 + random.random() * 4e-5)
            if form == "plain": array = receiver.receive(timeout=30)
            elif form == "for":
                for array in receiver: break
            elif form == "awaited": array = await receiver.receive_async(timeout=30)
            elif form == "async for":
                async for array in receiver: break
            elif form == "next": array = next(iterator)
            elif form == "partial": array = partial()
            elif form == "options": array = receiver.receive(**options)
            armed = False
        except Interrupted:
            armed = False
            interruptions += 1
        if array is not None:
            received.append(int(np.asarray(array)[0]))
        while not channel._ring.is_empty() or receiver._ring.arrived:
            received.append(int(np.asarray(receiver.receive(timeout=30))[0]))
    print(received == sorted(set(received)), len(received) == 2000, interruptions > 0)

asyncio.run(main())
"""


@pytest.mark.parametrize("form", ["plain", "for", "awaited", "async for", "next", "partial", "options"])
def test_which_forms_of_receiving_lose_nothing_to_a_handler_that_raises(peer: type[Peer], form: str) -> None:
    in_order, everything, interrupted = peer(FORMS, form).hear().split()
    assert in_order == "True", "each once at most, whatever the form"
    assert interrupted == "True"
    if form in ("plain", "for", "awaited", "async for") and sys.version_info >= (3, 11):
        assert everything == "True"  # of the others, which are called by C, that is not promised


def test_no_thread_but_the_main_one_loses_anything_in_any_form(peer: type[Peer]) -> None:
    other = peer("""
import functools, signal, threading, time
class Interrupted(Exception): pass
def handle(*_): raise Interrupted
channel = cw.Channel(64)
receiver = cw.open(channel.ticket)
partial, iterator, received = functools.partial(receiver.receive, timeout=30), iter(receiver), []
def receive():
    for number in range(3000):
        received.append(int(np.asarray(partial() if number % 2 else next(iterator))[0]))
    finished.append(True)
finished = []
threading.Thread(target=receive).start()
def send():
    for number in range(3000):
        channel.send(np.full(3, number))
threading.Thread(target=send).start()
interruptions = 0
signal.signal(signal.SIGALRM, handle)
while not finished:
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4)      # one signal: it comes while this waits
        while True:
            time.sleep(1)
    except Interrupted:
        interruptions += 1
print(received == list(range(3000)), interruptions > 0)
""")  # fmt: skip
    assert other.hear() == "True True"


class Interrupted(Exception):
    """What the handler here raises."""


class Trip:
    """`-Trip()` has the handler of SIGUSR1 run, at the next moment when CPython looks, which is not in this operation."""

    __neg__ = staticmethod(functools.partial(_thread.interrupt_main, signal.SIGUSR1))


@pytest.fixture
def interrupted() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("timeout", [30.0, 1.0])
def test_what_was_opened_is_kept_by_a_receive_that_is_interrupted_right_then(
    interrupted: None, monkeypatch: pytest.MonkeyPatch, timeout: float
) -> None:
    trip, opened = Trip(), []
    really_open, really_pending = cw._causeway.open_message, cw._channel.PendingOpen

    def open_message(message: bytes) -> Any:
        array = really_open(message)
        opened.append(message)
        -trip
        return array

    class Pending:
        def __init__(self, *arguments: Any) -> None:
            self._pending = really_pending(*arguments)
            opened.append(arguments[0])
            self.done, self.result = self._pending.done, self._pending.result
            -trip

    monkeypatch.setattr(cw._causeway, "open_message", open_message)
    monkeypatch.setattr(cw._channel, "PendingOpen", Pending)
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    for number in range(3):
        channel.send(np.full(LARGE, number))
        with pytest.raises(Interrupted):
            receiver.receive(timeout=timeout)
        assert np.unique(np.asarray(receiver.receive(timeout=timeout))).tolist() == [number]
        assert len(opened) == number + 1
    assert not receiver._opened, "nothing is kept longer than that"


def test_another_thread_may_look_whether_the_other_process_lives_at_any_moment() -> None:
    channel = cw.Channel()
    other = channel._reader

    class Pending:
        def done(self) -> bool:
            other._pending = None  # as another thread, or a handler, does at this moment
            return True

        def result(self) -> str:
            return "opened"

    other._ticket, other._pending, other._looked = b"", Pending(), -math.inf
    other.check()
    assert other._opened == "opened"


def test_no_timeout_is_for_ever(peer: type[Peer]) -> None:
    other = peer("""
import asyncio
async def send():
    await channel.send_async(np.full(3, 2), timeout=None)
    await channel.close_async(timeout=None)
channel = cw.Channel(capacity=1)
print(channel.ticket)
channel.send(np.full(3, 1), timeout=None)
asyncio.run(send())
""")  # fmt: skip
    receiver = cw.open(other.hear())
    assert np.asarray(receiver.receive(timeout=None)).tolist() == [1] * 3
    assert np.asarray(asyncio.run(receiver.receive_async(timeout=None))).tolist() == [2] * 3
    with pytest.raises(cw.Closed):
        receiver.receive(timeout=None)
    assert other.end() == 0
    cw.Channel().close(timeout=None)  # nothing was sent


def test_a_second_receiver_is_told_that_there_is_one() -> None:
    channel = cw.Channel()
    first = cw.open(channel.ticket)
    with pytest.raises(cw.Closed, match="this process or another has opened this channel already"):
        cw.open(channel.ticket)
    first.close()


def test_what_came_too_late_for_a_close_says_so() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    channel.send(np.zeros(LARGE))
    with pytest.raises(cw.Timeout, match="the rest is lost") as raised:
        channel.close(0.0)
    assert not raised.value.is_transient
    with pytest.raises(cw.Withdrawn, match="the sender closed the channel before this array was received"):
        receiver.receive()
    with pytest.raises(cw.Closed):
        receiver.receive()
