"""What nobody can receive any more is given up: what a queue had not written, what a process ended without, what pools and queues of before
`install()` hold."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from queue import Empty
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _other_end, _outbox
from conftest import PATIENCE, becomes, settled

cw_multiprocessing.install()

LARGE = 30_000
FULL = 1 << 20
"""Bytes that a pipe has no room for."""


def first_of(array: Any) -> float:
    return float(array[0])


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_a_process_was_started_with_is_given_up_when_it_ends_without_it(method: str) -> None:
    process = multiprocessing.get_context(method).Process(target=first_of, args=(np.ones(LARGE),))
    process.start()
    process.kill()
    process.join(PATIENCE)
    assert settled()
    process.close()


def test_what_a_pool_starts_with_is_given_up_with_it() -> None:
    with multiprocessing.get_context("spawn").Pool(2, first_of, (np.ones(LARGE),)):
        pass
    assert settled()


def test_what_a_process_is_started_with_arrives() -> None:
    process = multiprocessing.get_context("spawn").Process(target=first_of, args=(np.ones(LARGE),))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0 and settled()


class Refuses:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError


def test_a_start_that_fails_leaves_nothing_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    with pytest.raises(ZeroDivisionError):
        context.Process(target=first_of, args=(np.ones(LARGE), Refuses())).start()
    monkeypatch.setattr(multiprocessing.spawn, "get_executable", lambda: b"/not/there")
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", lambda *_: os.stat("/not/there"))
    with pytest.raises(FileNotFoundError):
        context.Process(target=first_of, args=(np.ones(LARGE),)).start()
    assert cw_multiprocessing.outstanding() == 0


def test_what_a_queue_has_not_written_is_dropped() -> None:
    queue = multiprocessing.Queue(4)
    queue.put(bytes(FULL))
    assert becomes(lambda: bool(queue._reader.poll(0)))  # its thread waits for who reads
    for _ in range(3):
        queue.put(cw.empty(4))
    cw_multiprocessing.give_up(queue)
    assert not queue._buffer and cw_multiprocessing.outstanding() == 0
    for number in range(3):  # there is room for as many
        queue.put(cw.array(np.full(4, number)), timeout=PATIENCE)
    assert len(queue.get(timeout=PATIENCE)) == FULL
    assert [int(queue.get(timeout=PATIENCE)[0]) for _ in range(3)] == [0, 1, 2]
    cw_multiprocessing.give_up(queue)
    queue.close()
    cw_multiprocessing.give_up(queue)
    queue.join_thread()


def test_a_queue_that_was_given_up_ends_with_its_thread_when_nobody_has_it() -> None:
    queue = multiprocessing.Queue()
    queue.put(cw.empty(4))
    queue.get(timeout=PATIENCE)
    feeder = queue._thread
    cw_multiprocessing.give_up(queue)
    del queue
    gc.collect()
    feeder.join(PATIENCE)
    assert not feeder.is_alive()


def test_nobody_waits_for_what_a_queue_has_dropped_to_be_done() -> None:
    queue = multiprocessing.JoinableQueue()
    queue.put(bytes(FULL))
    assert becomes(lambda: bool(queue._reader.poll(0)))  # its thread waits for who reads
    queue.put(cw.empty(4))
    cw_multiprocessing.give_up(queue)
    queue.get(timeout=PATIENCE)
    queue.task_done()
    joins = threading.Thread(target=queue.join, daemon=True)
    joins.start()
    joins.join(PATIENCE)
    assert not joins.is_alive()


def test_what_the_thread_of_a_queue_has_in_hand_is_given_up() -> None:
    queue = multiprocessing.Queue()
    with queue._wlock:
        queue.put(cw.empty(4))
        assert becomes(lambda: cw_multiprocessing.outstanding() == 1)
        cw_multiprocessing.give_up(queue)
        assert cw_multiprocessing.outstanding() == 0
    with pytest.raises(cw.Withdrawn, match="given it up"):
        queue.get(timeout=PATIENCE)


has_pickled = threading.Event()


class GivesUp:
    """Gives up the queue that it goes to while the queue's thread pickles it, and has an array that is pickled after that."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue

    def __reduce__(self) -> Any:
        cw_multiprocessing.give_up(self.queue)
        return list, ([cw.empty(4), SaysSo()],)


class SaysSo:
    def __reduce__(self) -> Any:
        has_pickled.set()
        return int, ()


