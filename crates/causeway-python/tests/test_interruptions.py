"""Channels whose processes are interrupted: by handlers of signals that raise or use the channel themselves, by deadlines while the other
process is stopped, by cancelled tasks. Nothing is lost, nothing is received twice, and nobody waits longer than he wants to."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest
from conftest import PATIENCE, Peer

LARGE = 20_000
"""Elements of an array that does not fit into a block."""


class Interrupted(Exception):
    """What the handlers here raise."""


@pytest.fixture
def handle() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Makes a function the handler of SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda act: signal.signal(signal.SIGUSR1, lambda *_: act()) and None
    signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def interrupted(handle: Callable[[Callable[[], None]], None]) -> None:
    def interrupt() -> None:
        raise Interrupted

    handle(interrupt)


class Signalled:
    """A ring: right after the call of this number, before anybody has what it returned, a signal is handled."""

    def __init__(self, ring: Any, call: int) -> None:
        self._ring, self._left = ring, call

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._ring, name)
        if not callable(attribute):
            return attribute

        def call(*arguments: Any) -> Any:
            answer = attribute(*arguments)
            self._left -= 1
            if self._left == 0:
                signal.raise_signal(signal.SIGUSR1)
            return answer

        return call


def after_each_call(side: Any, act: Callable[[], object]) -> Iterator[bool]:
    """Does something once for each call of the ring that it makes, with a signal after that, and once without. Whether it was done."""
    ring, call = side._ring, 0
    was_signalled = True
    while was_signalled:
        call += 1
        side._ring = signalled = Signalled(ring, call)
        done = True
        try:
            act()
        except Interrupted:
            done = False
        finally:
            side._ring = ring
        was_signalled = signalled._left <= 0
        yield done


def elements(array: Any) -> list[int]:
    return np.unique(np.asarray(array)).tolist()


@contextlib.contextmanager
def stopped(other: Peer) -> Iterator[None]:
    other.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, other.process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        other.process.send_signal(signal.SIGCONT)


SENDER = """
channel = cw.Channel(capacity=8)
print(channel.ticket)
for line in sys.stdin:
    for word in line.split():
        channel.send(np.full(int(sys.argv[1]), int(word)))
    print("sent")
"""
RECEIVER = """
receiver = cw.open(sys.argv[1])
print("opened")
for line in sys.stdin:
    print(*np.unique(np.asarray(receiver.receive())))
"""


@pytest.mark.parametrize("size", [5, LARGE])
def test_what_an_interrupted_send_has_put_arrives_whole(interrupted: None, size: int) -> None:
    channel = cw.Channel(capacity=16)
    receiver = cw.open(channel.ticket)
    numbers, sent = iter(range(100)), []

    def send() -> None:
        number = next(numbers)
        channel.send(np.full(size, number))
        sent.append(number)

    for others, _ in enumerate(after_each_call(channel, send), 1):
        channel.send(np.full(size, 1000))  # would be laid over what is free by mistake
    channel._ring.close(1)
    received = [elements(array) for array in list(receiver)]
    assert received.count([1000]) == others
    numbers_received = [values for values in received if values != [1000]]
    assert numbers_received == sorted(numbers_received) and all([number] in numbers_received for number in sent)


def test_an_interrupted_send_loses_no_block(interrupted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = cw.Channel(capacity=1)
    receiver = cw.open(channel.ticket)
    for _ in range(20):
        for _ in after_each_call(channel, lambda: channel.send(np.ones(1))):
            while not channel._ring.is_empty():
                receiver.receive()
    monkeypatch.setattr(cw._causeway, "share", None)  # which is what an array without a block would need
    channel.send(np.ones(1))
    receiver.receive()


@pytest.mark.parametrize("size", [5, LARGE])
def test_what_an_interrupted_receive_has_taken_comes_with_the_next(interrupted: None, size: int) -> None:
    channel = cw.Channel(capacity=32)
    receiver = cw.open(channel.ticket)
    numbers, received = iter(range(100)), []

    def receive() -> None:
        array = receiver.receive()
        received.extend(elements(array))

    channel.send(np.full(size, next(numbers)))
    for done in after_each_call(receiver, receive):
        if done:
            channel.send(np.full(size, next(numbers)))
    receive()
    assert received == list(range(len(received)))
    assert channel._ring.is_empty()


def test_a_signal_at_any_moment_loses_no_array_and_no_byte(peer: type[Peer]) -> None:
    interrupt = """
import random, signal
class Interrupted(Exception): pass
armed = False
def handle(*_):
    global armed
    if armed and random.random() < 0.3:
        armed = False
        raise Interrupted
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
"""
    sender = peer(interrupt + """
