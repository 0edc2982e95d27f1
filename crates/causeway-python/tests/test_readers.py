"""What nobody will read is given up, and no process waits for it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing as cw_multiprocessing
import numpy as np
import pytest
from causeway_ipc import _readers
from conftest import PATIENCE, becomes, settled

cw_multiprocessing.install()

LARGE = 30_000
METHODS = ["fork", "spawn"]
ends_alone = pytest.mark.parametrize("method", METHODS)


def ends(process: Any) -> bool:
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
    return bool(process.exitcode == 0)


def put_and_end(queue: Any) -> None:
    queue.cancel_join_thread()
    queue.put(np.ones(LARGE))
    assert becomes(lambda: bool(queue._reader.poll(0)))  # written


@ends_alone
def test_a_process_that_waits_for_no_queue_waits_for_no_receiver(method: str) -> None:
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=put_and_end, args=(queue,))
    process.start()
    assert ends(process)


def send_and_end(give: Any, told: Any, inherited: Any, closes: bool) -> None:
    _readers._LONG = 1.0
    if inherited is not None:
        inherited.close()
    give.send(np.ones(LARGE))
    if closes:
        give.close()
    told.set()


def sent_by_a_process(method: str, is_duplex: bool, closes: bool) -> tuple[Any, Any]:
    """The only reading end of what a process has sent, and the process, which ends then."""
    context = multiprocessing.get_context(method)
    (take, give), told = context.Pipe(is_duplex), context.Event()
    process = context.Process(target=send_and_end, args=(give, told, take if method == "fork" else None, closes))
    process.start()
    give.close()
    assert told.wait(PATIENCE)
    return take, process


@ends_alone
@pytest.mark.parametrize("is_duplex", [False, True])
@pytest.mark.parametrize("closes", [False, True])
def test_a_process_does_not_wait_for_ever_for_a_connection_that_nobody_has_open(method: str, is_duplex: bool, closes: bool) -> None:
    take, process = sent_by_a_process(method, is_duplex, closes)
    take.close()
    assert ends(process)


@ends_alone
@pytest.mark.parametrize("is_duplex", [False, True])
def test_what_was_sent_through_a_connection_that_its_sender_has_closed_is_read_later(method: str, is_duplex: bool) -> None:
    take, process = sent_by_a_process(method, is_duplex, True)
    process.join(2)  # longer than it waits for what nobody can read
    assert take.recv().sum() == LARGE
    with pytest.raises(EOFError):
        take.recv()
    assert ends(process)


def put_and_tell(queue: Any, told: Any) -> None:
    _readers._LONG = 1.0
    queue.put(np.ones(LARGE))
    assert becomes(lambda: bool(queue._reader.poll(0)))
    told.set()


@ends_alone
def test_a_process_does_not_wait_for_ever_for_a_queue_that_nobody_has_open(method: str) -> None:
    context = multiprocessing.get_context(method)
    queue, told = context.Queue(), context.Event()
    process = context.Process(target=put_and_tell, args=(queue, told))
    process.start()
    assert told.wait(PATIENCE)
    queue._reader.close()
    queue._writer.close()
    assert ends(process)


def number_or_rest(array: Any) -> float:
    """Ends for the first array only: a pool may wait for ever, with or without this module, when a worker is ended that writes a result."""
    if array[0] != 0:
        time.sleep(10 * PATIENCE)
    return float(array[0])


def leave_a_pool() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert next(pool.imap_unordered(number_or_rest, (np.full(LARGE, number) for number in range(200)))) == 0


def test_what_a_pool_has_not_done_when_it_is_left_is_given_up() -> None:
    leave_a_pool()
    assert cw_multiprocessing.outstanding() == 0


@ends_alone
def test_a_process_that_has_left_a_pool_ends(method: str) -> None:
    process = multiprocessing.get_context(method).Process(target=leave_a_pool)
    process.start()
    assert ends(process)


def end_of_worker(_: Any) -> None:
    os._exit(1)


def test_what_a_broken_executor_has_not_done_is_given_up() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
        with pytest.raises(BrokenProcessPool):  # already `submit`, or the result
            for future in [executor.submit(end_of_worker, np.full(LARGE, 1.0)) for _ in range(20)]:
                future.result(PATIENCE)
    assert cw_multiprocessing.outstanding() == 0


def send_and_end_when_told(give: Any, is_closed: Any) -> None:
    give.send(np.ones(LARGE))
    assert is_closed.wait(PATIENCE)


def test_what_was_read_as_bytes_is_waited_for_though_its_connection_is_closed() -> None:
    context = multiprocessing.get_context("spawn")
    (take, give), is_closed = context.Pipe(False), context.Event()
    process = context.Process(target=send_and_end_when_told, args=(give, is_closed))
    process.start()
    message = take.recv_bytes()
    take.close()
    is_closed.set()
    process.join(1)  # which it must not do yet
    assert process.exitcode is None and pickle.loads(message).sum() == LARGE
    give.close()
    assert ends(process)


def test_what_the_program_gives_up_is_gone_and_later_arrays_go_as_ever() -> None:
    take, give = multiprocessing.Pipe(duplex=False)
    other, queue = multiprocessing.Pipe(), multiprocessing.SimpleQueue()
    for send in [give.send, other[0].send, queue.put]:
        send(np.ones(LARGE))
    assert cw_multiprocessing.outstanding() == 3
    cw_multiprocessing.give_up(give)
    cw_multiprocessing.give_up(queue)
    assert cw_multiprocessing.outstanding() == 1
    with pytest.raises(cw.Withdrawn, match="given it up"):
        take.recv()
    give.send(np.ones(LARGE))
    assert take.recv().sum() == other[1].recv().sum() == LARGE
    assert settled()


def received_when_told(take: Any, orders: Any, answers: Any) -> None:
    assert orders.poll(PATIENCE)
    answers.send(float(take.recv().sum()))


def test_a_process_whose_folder_was_removed_is_received_from(peer: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    program = peer(f"""
import os
os.environ["CAUSEWAY_DIR"] = {str(folder)!r}
import multiprocessing, shutil
import causeway_ipc.multiprocessing
causeway_ipc.multiprocessing.install()
context = multiprocessing.get_context("spawn")
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_readers import received_when_told
(take, give), (hear, order), (answers, answer) = (context.Pipe(False) for _ in range(3))
process = context.Process(target=received_when_told, args=(take, hear, answer))
process.start()
give.send(np.ones(30_000))
shutil.rmtree({str(folder)!r})
order.send(None)
print(answers.poll(30) and answers.recv())
process.join()
""")
    assert program.hear() == "30000.0"
    assert program.end() == 0
    shutil.rmtree(folder, ignore_errors=True)