def test_what_is_pickled_while_its_queue_is_given_up_goes_with_it() -> None:
    queue = multiprocessing.Queue()
    with queue._wlock:
        queue.put(GivesUp(queue))
        assert has_pickled.wait(PATIENCE) and settled()
    with pytest.raises(cw.Withdrawn, match="given it up"):
        queue.get(timeout=PATIENCE)


def fill_and_give_up(queue: Any) -> None:
    for number in range(500):
        queue.put(cw.array(np.full(4, number)))
    assert becomes(lambda: 0 < len(queue._buffer) < 499)
    time.sleep(0.1)  # until the pipe is full, most likely
    cw_multiprocessing.give_up(queue)
    assert settled()


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_process_ends_after_it_has_given_up_a_queue_whose_pipe_is_full(kind: str) -> None:
    context = multiprocessing.get_context("spawn")
    queue = getattr(context, kind)(500)
    process = context.Process(target=fill_and_give_up, args=(queue,))
    process.start()
    process.join(PATIENCE)
    try:
        assert process.exitcode == 0
        written = 0
        with pytest.raises(Empty):
            while True:
                with pytest.raises(cw.ExporterGone):
                    queue.get(timeout=0)
                written += 1
        assert 0 < written < 499
        for _ in range(500):
            queue.put(None, block=False)  # there is as much room as ever
    finally:
        process.kill()


def fill_with_long_messages_and_give_up(queue: Any) -> None:
    for number in range(30):
        queue.put((b"long" * 5000, cw.array(np.full(4, number))))
    time.sleep(0.5)  # until the thread is in the midst of a message, most likely
    cw_multiprocessing.give_up(queue)


def test_a_process_ends_after_it_has_given_up_a_queue_in_the_midst_of_a_message() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=fill_with_long_messages_and_give_up, args=(queue,))
    process.start()
    process.join(PATIENCE)
    process.kill()
    assert process.exitcode == 0


def most_of_what_there_may_be(queues: Any) -> None:
    _outbox._PLACES = 64
    for number, queue in enumerate(queues):
        queue.put([cw.array(np.full(4, number)) for _ in range(60)])


def test_queues_that_have_together_more_than_there_may_be_do_not_wait_for_one_another() -> None:
    context = multiprocessing.get_context("spawn")
    queues = [context.Queue() for _ in range(4)]
    process = context.Process(target=most_of_what_there_may_be, args=(queues,))
    process.start()
    try:
        with ThreadPoolExecutor(4) as readers:
            for number, received in enumerate(readers.map(lambda queue: queue.get(timeout=PATIENCE), queues)):
                assert [int(array[0]) for array in received] == [number] * 60
        process.join(PATIENCE)
        assert process.exitcode == 0
    finally:
        process.kill()


def put_and_end(queue: Any) -> None:
    queue.cancel_join_thread()
    queue.put(cw.empty(4))
    assert becomes(lambda: cw_multiprocessing.outstanding() == 1)


def put_more_than_there_may_be(queue: Any, is_waited_for: bool) -> None:
    _outbox._PLACES = 16
    if not is_waited_for:
        queue.cancel_join_thread()
    for number in range(40):
        queue.put([cw.array(np.full(4, number)) for _ in range(3)])
    queue.put(None)
    if not is_waited_for:
        time.sleep(PATIENCE)


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_a_queue_waits_with_what_is_more_than_may_be_on_its_way(is_waited_for: bool) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=put_more_than_there_may_be, args=(queue, is_waited_for))
    process.start()
    try:
        received = iter(lambda: queue.get(timeout=PATIENCE), None)
        assert [[int(array[0]) for array in arrays] for arrays in received] == [[number] * 3 for number in range(40)]
        process.join(PATIENCE if is_waited_for else 0)
        assert process.exitcode == (0 if is_waited_for else None)
    finally:
        process.kill()


def test_a_queue_of_before_waits_with_what_is_more_than_may_be_on_its_way(peer: Any) -> None:
    program = peer("""
import multiprocessing, time
import causeway_ipc.multiprocessing as m
m._outbox._PLACES = 16
context = multiprocessing.get_context("fork")
queue, (here, there) = context.Queue(), context.Pipe()
def read():
    said = queue.get(timeout=60), there.recv()
    there.send([[int(array[0]) for array in queue.get(timeout=60)] for _ in range(20)])
context.Process(target=read, daemon=True).start()
queue.put("before")
m.install()
for number in range(20):
    queue.put([cw.array(np.full(4, number)) for _ in range(3)])
while len(m._outbox._outboxes) < 2:
    time.sleep(0.01)
here.send("all of them are taken")
print(here.recv() == [[number] * 3 for number in range(20)], flush=True)
""")
    assert program.hear() == "True" and program.end() == 0