channel = cw.Channel(capacity=4)
print(channel.ticket, flush=True)
sent = []
for number in range(3000):
    array = np.full(9000 if number % 10 == 0 else 50, number)
    try:
        armed = True
        channel.send(array)
        armed = False
        sent.append(number)
    except Interrupted:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
channel.close(timeout=60)
print(*sent)
""")
    receiver = peer(interrupt + """
receiver = cw.open(sys.argv[1])
received, interruptions = [], 0
while True:
    try:
        armed = True
        array = receiver.receive()
        armed = False
        received.append(np.unique(np.asarray(array)).tolist())
    except cw.Closed:
        armed = False
        break
    except Interrupted:
        interruptions += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(*(number for numbers in received for number in numbers))
print(max(map(len, received)), interruptions > 0)
""", sender.hear())  # fmt: skip
    received = [int(word) for word in receiver.hear().split()]
    assert receiver.hear() == "1 True"
    sent = [int(word) for word in sender.hear().split()]
    assert received == sorted(set(received)), "each once, in order"
    if sys.version_info >= (3, 11):  # before that, a handler may run when `receive` has returned and nobody has the array yet
        assert set(sent) <= set(received), "and all of them"


@pytest.mark.parametrize("act", ["use", "close"])
def test_a_handler_may_use_and_close_the_channel_after_any_call(peer: type[Peer], act: str) -> None:
    other = peer("""
import signal, threading
sys.path.insert(0, sys.argv[1])
from test_interruptions import Signalled, elements

def use():
    channel.send(np.full(3, 1))

def handled(call):
    global channel
    channel = cw.Channel(capacity=1)
    receiver, received = cw.open(channel.ticket), []
    thread = threading.Thread(target=lambda: received.extend(elements(array) for array in receiver))
    thread.start()
    signal.signal(signal.SIGUSR1, lambda *_: use() if sys.argv[2] == "use" else channel.close())
    channel._ring = signalled = Signalled(channel._ring, call)
    sent = []
    try:
        for number in [2, 3]:
            channel.send(np.full(3, number))
            sent.append([number])
    except cw.Closed:
        assert sys.argv[2] == "close"
    channel.close()
    thread.join()
    if sys.argv[2] == "use":
        assert sorted(received) == [[1], [2], [3]] or signalled._left > 0, received
    assert [number for number in received if number != [1]][:len(sent)] == sent, (sent, received)

for call in range(1, 9):
    handled(call)
