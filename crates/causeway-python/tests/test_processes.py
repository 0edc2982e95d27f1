"""Across processes: one memory, and what becomes of it when either side dies."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import causeway_ipc as cw
import numpy as np
import pytest
from conftest import PATIENCE, Peer

OPEN_AND_WRITE = """
opened = cw.open(sys.argv[1])
view = np.asarray(opened)
print(view.dtype, *view.ravel())
view[0, 0] = 99
print("written")
sys.stdin.read()
"""
SHARE_AND_STAY = """
array = cw.empty((1000,), "int64")
array[:] = np.arange(1000)
export = cw.share(array)
print(export.ticket)
for line in sys.stdin:
    if line == "close\\n":
        export.close()
    if line == "read\\n":
        print(array.numpy()[0])
    print("done")
"""


def test_two_processes_have_one_memory(peer: type[Peer]) -> None:
    shared = cw.empty((4, 4), "float32")
    shared[:] = np.arange(16).reshape(4, 4)
    with cw.share(shared[1:3, ::2]) as export:
        other = peer(OPEN_AND_WRITE, export.ticket)
        assert other.hear() == "float32 4.0 6.0 8.0 10.0"
        assert other.hear() == "written"
    assert np.asarray(shared)[1, 0] == 99
    assert other.end() == 0


def test_what_was_opened_outlives_an_exporter_that_is_killed(peer: type[Peer]) -> None:
    other = peer(SHARE_AND_STAY)
    ticket = other.hear()
    opened = cw.open(ticket)
    other.kill()
    view = np.asarray(opened)
    np.testing.assert_array_equal(view, np.arange(1000))
    view[:] = 5
    with pytest.raises(cw.ExporterGone):
        cw.open(ticket)
    assert view.sum() == 5000


def test_a_withdrawn_ticket_is_refused_elsewhere(peer: type[Peer]) -> None:
    other = peer(SHARE_AND_STAY)
    ticket = other.hear()
    opened = cw.open(ticket)
    other.tell("close")
    assert other.hear() == "done"
    with pytest.raises(cw.Withdrawn):
        cw.open(ticket)
    np.asarray(opened)[0] = 31
    other.tell("read")
    assert other.hear() == "31"


def test_an_importer_that_is_killed_leaves_the_exporter_alone(peer: type[Peer]) -> None:
    for _ in range(5):
        shared = cw.empty((2, 2), "float32")
        shared[:] = 1
        with cw.share(shared) as export:
            other = peer(OPEN_AND_WRITE, export.ticket)
            other.hear()
            other.hear()
            other.kill()
            assert np.asarray(shared)[0, 0] == 99
            assert np.asarray(cw.open(export))[1, 1] == 1


def test_what_was_opened_can_be_sent_on(peer: type[Peer]) -> None:
    other = peer(SHARE_AND_STAY)
    opened = cw.open(other.hear())
    with cw.share(opened[10:20:3]) as again:
        third = peer("print(*np.asarray(cw.open(sys.argv[1])))", again.ticket)
        assert third.hear() == "10 13 16 19"
    # Its life is the first process's to decide.
    assert np.asarray(cw.open(again.ticket))[0] == 10


def test_a_damaged_ticket_of_the_crate_is_refused() -> None:
    with pytest.raises(cw.InvalidTicket):
        cw.open("cw1-mem-0000")


def test_a_forked_child_has_its_own_and_is_told_what_is_its_parents(peer: type[Peer]) -> None:
    code = """
import os
import time
array = cw.empty(4, "int32"); array[:] = 3
export = cw.share(array)
if os.fork() == 0:
    own = cw.empty(2, "int8"); own[:] = 1
    said = [int(cw.open(cw.share(own)).numpy().sum()), int(cw.open(export.ticket).numpy()[0])]
    try:
        cw.share(array)
    except cw.Forked as error:
        said.append("pass the ticket (a str)" in str(error))
    print(*said, flush=True)
    os._exit(0)
os.wait()
print(int(cw.open(cw.share(array)).numpy()[3]))
"""
    other = peer(code)
    assert other.hear() == "2 3 True"
    assert other.hear() == "3"
    assert other.end() == 0


def test_what_was_inherited_by_a_fork_is_refused_wherever_it_is_asked_for(peer: type[Peer]) -> None:
    other = peer("""
import os
array = cw.empty(4, "int32"); array[:] = 3
if os.fork() == 0:
    said = []
    for use in [np.asarray, np.from_dlpack, cw.Array.tolist, cw.Array.memoryview, lambda array: array[0].item(), lambda array: array.ptr]:
        try:
            use(array)
        except cw.Forked:
            said.append(True)
    print(*said, array.shape, flush=True)
    os._exit(0)
os.wait()
""")
    assert other.hear() == "True " * 6 + "(4,)"


def test_a_fork_beside_threads_that_work_is_a_process_that_works(peer: type[Peer]) -> None:
    other = peer("""
import os, threading
over = False
def work():
    while not over:
        with cw.share(cw.empty(10)) as export:
            cw.open(export.ticket)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        with cw.share(cw.empty(10)) as export:
            os._exit(cw.open(export.ticket).shape != (10,))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
over = True
for thread in threads:
    thread.join()
print("done")
""")
    assert other.hear() == "done"


@pytest.mark.parametrize("lock", ["one of another library", "the one of imports"])
def test_a_fork_that_waits_for_a_lock_does_not_hold_up_the_thread_that_has_it(lock: str) -> None:
    code = """
