"""What is received and sent on: who keeps the memory, what becomes of it when its maker ends, and what a failure leaves behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from conftest import becomes, settled

LARGE = 1 << 17
"""Elements of 8 bytes: a memory of its own. Few elements lie in memory with others."""

cw_multiprocessing.install()


def same(array: Any) -> Any:
    return array


def made(length: int) -> Any:
    return np.arange(length, dtype="float64")


def number_of(_: object) -> int:
    return os.getpid()


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize("tasks", [None, 1])
def test_a_pool_gives_back_what_its_functions_return(method: str, tasks: int | None) -> None:
    with multiprocessing.get_context(method).Pool(2, maxtasksperchild=tasks) as pool:
        for length in [10, LARGE]:
            shared = cw.empty(length, "float64")
            shared[:] = 5
            back = pool.apply_async(same, (shared,)).get(60)
            back[0] = 6
            assert shared.numpy()[0] == 6, "one memory on both ways"
        sent = [np.full(LARGE, float(number)) for number in range(4)]
        results = pool.map_async(same, sent).get(60)
        assert [result[7] for result in results] == [0, 1, 2, 3]
        # Made by one worker, which may have ended by then, and sent on to another.
        results = pool.map_async(made, [LARGE] * 4).get(60)
        again = pool.map_async(same, results).get(60)
        assert all((result == np.arange(LARGE)).all() for result in again)
    assert settled(), "nothing is left under way"


def hold_and_pass_on(inbox: Any, outbox: Any, orders: Any) -> None:
    held = inbox.recv()
    for _ in iter(orders.recv, "end"):
        outbox.send(held)


def test_the_maker_keeps_memory_as_long_as_anybody_has_it_and_no_longer() -> None:
    context = multiprocessing.get_context("spawn")
    inbox, give = context.Pipe(duplex=False)
    take, outbox = context.Pipe(duplex=False)
    orders, order = context.Pipe(duplex=False)
    process = context.Process(target=hold_and_pass_on, args=(inbox, outbox, orders))
    process.start()
    array = cw.array(np.arange(LARGE))
    ticket = cw_multiprocessing._causeway.standing(array)[0]
    give.send(array)
    del array
    assert settled(), "received"
    for number in range(3):
        order.send("again")
        received = take.recv()
        assert received.tolist()[:2] == [number, 1]
        received[0] = number + 1
        del received
        gc.collect()
        time.sleep(0.1)
    assert cw.open(ticket).shape == (LARGE,)
    process.kill()
    process.join()

    def is_freed() -> bool:
        try:
            cw.open(ticket)
        except (cw.Freed, cw.Withdrawn):
            return True
        return False

    assert becomes(is_freed), "memory that a killed process had open is given back"


def make_and_end(outbox: Any, options: dict[str, Any]) -> None:
    array = cw.empty(LARGE, "int64", **options)
    array[:] = 3
    outbox.send(array)


def pass_on(inbox: Any, outbox: Any, go: Any) -> None:
    held = inbox.recv()
    go.recv()
    outbox.send(held)
    go.recv()


@pytest.mark.parametrize("options", [{}, {"read_only": True}, {"access": f"user:{os.getuid()}"}], ids=str)
@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_copy_of_what_an_ended_process_made_is_no_more_open_than_that_was(options: dict[str, Any], ends: str) -> None:
    context = multiprocessing.get_context("spawn")
    inbox, made_here = context.Pipe(duplex=False)
    take, outbox = context.Pipe(duplex=False)
    going, go = context.Pipe(duplex=False)
    sender = context.Process(target=pass_on, args=(inbox, outbox, going))
    maker = context.Process(target=make_and_stay if ends == "after" else make_and_end, args=(made_here, options))
    sender.start()
    maker.start()
    if ends == "before":
        maker.join(30)
        assert maker.exitcode == 0
    go.send("send")
    if ends == "after":
        assert becomes(lambda: take.poll(0.01)), "it is on its way here"
        maker.kill()
        maker.join()
    if "access" in options:
        if ends == "after":
            with pytest.raises(cw.CausewayError, match="more processes|no right to a copy"):
                take.recv()
        else:
            sender.join(30)  # it could not send
            assert sender.exitcode == 1
    else:
        received = take.recv()
        assert received.tolist()[:2] == [3, 3] and received.is_read_only == ("read_only" in options)
    go.close()
    sender.join(30)


def test_a_copy_of_what_is_for_reading_is_for_reading_in_the_process_that_made_the_copy() -> None:
    take, give = multiprocessing.Pipe(duplex=False)
    maker = multiprocessing.get_context("spawn").Process(target=make_and_end, args=(give, {"read_only": True}))
    maker.start()
    received = take.recv()
    maker.join(30)
    give.send((received, received.numpy()))
    array, view = take.recv()
    assert array.is_read_only and not view.flags.writeable and array.tolist()[0] == 3
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5


def make_and_stay(outbox: Any, options: dict[str, Any]) -> None:
    array = cw.empty(LARGE, "int64", **options)
    array[:] = 3
    outbox.send(array)
    time.sleep(60)


def send_and_end(queue: Any) -> None:
    queue.put(np.full(LARGE, 9.0))
    queue.put(cw.array(np.arange(4)))


def test_what_an_ended_process_has_sent_is_there_until_it_is_received() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=send_and_end, args=(queue,))
    process.start()
    first = queue.get(timeout=30)
    process.join(7)
    assert process.is_alive(), "it waits for the second one, as it would for what its queue holds"
    assert first[0] == 9 and queue.get(timeout=30).tolist() == [0, 1, 2, 3]
    process.join(30)
    assert process.exitcode == 0


def send_and_end_at_once(pipe: Any) -> None:
    cw_multiprocessing.install(linger=0)
    pipe.send(np.ones(LARGE))


def test_what_was_lost_with_its_process_says_what_to_do() -> None:
    context = multiprocessing.get_context("spawn")
    take, give = context.Pipe(duplex=False)
    process = context.Process(target=send_and_end_at_once, args=(give,))
    process.start()
    process.join(30)
    with pytest.raises(cw.ExporterGone, match="linger"):
        take.recv()


def mapped_files() -> int:
    with open("/proc/self/maps") as maps:
        return sum("memfd:" in line for line in maps)


def test_processes_that_have_sent_and_ended_leave_nothing_open() -> None:
    context = multiprocessing.get_context("fork")

    def run(count: int) -> None:
        with context.Pool(1, maxtasksperchild=1) as pool:
            for _ in range(count):
                assert pool.apply_async(made, (LARGE,)).get(60)[1] == 1

    def state() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), mapped_files()

    run(3)
    before = state()
    run(12)
    # Of the last sender something stays, and of the memory that was closed in the last half second.
    assert becomes(lambda: all(after <= first + 4 for after, first in zip(state(), before))), f"{before}, and then {state()}"


class Deaf:
    """Arrives as an array that cannot be opened."""

    def __len__(self) -> int:
        return LARGE

    def __reduce__(self) -> Any:
        make, arguments = cw.multiprocessing._send(np.ones(LARGE))
        with cw.share(np.ones(3)) as export:
            return make, (export.ticket, *arguments[1:])


def deaf(_: object) -> Any:
    return Deaf()


def first_of(array: Any) -> float:
    return float(array[0])


def test_an_array_that_cannot_be_opened_is_an_error_and_no_end_of_a_pool() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        lost = pool.apply_async(deaf, (0,)).get(30)
        with pytest.raises(cw.Withdrawn):
            lost[0]
        with pytest.raises(cw.Withdrawn):
            np.asarray(lost)
        assert "lost" in repr(lost)
        with pytest.raises(cw.Withdrawn):
            pool.apply_async(first_of, (Deaf(),)).get(30)
        assert pool.apply_async(len, ({Deaf(): 1},)).get(30) == 1, "it may be a key"
        assert pool.apply_async(first_of, (np.full(LARGE, 4.0),)).get(30) == 4


class Box:
    """Made by its class, and asks the array for its length there."""

    def __init__(self, array: Any) -> None:
        self.array, self.length = array, len(array)

    def __reduce__(self) -> Any:
        return Box, (self.array,)


class Tray:
    """Made by a class method of Python's, and asks the arrays for their lengths when it gets its state; holds itself, too."""

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays, self.itself = arrays, self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "length": sum(len(array) for array in state["arrays"])}