print("done")
""", os.path.dirname(__file__), act)  # fmt: skip
    assert other.hear() == "done"
    assert other.end() == 0


@pytest.mark.parametrize("size", [5, LARGE])
def test_a_receive_ends_in_time_while_the_sender_is_stopped_and_keeps_the_message(peer: type[Peer], size: int) -> None:
    sender = peer(SENDER, str(size))
    receiver = cw.open(sender.hear())
    sender.tell("7 8")
    assert sender.hear() == "sent"
    with stopped(sender):
        if size == LARGE:
            for timeout in [0.0, 0.5]:
                with pytest.raises(cw.Busy, match="it stays"):
                    receiver.receive(timeout=timeout)
        else:
            assert elements(receiver.receive()) == [7]
    assert [elements(receiver.receive()) for _ in range(2 if size == LARGE else 1)][-1] == [8]


def test_a_send_and_a_close_wait_for_a_receiver_that_is_stopped(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=1)
    receiver = peer(RECEIVER, channel.ticket)
    assert receiver.hear() == "opened"
    with stopped(receiver):
        channel.send(np.full(3, 7))
        with pytest.raises(cw.Timeout, match="no room") as late:  # longer than one attempt to ask the receiver takes
            channel.send(np.full(3, 8), timeout=3.0)
        assert late.type is cw.Timeout and late.value.is_transient
        with pytest.raises(cw.Timeout, match="no room"):
            channel.send(np.full(3, 8), timeout=0.1)
        closing: list[BaseException] = []

        def close() -> None:
            try:
                channel.close(timeout=PATIENCE)
            except BaseException as error:
                closing.append(error)

        thread = threading.Thread(target=close)
        thread.start()
        thread.join(3.0)
        assert thread.is_alive(), closing
    receiver.tell("receive")
    assert receiver.hear() == "7"
    thread.join(PATIENCE)
    assert not thread.is_alive() and not closing


def test_a_sender_that_is_killed_while_it_is_stopped_is_gone(peer: type[Peer]) -> None:
    sender = peer(SENDER, str(LARGE))
    receiver = cw.open(sender.hear())
    sender.tell("7")
    assert sender.hear() == "sent"
    with stopped(sender):
        with pytest.raises(cw.Busy):
            receiver.receive(timeout=0.1)
        sender.kill()
    for _ in range(2):
        with pytest.raises(cw.ExporterGone):
            receiver.receive()


def test_a_receiver_that_is_killed_while_it_is_stopped_is_gone(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=1)
    receiver = peer(RECEIVER, channel.ticket)
    assert receiver.hear() == "opened"
    with stopped(receiver):
        channel.send(np.zeros(1))
        with pytest.raises(cw.Timeout):
            channel.send(np.zeros(1), timeout=0.1)
        receiver.kill()
    with pytest.raises(cw.ExporterGone):
        channel.send(np.zeros(1))
    given_back = weakref.ref(channel)
    del channel
    gc.collect()
    assert given_back() is None


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


def test_an_event_loop_goes_on_while_the_sender_is_stopped(peer: type[Peer]) -> None:
    sender = peer(SENDER, str(LARGE))
    receiver = cw.open(sender.hear())
    sender.tell("7")
    assert sender.hear() == "sent"

    async def receive() -> Any:
        with stopped(sender):
            receiving = asyncio.create_task(receiver.receive_async(timeout=PATIENCE))
            await turns(20)
            assert not receiving.done()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(receiver.receive_async(), 0.05)
        return await receiving  # it would have failed if the loop had stood still

    assert elements(asyncio.run(receive())) == [7]


def test_an_event_loop_goes_on_while_the_receiver_is_stopped(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=1)
    receiver = peer(RECEIVER, channel.ticket)
    assert receiver.hear() == "opened"

    async def send() -> None:
        with stopped(receiver):
            await channel.send_async(np.full(3, 7))
            sending = asyncio.create_task(channel.send_async(np.full(LARGE, 8), timeout=PATIENCE))
            await turns(20)
            assert not sending.done()
        receiver.tell("receive")
        await sending
        receiver.tell("receive")
        await channel.close_async()

    asyncio.run(send())
    assert [receiver.hear(), receiver.hear()] == ["7", "8"]


def test_a_copy_of_much_is_not_made_in_the_event_loop() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    made_on: list[int] = []
    ready = channel._ready_to_send

    def ready_to_send(*arguments: Any) -> Any:
        made_on.append(threading.get_ident())
        return ready(*arguments)

    channel._ready_to_send = ready_to_send

    async def send() -> None:
        for much in [np.ones(1 << 20), {"a": np.ones(1 << 17), "b": np.ones(1 << 17)}]:
            await channel.send_async(much)

    asyncio.run(send())
    assert threading.get_ident() not in made_on and len(made_on) == 2
    assert elements(receiver.receive()) == [1] and sorted(receiver.receive()) == ["a", "b"]


@pytest.mark.parametrize("size", [5, LARGE])
def test_a_cancelled_receive_loses_nothing(peer: type[Peer], size: int) -> None:
    sender = peer(SENDER, str(size))
    receiver = cw.open(sender.hear())

    async def receive() -> list[int]:
        received: list[int] = []
        while len(received) < 200:
            for timeout in [0.0, 0.0001, 0.001, 0.01]:
                with contextlib.suppress(asyncio.TimeoutError):
                    received += elements(await asyncio.wait_for(receiver.receive_async(), timeout))
            cancelled = asyncio.create_task(receiver.receive_async())
            await asyncio.sleep(0)
            if cancelled.cancel():
                with contextlib.suppress(asyncio.CancelledError):
                    received += elements(await cancelled)
            else:
                received += elements(cancelled.result())
        return received

    sender.tell(" ".join(map(str, range(200))))
    assert asyncio.run(receive()) == list(range(200))


def test_many_channels_in_one_event_loop(peer: type[Peer]) -> None:
    senders = [peer(SENDER, str(size)) for size in [5, LARGE, 9]]
    receivers = [cw.open(sender.hear()) for sender in senders]

    async def receive(receiver: cw.Receiver) -> list[int]:
        return [number for _ in range(50) for number in elements(await receiver.receive_async())]

    async def both() -> list[list[int]]:
        return await asyncio.gather(*(receive(receiver) for receiver in receivers))

    for sender in senders:
        sender.tell(" ".join(map(str, range(50))))
    assert asyncio.run(both()) == [list(range(50))] * 3


def test_a_for_waits_as_long_as_it_takes_and_ctrl_c_ends_it(peer: type[Peer]) -> None:
    channel = cw.Channel()
    receiver = peer("""
import itertools, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
looks = itertools.count(1)
def monotonic():
    look = next(looks)
    if look % 10 == 0:
        print("has looked")
    return look * 61.0                                  # a minute is over at each look
cw._channel.time = type("Time", (), {"monotonic": staticmethod(monotonic)})
receiver = cw.open(sys.argv[1])
try:
    for array in receiver:
        print(int(np.asarray(array)[0]))
except KeyboardInterrupt:
    print("interrupted", *np.asarray(receiver.receive(timeout=None)))