def test_a_process_ends_after_it_has_given_up_a_queue_of_before_whose_pipe_is_full(peer: Any) -> None:
    program = peer("""
import multiprocessing, time
import causeway_ipc.multiprocessing as m
queue = multiprocessing.Queue()
queue.put("before")
m.install()
for number in range(500):
    queue.put(cw.array(np.full(4, number)))
while not 0 < len(queue._buffer) < 499:
    time.sleep(0.01)
time.sleep(0.1)  # until the pipe is full, most likely
m.give_up(queue)
print(m.outstanding(), flush=True)
""")
    assert program.hear() == "0" and program.end() == 0


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_process_ends_after_it_has_given_up_a_queue_of_before_in_the_midst_of_a_message(peer: Any, kind: str) -> None:
    program = peer(
        """
import multiprocessing
import causeway_ipc.multiprocessing as m
queue = getattr(multiprocessing, sys.argv[1])()
queue.put(b"long" * (1 << 18))  # which nobody reads
queue.put("short")
while len(queue._buffer) != 1:
    pass
m.install()
m.give_up(queue)
print(len(queue._buffer), flush=True)
""",
        kind,
    )
    assert program.hear() == "0" and program.end() == 0


def test_a_process_does_not_wait_for_a_queue_that_was_cancelled_before(peer: Any) -> None:
    program = peer("""
import multiprocessing
import causeway_ipc.multiprocessing as m
context = multiprocessing.get_context("fork")
queue, is_installed = context.Queue(), context.Event()
def put():
    queue.cancel_join_thread()
    queue.put(b"long" * (1 << 18))
    queue.put(cw.empty(4))
    while len(queue._buffer) != 1:
        pass
    m.install()
    is_installed.set()
    while m.outstanding() != 1:
        pass
process = context.Process(target=put)
process.start()
is_installed.wait()
assert len(queue.get()) == 1 << 20  # and nobody reads the array
process.join()
print(process.exitcode, flush=True)
""")
    assert program.hear() == "0" and program.end() == 0


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_process_does_not_wait_for_what_its_queue_cannot_write(kind: str) -> None:
    context = multiprocessing.get_context("spawn")
    queue = getattr(context, kind)()
    with queue._wlock:
        process = context.Process(target=put_and_end, args=(queue,))
        process.start()
        process.join(PATIENCE)
        assert process.exitcode == 0
        process.kill()


def test_what_is_given_up_is_a_connection_or_a_queue() -> None:
    take, _ = multiprocessing.Pipe(duplex=False)
    for wrong in [None, 3, multiprocessing.Queue, [take], object()]:
        with pytest.raises(TypeError, match="give_up takes a connection or a queue"):
            cw_multiprocessing.give_up(wrong)
    cw_multiprocessing.give_up(take)


def sends_where_warnings_are_exceptions(queue: Any) -> None:
    warnings.simplefilter("error")
    _outbox._NOTICE = 0.05
    queue.put(np.full(LARGE, 2.0))


def test_a_process_waits_for_its_receivers_where_warnings_are_exceptions() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=sends_where_warnings_are_exceptions, args=(queue,))
    process.start()
    try:
        assert queue._reader.poll(PATIENCE)
        time.sleep(1)  # for it to have warned
        assert queue.get().sum() == 2 * LARGE
        process.join(PATIENCE)
        assert process.exitcode == 0
    finally:
        process.kill()


class Slow:
    def __reduce__(self) -> Any:
        return time.sleep, (0.5,)


def goes_on_receiving(queue: Any, sums: Any) -> None:
    def receive() -> None:
        while (received := queue.get()) is not None:
            sums.send(float(received[1].sum()))

    threading.Thread(target=receive).start()


def goes_on_sending(ends: Any, give: Any) -> None:
    def send() -> None:
        ends.wait(PATIENCE)
        give.send(np.full(LARGE, 2.0))

    threading.Thread(target=send).start()


def forks_late(ends: Any, give: Any) -> None:
    def fork() -> None:
        ends.wait(PATIENCE)
        process = multiprocessing.get_context("fork").Process(target=give.send, args=(np.full(LARGE, 2.0),))
        process.start()
        process.join()

    threading.Thread(target=fork).start()