def in_boxes(_: object) -> Any:
    return [Box(Deaf()), Tray([Deaf(), np.ones(3)]), Box(np.ones(4)), {Box: [Box(Deaf())]}]


def lengths(boxes: list[Any]) -> list[int]:
    return [box.length for box in boxes if "lost" not in repr(box)]


def test_an_object_that_asks_a_lost_array_when_it_is_made_is_lost_itself_and_no_end_of_a_pool() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        box, tray, whole, inside = pool.apply_async(in_boxes, (0,)).get(30)
        for lost in [box, tray, inside[Box][0]]:
            with pytest.raises(cw.Withdrawn):
                lost.length
        assert whole.length == 4
        assert pool.apply_async(lengths, (in_boxes(0)[:3],)).get(30) == [4]
        with pytest.raises(cw.Withdrawn):
            pool.apply_async(first_of, (Box(Deaf()),)).get(30)
        assert pool.apply_async(first_of, (np.full(LARGE, 4.0),)).get(30) == 4


def test_what_could_not_be_sent_is_not_under_way() -> None:
    assert settled()
    one, other = multiprocessing.Pipe()
    with pytest.raises(Exception, match="pickle"):
        one.send([np.ones(LARGE), cw.empty(3), lambda: 0])
    assert settled()
    other.close()
    with pytest.raises(OSError):
        one.send(np.ones(LARGE))
    assert settled()
    one, other = multiprocessing.Pipe()
    one.send([np.ones(LARGE)])
    assert cw_multiprocessing.outstanding() and other.recv()[0].sum() == LARGE
    assert settled(), "received"


