"""Arrays through multiprocessing, with every way to start a process."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _causeway, _given_up, _outbox
from conftest import becomes, settled

METHODS = ["spawn", "fork", "forkserver"]
LARGE = 1 << 17

cw_multiprocessing.install()


def answer(orders: Any, answers: Any) -> None:
    """Marks each array and sends it back, then one of its own, and ends at once."""
    while (array := orders.get()) is not None:
        np.asarray(array)[0] = 42
        answers.put(array)
    answers.put(np.full(LARGE, 7.0))


def total(array: Any) -> float:
    return float(np.asarray(array).sum())


@pytest.mark.parametrize("method", METHODS)
def test_queues_hand_over_memory(method: str) -> None:
    context = multiprocessing.get_context(method)
    orders, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(orders, answers))
    process.start()
    shared = cw.empty(1000, "float64")
    shared[:] = 1
    orders.put(shared)
    back = answers.get(timeout=30)
    assert isinstance(back, cw.Array) and shared.numpy()[0] == 42
    back[1] = 43
    assert shared.numpy()[1] == 43, "what comes back is the same memory"

    part = shared.numpy()[10:]
    orders.put(part)
    back = answers.get(timeout=30)
    assert type(back) is np.ndarray and part[0] == 42

    host = np.zeros(LARGE)
    orders.put(host)
    back = answers.get(timeout=30)
    assert back[0] == 42 and host[0] == 0, "an array of the host is copied"

    orders.put(None)
    assert answers.get(timeout=30).sum() == 7.0 * LARGE, "a sender that ends waits for its receiver"
    process.join(30)
    assert process.exitcode == 0 and settled()


def test_a_pool_and_a_pipe_hand_over_memory() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        arrays = [cw.empty(LARGE, "float32") for _ in range(8)]
        for number, array in enumerate(arrays):
            array[:] = number
        assert pool.map(total, arrays) == [float(LARGE * number) for number in range(8)]
        assert pool.map(total, [np.ones(LARGE)] * 3) == [LARGE] * 3
    one, other = context.Pipe()
    one.send({"a": arrays[3], "small": np.arange(3), "objects": np.array([None, "x"], object)})
    received = other.recv()
    assert total(received["a"]) == 3 * LARGE and received["small"].tolist() == [0, 1, 2]
    assert received["objects"][1] == "x" and settled()


def test_types_of_ml_dtypes_travel_in_place() -> None:
    types = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    one, other = multiprocessing.Pipe()
    array = cw.empty(4, "bfloat16").numpy()
    one.send(array)
    received = other.recv()
    received[0] = 3
    assert received.dtype == types.bfloat16 and array[0] == 3


def test_events_travel() -> None:
    one, other = multiprocessing.Pipe()
    event = cw.Event()
    one.send(event)
    received = other.recv()
    event.record()
    received.synchronize(5)
    assert settled()


def test_what_was_received_can_be_sent_on_at_any_time() -> None:
    one, other = multiprocessing.Pipe()
    kept = cw.empty(4, "int32")
    kept[:] = 1
    one.send(kept)
    one.send(np.ones(LARGE))
    first, copied = other.recv(), other.recv()
    assert settled(), "both have arrived, and nothing is held for them"
    gc.collect()
    for number in range(2):
        other.send((first, copied))
        again, same = one.recv()
        assert settled()
        again.numpy()[0] += 1
        assert kept.tolist() == again.tolist(), "what its first process keeps stays one memory"
        same[0] = 7 + number
        assert copied[0] == 7 + number, "and so does what any process has open"


def test_what_a_process_has_sent_and_dropped_is_given_back() -> None:
    one, other = multiprocessing.Pipe()
    sent = cw.empty(4, "int32")
    one.send(sent)
    ticket = _causeway.standing(sent)[0]
    received = other.recv()
    assert settled()
    del sent
    received[0] = 3
    assert cw.open(ticket).tolist()[0] == 3, "what was received here is the memory itself"
    del received
    gc.collect()
    with pytest.raises(cw.Withdrawn, match="keep the export"):
        cw.open(ticket)


def send_and_stop(pipe: Any) -> None:
    pipe.send(np.full(LARGE, 1.0))
    os.kill(os.getpid(), signal.SIGSTOP)


def send(pipe: Any) -> None:
    pipe.send(np.full(LARGE, 2.0))


def test_a_stopped_sender_is_waited_for_and_holds_up_nobody_else() -> None:
    context = multiprocessing.get_context("spawn")
    of_stopped, give = context.Pipe(duplex=False)
    stopped = context.Process(target=send_and_stop, args=(give,))
    stopped.start()
    received: list[Any] = []
    receiver = threading.Thread(target=lambda: received.append(of_stopped.recv()), daemon=True)
    try:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
        receiver.start()
        of_other, give = context.Pipe(duplex=False)
        other = context.Process(target=send, args=(give,))
        other.start()
        assert of_other.recv()[0] == 2
        assert receiver.is_alive(), "what another process has sent is received meanwhile"
        os.kill(stopped.pid, signal.SIGCONT)
        receiver.join(30)
        assert received[0][0] == 1
        for process in [stopped, other]:
            process.join(30)
            assert process.exitcode == 0, "the sender knows that it was received, and ends"
    finally:
        stopped.kill()


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("failure", [cw.Busy, cw.LimitReached])
def test_a_sender_that_does_not_answer_at_once_is_asked_again(monkeypatch: pytest.MonkeyPatch, calls: int, failure: type[Exception]) -> None:
    opens, asked = _causeway.open, dict[str, int]()

    def open_late(ticket: str, **options: Any) -> Any:
        asked[ticket] = asked.get(ticket, 0) + 1
        if asked[ticket] <= calls:
            raise failure("it does not answer")
        return opens(ticket, **options)

    one, other = multiprocessing.Pipe()
    one.send(np.ones(LARGE))
    monkeypatch.setattr(_outbox, "_marks", {})
    monkeypatch.setattr(_causeway, "open", open_late)
    assert other.recv().sum() == LARGE
    assert list(asked.values()) == [calls + 1] * 2, "the bytes of the sender, and the array"
    assert settled()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, cw.OutOfMemory])
@pytest.mark.parametrize("at", [0, 1])
def test_a_sender_hears_of_what_its_receiver_gave_up(monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], at: int) -> None:
    opens, calls, here = _causeway.open, list[str](), threading.get_ident()

    def fail_once(ticket: str, **options: Any) -> Any:
        # The words of the sender, and then the array. With options, or elsewhere, it is asked for something else.
        if not options and threading.get_ident() == here:
            calls.append(ticket)
            if len(calls) == at + 1:
                raise failure("a test")
        return opens(ticket, **options)

    one, other = multiprocessing.Pipe()
    one.send(np.ones(LARGE))
    monkeypatch.setattr(_outbox, "_marks", {})
    monkeypatch.setattr(_causeway, "open", fail_once)
    with pytest.raises(failure):
        other.recv()
    assert settled()
    # Its thread opens the words of the sender, too, which the next test here wants to see opened.
    assert becomes(lambda: not _given_up._open)


@pytest.mark.parametrize("failure", [cw.Unreachable, cw.NotPermitted, cw.OutOfMemory])
def test_where_nothing_can_be_shared_arrays_go_as_numpy_sends_them(monkeypatch: pytest.MonkeyPatch, failure: type[Exception]) -> None:
    def fails(_: object) -> Any:
        raise failure("a test")

    one, other = multiprocessing.Pipe()
    shareable = cw.array(np.ones(LARGE)).numpy()
    monkeypatch.setattr(_causeway, "standing", fails)
    with pytest.warns(RuntimeWarning, match="cannot share memory.*: a test"):
        sender = threading.Thread(target=one.send, args=(np.full(LARGE, 3.0),))
        sender.start()
        assert other.recv().sum() == 3 * LARGE
        sender.join()
    with pytest.raises(failure):  # which is the same memory in every process, or nothing
        one.send(shareable)


def test_elements_lie_and_types_are_as_numpy_sends_them() -> None:
    one, other = multiprocessing.Pipe()
    cube = np.arange(8000.0 * 6).reshape(40, 60, 20)
    noted = np.dtype("float64", metadata={"a": 1})
    halves = cube.astype("int32").view(np.dtype(("int32", [("low", "uint16"), ("high", "uint16")])))
    for array in [cube.transpose(2, 0, 1), cube[:, :, ::-1], cube[::2], cube.T, np.asfortranarray(cube), cube.astype(noted), halves]:
        plain = pickle.loads(pickle.dumps(array, 4))
        sender = threading.Thread(target=one.send, args=(array,))
        sender.start()
        received = other.recv()
        sender.join()
        assert np.array_equal(received, array) and received.flags.forc
        assert (received.strides, received.dtype.metadata, received.dtype.names) == (plain.strides, plain.dtype.metadata, plain.dtype.names)
    assert settled()


def test_more_messages_than_there_may_be_are_a_limit(peer: Any) -> None:
    program = peer("""
import os
from multiprocessing.reduction import ForkingPickler
import causeway_ipc.multiprocessing as m
m._outbox._PLACES = 16
m.install()
for _ in range(16):
    ForkingPickler.dumps(cw.empty(4))
try:
    ForkingPickler.dumps(cw.empty(4))
except cw.LimitReached as error:
    print(isinstance(error, BlockingIOError) and error.is_transient and "receive some" in str(error), flush=True)
os._exit(0)
""")
    assert program.hear() == "True"


def test_a_thread_receives_its_first_array_when_the_main_thread_has_ended(peer: Any) -> None:
    program = peer("""
import pickle, threading, time
message = bytes.fromhex(sys.argv[1])
def late():
    while not threading._SHUTTING_DOWN:
        time.sleep(0.01)
    print(pickle.loads(message).sum(), flush=True)
threading.Thread(target=late).start()
""", ForkingPickler.dumps(np.ones(20_000)).hex())  # fmt: skip
    assert program.hear() == "20000.0" and program.end() == 0
    assert settled()
