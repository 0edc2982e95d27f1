"""Channels: order, back-pressure, the end, and the death of either side."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import causeway_ipc as cw
import numpy as np
import pytest
from conftest import PATIENCE, Peer, becomes

COUNT = """
with cw.open(sys.argv[1]) as receiver:
    for expected, array in enumerate(receiver):
        assert np.asarray(array)[0] == expected
    print("received", expected + 1)
"""


def test_arrays_come_in_order_and_all_of_them(peer: type[Peer]) -> None:
    with cw.Channel(capacity=3) as channel:
        other = peer(COUNT, channel.ticket)
        for number in range(300):
            array = cw.empty(10, "int32")
            array[:] = number
            channel.send(array)
    assert other.hear() == "received 300"
    assert other.end() == 0


def test_small_arrays_arrive_in_the_order_in_which_their_elements_lie(peer: type[Peer]) -> None:
    cube = np.arange(24).reshape(2, 3, 4)
    sent = [
        (np.asfortranarray(cube[0]), [1, 3]), (cube.transpose(2, 0, 1), [1, 12, 4]), (cube[:, ::2, ::-1], [8, 4, 1]),
        (cw.array(cube.T), [1, 4, 12]), (np.broadcast_to(cube[0, 0], (3, 4)), [4, 1]),
    ]  # fmt: skip
    with cw.Channel(capacity=len(sent)) as channel:
        for array, _ in sent:
            channel.send(array)
        code = """