def test_an_array_whose_ticket_is_dead_is_not_shared_again(peer: Any) -> None:
    maker = peer("array = cw.empty(4)\nexport = cw.share(array)\nprint(export.ticket)\nsys.stdin.readline()\nexport.close()\nprint('closed')\nsys.stdin.read()")
    opened = cw.open(maker.hear())
    cw.share(opened).close()
    maker.tell("close")
    maker.hear()
    for share in [cw.share, lambda array: cw.share_many({"a": array})]:
        with pytest.raises(cw.Withdrawn, match="copy"):
            share(opened)
    with cw.share(cw.array(opened)) as export:
        assert cw.open(export).shape == (4,)
    maker.kill()
    with pytest.raises(cw.ExporterGone, match="copy"):
        cw.share(opened)


def test_a_forked_child_shares_its_own_where_its_parent_had_other_memory(peer: Any) -> None:
    other = peer("""
import ctypes, mmap, os
array = cw.empty(1 << 20, "uint8")
address = array.ptr
if os.fork() == 0:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    # Where the parent has its array, nothing is mapped in the child: MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
    assert libc.mmap(address & -4096, 1 << 20, 3, 0x100022, -1, 0) == address & -4096
    own = np.frombuffer((ctypes.c_uint8 * (1 << 20)).from_address(address & -4096), "uint8")
    own[:] = 7
    with cw.share(own) as export:
        print(int(cw.open(export).numpy().sum()) == 7 << 20, flush=True)
    os._exit(0)
os.wait()
""")
    assert other.hear() == "True"


def test_an_event_whose_ticket_is_dead_is_not_shared_again(peer: Any) -> None:
    maker = peer("event = cw.Event()\nexport = cw.share(event)\nprint(export.ticket)\nsys.stdin.read()")
    opened = cw.open(maker.hear())
    cw.share(opened).close()
    maker.kill()
    with pytest.raises(cw.ExporterGone, match="made this event"):
        cw.share(opened)


def test_what_is_opened_where_it_was_made_is_the_memory_itself() -> None:
    array = cw.empty(100, "int32")
    array[:] = np.arange(100)
    with cw.share(array[10:20]) as export:
        opened = cw.open(export)
    del array
    gc.collect()
    with cw.share(opened[3:]) as export:
        again = cw.open(export)
        again[0] = -1
        assert again.tolist() == [-1, *range(14, 20)] and opened.tolist()[3] == -1
    with cw.share(opened, access="same-user"), pytest.raises(cw.InvalidUse, match="when it is made"):
        cw.share(opened, read_only=True)


def test_types_that_cannot_be_shared_are_pickled_by_numpy() -> None:
    one, other = multiprocessing.Pipe()
    packed = np.zeros(LARGE, np.dtype([("a", "u1"), ("b", "<f4"), ("c", "<i8")]))
    packed["b"] = np.arange(LARGE)
    crooked = np.frombuffer(bytearray(8 * LARGE + 1), "u1")[1:].view("<f8")
    for array in [np.ones(LARGE, np.longdouble), np.ones(LARGE, np.clongdouble), packed["b"], packed["c"], packed, crooked,
                  np.ones(LARGE, ">f8"), np.zeros(LARGE, "M8[s]")]:  # fmt: skip
        Sending(one, [array])
        [back] = other.recv()
        assert back.dtype == pickle.loads(pickle.dumps(array[:1])).dtype
        np.testing.assert_array_equal(back, array)


class Sending:
    """Sends what is more than a pipe holds."""

    def __init__(self, pipe: Any, message: object) -> None:
        import threading

        threading.Thread(target=pipe.send, args=(message,)).start()


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_arrive_in_the_order_of_their_memory(order: Any) -> None:
    one, other = multiprocessing.Pipe()
    source = np.asarray(np.arange(LARGE).reshape(-1, 2), order=order)
    one.send(source)
    received = other.recv()
    assert received.strides == source.strides and (received == source).all()
    cube = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    for given in [source, cube]:
        with cw.share(given) as export, cw.share_many({"a": given}) as many:
            for opened in [cw.open(export), cw.open(many)["a"]]:
                assert opened.strides == given.strides and (opened.numpy() == given).all()
    assert cw.share(source[::2, ::-1]).array.numpy().flags[f"{order}_CONTIGUOUS"]