""", channel.ticket)  # fmt: skip

    def hear() -> str:
        return next(line for line in iter(receiver.hear, None) if line != "has looked")

    for number in range(3):
        assert receiver.hear() == "has looked"
        channel.send(np.full(1, number))
        assert hear() == str(number)
    assert receiver.hear() == "has looked"
    receiver.process.send_signal(signal.SIGINT)
    channel.send(np.full(1, 9))
    heard = hear()
    if heard == "9":  # it was received before the signal came
        channel.send(np.full(1, 9))
        heard = hear()
    assert heard == "interrupted 9"


def test_an_async_for_waits_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    waits: list[float] = []
    until = cw._waiting.until

    def noted(attempt: Any, timeout: float, late: Any) -> Any:
        waits.append(timeout)
        return until(attempt, timeout, late)

    monkeypatch.setattr(cw._waiting, "until", noted)

    async def both() -> list[list[int]]:
        async def send() -> None:
            async with channel:
                channel.send(np.full(1, 5))

        sending = asyncio.create_task(send())
        received = [elements(array) async for array in receiver]
        await sending
        return received

    assert asyncio.run(both()) == [[5]]
    assert waits.count(math.inf) == 2


def test_the_end_of_a_block_does_not_hide_its_error(peer: type[Peer]) -> None:
    with pytest.raises(ZeroDivisionError), cw.Channel() as channel:
        cw.open(channel.ticket)
        channel.send(np.zeros(1))
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), cw.Channel() as channel:
        other = peer(RECEIVER, channel.ticket)
        assert other.hear() == "opened"
        channel.send(np.zeros(1))
        other.kill()
        raise ZeroDivisionError

    async def block() -> None:
        async with cw.Channel() as channel:
            channel.send(np.zeros(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(block())
    with pytest.raises(cw.Closed):
        channel.send(np.zeros(1))


def test_a_close_that_was_interrupted_can_be_finished(interrupted: None) -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    for _ in after_each_call(channel, channel.close):
        pass
    with pytest.raises(cw.Closed):
        receiver.receive()
    with pytest.raises(cw.Withdrawn):
        cw.open(channel.ticket)


def test_a_ticket_that_is_longer_than_a_message_is_sent_in_memory(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=2)
    arrays = {f"a tensor with a long name, number {number}": np.full(3, number) for number in range(2000)}
    other = peer("""
for arrays in cw.open(sys.argv[1]):
    print(len(arrays), all(np.asarray(array).tolist() == [number] * 3 for number, array in enumerate(arrays.values())))
""", channel.ticket)  # fmt: skip
    with channel:
        for _ in range(5):
            channel.send(arrays)
            assert other.hear() == "2000 True"
        for placed in [cw.empty_many({name: ((3,), "int64") for name in arrays})]:
            for number, array in enumerate(placed.values()):
                array[:] = number
            channel.send(placed)
            assert other.hear() == "2000 True"
    assert other.end() == 0


def test_a_text_in_memory_that_is_no_ticket_is_refused() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    event, nonsense = cw.share(cw.Event()), cw.share(cw.array(b"nonsense"))
    for said in [b"\1", b"\1nonsense", b"\1" + event.ticket.encode(), b"\1" + nonsense.ticket.encode(), b"\xff\xfe", b"\2"]:
        channel._ring.put(said)
        with pytest.raises(cw.InvalidTicket):
            receiver.receive()
    channel.send(np.ones(1))
    assert elements(receiver.receive()) == [1], "what cannot be opened is gone"


class Queue:
    """A queue of SYCL's that has work until it is told that it has none."""

    sycl_device = None

    def __init__(self) -> None:
        self.is_done = threading.Event()

    def wait(self) -> None:
        assert self.is_done.wait(PATIENCE)


class Ready:
    """The event of a device's channel, as far as one on the CPU does as well: it is done when it is told so."""

    def __init__(self) -> None:
        self.is_done, self.streams = False, []

    def _pending(self) -> Ready:
        return self

    def done(self) -> bool:
        return self.is_done

    def wait(self, stream: object) -> None:
        raise AssertionError("waits for a queue of SYCL in the event loop")

    def _record_after_all(self, stream: object) -> None:
        self.streams.append(stream)


def test_an_event_loop_does_not_wait_for_a_queue_of_sycl() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    queue, channel._ready, receiver._ready = Queue(), Ready(), Ready()

    async def both() -> Any:
        sending = asyncio.create_task(channel.send_async(np.full(3, 7), stream=queue))
        await turns(5)
        assert not sending.done()
        queue.is_done.set()
        await sending
        receiving = asyncio.create_task(receiver.receive_async(stream=queue))
        await turns(5)
        assert not receiving.done()
        receiver._ready.is_done = True
        return await receiving

    assert elements(asyncio.run(both())) == [7]
    assert channel._ready.streams == [None]