def test_a_process_goes_on_receiving_as_long_as_its_threads_do() -> None:
    context = multiprocessing.get_context("spawn")
    queue, (take, sums) = context.Queue(), context.Pipe(duplex=False)
    process = context.Process(target=goes_on_receiving, args=(queue, sums))
    process.start()
    sums.close()
    try:
        for number in range(3):
            queue.put((Slow(), np.full(LARGE, float(number))))
        queue.put(None)
        assert [take.recv() for _ in range(3)] == [number * LARGE for number in range(3)]
        process.join(PATIENCE)
        assert process.exitcode == 0
    finally:
        process.kill()


@pytest.mark.parametrize("goes_on", [goes_on_sending, forks_late])
def test_a_process_waits_for_what_its_threads_have_sent_last(goes_on: Any) -> None:
    context = multiprocessing.get_context("spawn")
    (take, give), ends = context.Pipe(duplex=False), context.Event()
    process = context.Process(target=goes_on, args=(ends, give))
    process.start()
    give.close()
    try:
        time.sleep(1)  # for the function to have returned, most likely
        ends.set()
        time.sleep(1)  # and the thread to have ended
        assert take.recv().sum() == 2 * LARGE
        process.join(PATIENCE)
        assert process.exitcode == 0
    finally:
        process.kill()


BEFORE = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
import causeway_ipc.multiprocessing as m
def rest(array): time.sleep(300)
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    pool.apply(len, ((),))
    m.install()
    pool.map_async(rest, [np.ones(30_000) for _ in range(40)], chunksize=1)
    deadline = time.monotonic() + 30
    while m.outstanding() != 38 and time.monotonic() < deadline:  # two workers have one each
        time.sleep(0.01)
print(m.outstanding())
"""
EXECUTOR_BEFORE = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
import causeway_ipc.multiprocessing as m
def end(array): os._exit(1)
executor = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
executor.submit(len, "").result()
m.install()
futures = [executor.submit(end, np.ones(30_000)) for _ in range(20)]
print(type(futures[-1].exception(30)).__name__)
executor.shutdown()
print(m.outstanding())
"""
QUEUE_BEFORE = """
import multiprocessing, time
import causeway_ipc.multiprocessing as m
def put(queue):
    queue.cancel_join_thread()
    m.install()
    queue.put(np.ones(30_000))
    deadline = time.monotonic() + 30
    while not queue._reader.poll(0) and time.monotonic() < deadline:
        time.sleep(0.01)
context = multiprocessing.get_context("fork")
process = context.Process(target=put, args=(getattr(context, sys.argv[1])(),))
process.start()
process.join(20)
print(process.exitcode)
process.kill()
"""


def test_a_pool_that_was_made_before_gives_up_too(peer: Any) -> None:
    assert peer(BEFORE).hear() == "0"


def test_an_executor_that_was_made_before_gives_up_too(peer: Any) -> None:
    program = peer(EXECUTOR_BEFORE)
    assert [program.hear(), program.hear()] == ["BrokenProcessPool", "0"]


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_queue_that_was_cancelled_before_is_not_waited_for(peer: Any, kind: str) -> None:
    assert peer(QUEUE_BEFORE, kind).hear() == "0"


@pytest.mark.parametrize("is_duplex", [False, True])
def test_whether_the_other_end_of_a_closed_connection_is_open_anywhere(is_duplex: bool) -> None:
    take, give = multiprocessing.Pipe(is_duplex)
    again = os.dup(take.fileno())
    other = _other_end.of(give.fileno())
    give.send("last")
    give.close()
    assert other is not None and other.is_open()
    assert take.recv() == "last"
    with pytest.raises(EOFError):  # nothing keeps the end open that was closed
        take.recv()
    take.close()
    assert other.is_open()
    os.close(again)
    assert not other.is_open()


def test_closed_pipes_leave_descriptors_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_other_end._Pipe, "_descriptors", set())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (80, 80))
    pipes = [multiprocessing.Pipe(duplex=False) for _ in range(20)]
    others = [_other_end.of(give.fileno()) for _, give in pipes]
    assert [other is not None for other in others] == [True] * 10 + [False] * 10
    del others
    assert _other_end.of(pipes[0][1].fileno()) is not None


def test_of_a_file_there_is_no_other_end() -> None:
    with open(os.devnull) as file:
        assert _other_end.of(file.fileno()) is None
    assert _other_end.of(-1) is None
