"""Kills consumers, or producers, of arrays and channels again and again, each at a moment of its own.

    python kills.py consumers|producers COUNT [--device cuda] [--lanes 4] [--seconds 60]

Run by test_bad_company.py and test_cuda.py, and on GPUs by xtask/gpu/python.sh. Says after a tenth of them, and at the end, what this
process has open and resident, how many names are in CAUSEWAY_DIR, and how much of the device's memory is taken; fails where one of them has
grown. With `--lanes` as many are at work at the same time; with `--seconds` no more are begun after that.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import os
import random
import signal
import threading
import time
from multiprocessing import connection
from typing import Any

import causeway_ipc as cw
import numpy as np

PATIENCE = 60.0
SMALL, LARGE = 1000, 40_000


def filled(values: Any, device: str | None) -> cw.Array:
    return cw.array(values, device=device)


def read(array: cw.Array) -> Any:
    return np.from_dlpack(array, device="cpu")


def channel_on(device: str | None) -> cw.Channel:
    return cw.Channel(capacity=4, device=device)


def consumer(pipe: Any, device: str | None) -> None:
    memory, ticket = pipe.recv()
    held = [cw.open(memory)]
    receiver = cw.open(ticket)
    pipe.send("ready")
    for array in receiver:
        held.append(array)
        del held[1:-3]


def producer(pipe: Any, device: str | None) -> None:
    array = filled(np.arange(LARGE), device)
    channel = channel_on(device)
    export = cw.share(array)
    pipe.send((export.ticket, channel.ticket))
    number = 0
    while True:
        channel.send(filled(np.full(LARGE if number % 3 == 0 else SMALL, number), device))
        number += 1


class Killed:
    """A process that is killed once, and seen to end by that."""

    # Where one thread starts a process, `multiprocessing` looks after those of the others.
    _lock = threading.Lock()

    def __init__(self, context: Any, target: Any, device: str | None) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=target, args=[theirs, device])
        with self._lock:
            self.process.start()
        theirs.close()
        self._was_killed = False

    def receive(self) -> Any:
        assert self.pipe.poll(PATIENCE), "the other process says nothing"
        return self.pipe.recv()

    def kill(self) -> None:
        if not self._was_killed:
            self._was_killed = True
            os.kill(self.process.pid, signal.SIGKILL)

    def join(self) -> None:
        assert connection.wait([self.process.sentinel], PATIENCE)
        with self._lock:
            self.process.join(PATIENCE)

    def close(self) -> None:
        self.join()
        assert self.process.exitcode == -signal.SIGKILL, self.process.exitcode
        with self._lock:
            self.process.close()
        self.pipe.close()


def kill_a_consumer(other: Killed, device: str | None) -> None:
    array = filled(np.full(LARGE, 7), device)
    with cw.share(array) as export:
        channel = channel_on(device)
        other.pipe.send((export.ticket, channel.ticket))
        assert other.receive() == "ready"
        end = time.monotonic() + random.random() * 0.01
        number = 0
        while True:
            if time.monotonic() > end:
                other.kill()
            try:
                channel.send(filled(np.full(LARGE if number % 3 == 0 else SMALL, number), device), timeout=PATIENCE)
            except cw.ExporterGone:
                break
            number += 1
        try:
            channel.close(timeout=PATIENCE)
        except cw.ExporterGone:
            pass
    assert (read(array) == 7).all()


def kill_a_producer(other: Killed, device: str | None) -> None:
    memory, ticket = other.receive()
    opened, receiver, held = cw.open(memory), cw.open(ticket), []
    end = time.monotonic() + random.random() * 0.01
    number = 0
    while True:
        if time.monotonic() > end:
            other.kill()
        try:
            array = receiver.receive(timeout=PATIENCE)
        except (cw.ExporterGone, cw.Withdrawn, cw.Freed):
            # Of a message that was put, the memory may be gone with its process.
            other.join()
            break
        assert (read(array) == number).all(), "another array's values"
        held.append(array)
        del held[:-3]
        number += 1
    receiver.close()
    assert (read(opened) == np.arange(LARGE)).all(), "what was opened stays"
    assert all((read(array) >= 0).all() for array in held)


def free_memory(device: str | None) -> int:
    """Bytes of the device that nobody has."""
    if device is None:
        return 0
    cuda, number, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda.cuInit(0) == cuda.cuDeviceGet(ctypes.byref(number), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number) == cuda.cuCtxPushCurrent_v2(context) == 0
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == cuda.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
    return free.value


def state(device: str | None) -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    descriptors, names = len(os.listdir("/proc/self/fd")), len(os.listdir(os.environ["CAUSEWAY_DIR"]))
    return {"descriptors": descriptors, "bytes resident": resident, "names": names, "bytes of the device": -free_memory(device)}


GROWTH = {"descriptors": 3, "bytes resident": 8 << 20, "names": 6, "bytes of the device": 64 << 20}
"""What may be more at the end than early, for each lane."""
KEPT_BY_A_STREAM = 120
"""Descriptors of connections, two for each: a stream of a device keeps what events of 32 other processes and a few more are in, until it
is idle when it waits for those of another."""


def judge(early: dict[str, int], device: str | None, lanes: int) -> None:
    """Ends with a sentence if more is left than may be. A device's memory is back within a second."""
    most = {what: early[what] + by * lanes for what, by in GROWTH.items()}
    if device is not None:
        most["descriptors"] += KEPT_BY_A_STREAM
    deadline = time.monotonic() + 1
    while True:
        late = state(device)
        grown = {what: late[what] - early[what] for what in most if late[what] > most[what]}
        if not grown or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    print(late, flush=True)
    if grown:
        raise SystemExit(f"what is left has grown by {grown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("whom", choices=["consumers", "producers"])
    parser.add_argument("count", type=int)
    parser.add_argument("--device")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    random.seed(16)
    target, kill = {"consumers": (consumer, kill_a_consumer), "producers": (producer, kill_a_producer)}[given.whom]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["causeway_ipc", "numpy"])
    end = time.monotonic() + given.seconds
    failures: list[BaseException] = []

    def lane(numbers: list[int]) -> None:
        while numbers and not failures and time.monotonic() < end:
            try:
                numbers.pop()
            except IndexError:
                return
            try:
                other = Killed(context, target, given.device)
                kill(other, given.device)
                other.close()
            except BaseException as error:
                failures.append(error)

    def kill_so_many(count: int) -> int:
        """How many were killed."""
        numbers = list(range(count))
        lanes = [threading.Thread(target=lane, args=[numbers]) for _ in range(given.lanes)]
        for one in lanes:
            one.start()
        for one in lanes:
            one.join()
        if failures:
            raise failures[0]
        return count - len(numbers)

    first = kill_so_many(max(given.count // 10, 1))
    early = state(given.device)
    print(f"{first} {given.whom} killed: {early}", flush=True)
    print(f"{first + kill_so_many(given.count - first)} {given.whom} killed", flush=True)
    judge(early, given.device, given.lanes)


if __name__ == "__main__":
    main()
