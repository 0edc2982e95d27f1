"""Kills consumers, or producers, of arrays and channels again and again, each at a moment of its own.

    python kills.py consumers|producers COUNT

Run by test_bad_company.py. Says what this process had open and resident after a tenth of them, and at the end.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import sys
import time
from typing import Any

import causeway_ipc as cw
import numpy as np

PATIENCE = 30.0
SMALL, LARGE = 1000, 40_000


def consumer(pipe: Any) -> None:
    memory, ticket = pipe.recv()
    held = [cw.open(memory)]
    receiver = cw.open(ticket)
    pipe.send("ready")
    for array in receiver:
        held.append(array)
        del held[1:-3]


def producer(pipe: Any) -> None:
    array = cw.empty(LARGE, "int64")
    array[:] = np.arange(LARGE)
    channel = cw.Channel(capacity=4)
    export = cw.share(array)
    pipe.send((export.ticket, channel.ticket))
    number = 0
    while True:
        message = cw.empty(LARGE if number % 3 == 0 else SMALL, "int64")
        message[:] = number
        channel.send(message)
        number += 1


def kill_once(process: Any) -> None:
    if not getattr(process, "was_killed", False):
        process.was_killed = True
        os.kill(process.pid, signal.SIGKILL)


def kill_a_consumer(process: Any, pipe: Any) -> None:
    array = cw.empty(LARGE, "int64")
    array[:] = 7
    with cw.share(array) as export:
        channel = cw.Channel(capacity=4)
        pipe.send((export.ticket, channel.ticket))
        assert pipe.poll(PATIENCE) and pipe.recv() == "ready"
        end = time.monotonic() + random.random() * 0.01
        number = 0
        while True:
            if time.monotonic() > end:
                kill_once(process)
            try:
                channel.send(np.full(LARGE if number % 3 == 0 else SMALL, number), timeout=PATIENCE)
            except cw.ExporterGone:
                break
            number += 1
        try:
            channel.close(timeout=PATIENCE)
        except cw.ExporterGone:
            pass
    assert (array.numpy() == 7).all()


def kill_a_producer(process: Any, pipe: Any) -> None:
    assert pipe.poll(PATIENCE)
    memory, ticket = pipe.recv()
    opened, receiver, held = cw.open(memory), cw.open(ticket), []
    end = time.monotonic() + random.random() * 0.01
    number = 0
    while True:
        if time.monotonic() > end:
            kill_once(process)
        try:
            array = receiver.receive(timeout=PATIENCE)
        except (cw.ExporterGone, cw.Withdrawn, cw.Freed):
            # Of a message that was put, the memory may be gone with its process.
            process.join(PATIENCE)
            break
        values = array.numpy()
        assert (values == number).all(), "another array's values"
        held.append(array)
        del held[:-3]
        number += 1
    receiver.close()
    assert (opened.numpy() == np.arange(LARGE)).all(), "what was opened stays"
    assert all((array.numpy() >= 0).all() for array in held)


def state() -> str:
    gc.collect()
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return f"{len(os.listdir('/proc/self/fd'))} {resident} {len(os.listdir(os.environ['CAUSEWAY_DIR']))}"


def main() -> None:
    random.seed(16)
    target, kill = {"consumers": (consumer, kill_a_consumer), "producers": (producer, kill_a_producer)}[sys.argv[1]]
    count = int(sys.argv[2])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["causeway_ipc", "numpy"])
    for number in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=[theirs])
        process.start()
        theirs.close()
        kill(process, ours)
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL, process.exitcode
        process.close()
        ours.close()
        if number == count // 10:
            print(state(), flush=True)
    print(state(), flush=True)


if __name__ == "__main__":
    main()