for array in cw.open(sys.argv[1]):
    print([stride // array.itemsize for stride in array.strides], array.tolist())
"""
        other = peer(code, channel.ticket)
        for array, strides in sent:
            assert other.hear() == f"{strides} {array.tolist()}"


def test_nothing_is_sent_beyond_the_capacity() -> None:
    channel = cw.Channel(capacity=2)
    receiver = cw.open(channel.ticket)
    channel.send(np.zeros(1))
    channel.send({"a": np.ones(2), "b": np.zeros(3)})
    begun = time.monotonic()
    with pytest.raises(cw.Timeout, match="no room"):
        channel.send(np.zeros(1), timeout=0.2)
    assert 0.15 < time.monotonic() - begun < 2.0
    assert receiver.receive().shape == (1,)
    channel.send(np.full(1, 9.0), timeout=1.0)
    assert sorted(receiver.receive()) == ["a", "b"]
    assert np.asarray(receiver.receive())[0] == 9
    with pytest.raises(cw.Timeout, match="nothing came"):
        receiver.receive(timeout=0.05)
    channel.close()
    with pytest.raises(cw.Closed):
        receiver.receive()
    with pytest.raises(cw.Closed):
        channel.send(np.zeros(1))


def test_what_was_received_outlives_the_channel() -> None:
    with cw.Channel() as channel:
        receiver = cw.open(channel.ticket)
        channel.send(np.arange(5))
        array = receiver.receive()
    del channel, receiver
    assert np.asarray(array).tolist() == [0, 1, 2, 3, 4]


def test_async_for_receives_what_is_sent() -> None:
    async def both() -> list[int]:
        with cw.Channel(capacity=2) as channel:
            receiver = cw.open(channel.ticket)

            async def send() -> None:
                for number in range(20):
                    await channel.send_async(np.full(1, number))
                channel._ring.close(1)

            sending = asyncio.create_task(send())
            received = [int(np.asarray(array)[0]) async for array in receiver]
            await sending
            return received

    assert asyncio.run(both()) == list(range(20))


def test_a_channel_has_one_receiver() -> None:
    channel = cw.Channel()
    cw.open(channel.ticket)
    with pytest.raises(cw.Closed, match="create another"):
        cw.open(channel.ticket)
    with pytest.raises(ValueError):
        cw.Channel(capacity=0)


def test_a_receiver_learns_that_its_sender_was_killed(peer: type[Peer]) -> None:
    other = peer("""
channel = cw.Channel()
print(channel.ticket)
channel.send(np.arange(3))
print("sent")
sys.stdin.read()
""")
    receiver = cw.open(other.hear())
    other.hear()
    assert receiver.receive(timeout=10).shape == (3,)
    other.kill()
    begun = time.monotonic()
    with pytest.raises(cw.ExporterGone):
        receiver.receive(timeout=20)
    assert time.monotonic() - begun < 5


def test_a_sender_learns_that_its_receiver_was_killed(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=1)
    other = peer("receiver = cw.open(sys.argv[1])\nprint('opened')\nsys.stdin.read()", channel.ticket)
    other.hear()
    channel.send(np.zeros(1))
    other.kill()
    begun = time.monotonic()
    with pytest.raises(cw.ExporterGone, match="receiver"):
        channel.send(np.zeros(1), timeout=20)
    assert time.monotonic() - begun < 5
    with pytest.raises(cw.ExporterGone):
        channel.close()


def test_a_receiver_that_takes_the_last_array_and_goes_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = cw.Channel()
    receivers = [cw.open(channel.ticket)]
    channel.send(np.zeros(1))

    def too_late() -> None:
        """Is asked when nothing was seen to be taken; right before that, the receiver takes it and goes."""
        receivers.pop().receive()
        raise cw.ExporterGone("the receiver is gone")

    monkeypatch.setattr(channel, "_check_reader", too_late)
    channel.close()


def test_a_sender_learns_that_its_receiver_has_closed() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    receiver.close()
    with pytest.raises(cw.Closed):
        receiver.receive()
    with pytest.raises(cw.Closed, match="receiver"):
        channel.send(np.zeros(1))


def test_counts_and_lengths_that_the_other_process_made_up_are_refused() -> None:
    for at, value in [(0, 1 << 40), (64, 5), (8192, 1 << 50), (8200, 77 << 8), (8200, 0x01_0000_0000_00)]:
        channel = cw.Channel()
        receiver = cw.open(channel.ticket)
        channel.send(np.zeros(1))
        words = channel._ring.array.memoryview().cast("B").cast("Q")
        words[at // 8] = value
        with pytest.raises(cw.InvalidTicket, match="damaged"):
            receiver.receive(timeout=1)
    with pytest.raises(cw.InvalidUse, match="longer"):
        channel._ring.put(bytes(9000))


def test_small_arrays_lie_in_the_channel_and_others_where_they_were() -> None:
    with cw.Channel(capacity=1) as channel:
        receiver = cw.open(channel.ticket)
        small, large = cw.empty(100, "int32"), cw.empty(1 << 16, "int32")
        small[:] = large[:] = 5
        held = []
        for number in range(10):  # more than there are blocks, all of them kept
            small[0] = number
            channel.send(small[::-3])
            held.append(receiver.receive())
        assert [one.tolist() for one in held] == [[5] * 33 + [number] for number in range(10)]
        assert small.ptr not in {one.ptr for one in held} and len({one.ptr for one in held}) == 10
        channel.send(large)
        receiver.receive()[0] = 6
        assert large[0].item() == 6
        blocks = {one.ptr for one in held[:4]}
        del held
        gc.collect()
        channel.send(np.ones(3))
        assert receiver.receive().ptr in blocks, "what nobody keeps is used again"


def test_a_small_array_that_was_received_can_be_shared_and_stays_as_it_is(peer: type[Peer]) -> None:
    channel = cw.Channel(capacity=4)
    receiver = cw.open(channel.ticket)
    channel.send(np.arange(5))
    array = receiver.receive()
    with cw.share(array[1:]) as export:
        opened = cw.open(export.ticket)
        other = peer("print(*np.asarray(cw.open(sys.argv[1])))", export.ticket)
        assert other.hear() == "1 2 3 4"
    opened[0] = 9
    assert array.tolist() == [0, 9, 2, 3, 4]
    del array
    gc.collect()
    for _ in range(20):
        channel.send(np.zeros(5, int))
        receiver.receive()
    assert opened.tolist() == [9, 2, 3, 4], "its block is not used again"


def test_a_message_that_was_not_sent_leaves_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = cw.Channel(capacity=1)
    receiver = cw.open(channel.ticket)
    channel.send(np.zeros(1))
    for _ in range(20):
        with pytest.raises(cw.Timeout):
            channel.send(np.ones(1), timeout=0.0)
    receiver.receive()
    monkeypatch.setattr(cw._causeway, "share", None)  # which is what an array without a block would need
    channel.send(np.ones(1))


def test_many_threads_send_and_receive_each_array_once() -> None:
    channel = cw.Channel(capacity=3)
    receiver = cw.open(channel.ticket)
    received: list[int] = []

    def send(first: int) -> None:
        for number in range(first, first + 150):
            channel.send(np.full(20_000 if number % 5 == 0 else 2, number))  # some of them as tickets

    def receive() -> None:
        for array in receiver:
            received.append(int(np.asarray(array)[-1]))

    senders = [threading.Thread(target=send, args=[first]) for first in range(0, 450, 150)]
    receivers = [threading.Thread(target=receive) for _ in range(3)]
    for thread in senders + receivers:
        thread.start()
    for thread in senders:
        thread.join()
    channel.close()
    for thread in receivers:
        thread.join()
    assert sorted(received) == list(range(450))


def test_what_is_closed_wakes_those_who_wait() -> None:
    channel = cw.Channel(capacity=1)
    receiver = cw.open(channel.ticket)
    raised: list[type[BaseException]] = []

    def blocked(act: object) -> None:
        try:
            act(timeout=30.0)
        except cw.CausewayError as error:
            raised.append(type(error))

    waiting = threading.Thread(target=blocked, args=[receiver.receive])
    waiting.start()
    channel.close()
    waiting.join(10)
    assert raised == [cw.Closed]
    channel = cw.Channel(capacity=1)
    receiver = cw.open(channel.ticket)
    channel.send(np.zeros(1))
    waiting = threading.Thread(target=blocked, args=[lambda timeout: channel.send(np.zeros(1), timeout=timeout)])
    waiting.start()
    receiver.close()
    waiting.join(10)
    assert raised == [cw.Closed] * 2


def test_a_close_ends_the_wait_of_another_threads_close() -> None:
    channel = cw.Channel()
    receiver = cw.open(channel.ticket)
    channel.send(np.zeros(1))
    closed: list[bool] = []
    waiting = threading.Thread(target=lambda: closed.append(channel.close(None) is None))
    waiting.start()
    assert becomes(lambda: channel._ring.is_closed(1))
    with pytest.raises(cw.Timeout):
        channel.close(0)
    waiting.join(PATIENCE)
    assert closed == [True]
    receiver.close()


def test_a_forked_child_is_told_that_the_channel_is_its_parents(peer: type[Peer]) -> None:
    other = peer("""
import os, gc
channel = cw.Channel()
receiver = cw.open(channel.ticket)
channel.send(np.arange(4))
array = receiver.receive()
if os.fork() == 0:
    said = []
    for act in [lambda: channel.send(np.zeros(1)), lambda: receiver.receive(), channel.close, receiver.close]:
        try:
            act()
        except cw.Forked as error:
            said.append("parent" in str(error))
    del array, channel, receiver
    gc.collect()
    print(*said, flush=True)
    os._exit(0)
os.wait()
channel.send(np.zeros(4, int))
receiver.receive()
print(*np.asarray(array))
""")
    assert other.hear() == "True True True True"
    assert other.hear() == "0 1 2 3"