import _imp, os, sys, threading
lock, has_it, forks = threading.Lock(), threading.Event(), threading.Event()
is_others = sys.argv[1] == "one of another library"
acquire, release = (lock.acquire, lock.release) if is_others else (_imp.acquire_lock, _imp.release_lock)
def before():
    forks.set()
    if is_others:
        acquire()
def after():
    if is_others:
        release()
os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)  # before the module's own, which is then called first
import causeway_ipc as cw
def work():
    acquire()
    has_it.set()
    forks.wait()
    cw.share(cw.empty(10)).close()
    release()
thread = threading.Thread(target=work)
thread.start()
has_it.wait()
pid = os.fork()
if pid == 0:
    with cw.share(cw.empty(10)) as export:
        os._exit(cw.open(export.ticket).shape != (10,))
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    done = subprocess.run([sys.executable, "-c", code, lock], timeout=PATIENCE, check=False)
    assert done.returncode == 0


def test_a_handler_that_runs_while_a_fork_is_prepared_shares_and_forks() -> None:
    code = """
import os, signal

def shared():
    with cw.share(cw.empty(10)) as export:
        return cw.open(export.ticket).shape == (10,)
def forked():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if shared() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
handled = []
def handle(*_):
    handled.append(shared() and (len(handled) > 2 or forked()))
signal.signal(signal.SIGUSR1, handle)
is_first = True
def interrupt():
    global is_first
    if is_first:
        is_first = False
        signal.raise_signal(signal.SIGUSR1)
os.register_at_fork(before=interrupt)  # before the module's own, which is then called first
import causeway_ipc as cw
assert shared() and forked() and shared() and forked()
assert handled == [True], handled
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "work",
    ["cw.empty(100)", "cw.open(export.ticket)", "cw.share(export.array).ticket", "receiver.receive(timeout=60)", "event.synchronize(60)"],
)
def test_a_process_ends_while_its_threads_are_at_work(peer: type[Peer], work: str) -> None:
    other = peer(f"""
import threading
export, channel, event = cw.share(np.ones(1 << 18)), cw.Channel(), cw.Event()
receiver, began = cw.open(channel.ticket), threading.Semaphore(0)
def run():
    while True:
        began.release()
        {work}
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
    began.acquire()
""")
    assert other.end() == 0


def test_what_a_queue_of_multiprocessing_still_holds_is_sent_before_the_end(peer: type[Peer]) -> None:
    code = """
import multiprocessing
{}
import causeway_ipc.multiprocessing
causeway_ipc.multiprocessing.install()
def receive(queue, number):
    print(number, *(int(queue.get(timeout=30)[0]) for _ in range(5)), flush=True)
if __name__ == "__main__":
    queue = multiprocessing.get_context("fork").Queue()
    import os
    if os.fork() == 0:
        receive(queue, 7)
        os._exit(0)
    for number in range(5):
        queue.put(cw.array(np.full(100_000, number)).numpy())
"""
    for first in ["", "import multiprocessing.util, atexit; atexit.register(int)"]:
        other = peer(code.format(first))
        assert other.hear() == "7 0 1 2 3 4"
        assert other.end() == 0


def test_subinterpreters_are_refused(peer: type[Peer]) -> None:
    other = peer("""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create()
try:
    print(interpreters.run_string(one, "import causeway_ipc"))
except Exception as error:
    print(error)
sys.stdout.flush()
""")
    assert "does not support loading in subinterpreters" in other.hear()
    assert other.end() == 0


def test_memory_of_what_was_opened_is_given_back(peer: type[Peer]) -> None:
    shared = cw.empty(64 << 20, "uint8")
    shared[:] = 1
    with cw.share(shared) as export:
        code = """
import gc
def mapped():
    return sum(int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith("Rss"))
before = mapped()
opened = cw.open(sys.argv[1])
total = int(np.asarray(opened).sum())
during = mapped()
del opened
gc.collect()
import time
deadline = time.monotonic() + 20
while during - (after := mapped()) <= 60_000 and time.monotonic() < deadline:
    time.sleep(0.01)  # it stays for a moment
print(total, during - before > 60_000, during - after > 60_000)
"""
        assert peer(code, export.ticket).hear() == f"{64 << 20} True True"


def test_a_ticket_expires_when_its_exporter_said_and_what_is_open_stays(peer: type[Peer]) -> None:
    other = peer("""
array = cw.empty(4, "int32")
array[:] = 8
kept, brief, dropped = cw.share(array), cw.share(array, expires=0.5), cw.share_many({"a": array}, expires=3600)
del dropped
print(kept.ticket, brief.ticket)
sys.stdin.read()
""")
    kept, brief = other.hear().split()
    opened = cw.open(brief)
    deadline = time.monotonic() + 20
    with pytest.raises(cw.Withdrawn):
        while time.monotonic() < deadline:
            cw.open(brief)
            time.sleep(0.01)
    assert opened.tolist() == cw.open(kept).tolist() == [8] * 4
    with pytest.raises(cw.InvalidUse):
        cw.share(opened, expires=-1.0)


def test_a_dropped_export_is_withdrawn_before_it_expires() -> None:
    shared = cw.empty(4, "int32")
    ticket = cw.share(shared, expires=3600.0).ticket
    gc.collect()
    with pytest.raises(cw.Withdrawn):
        cw.open(ticket)
