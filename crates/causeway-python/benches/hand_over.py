"""A 4 KiB array to another process and back: a pair of channels, beside PyTorch's `SimpleQueue` and iceoryx2's publisher and
subscriber, in turn. Prints medians, their ratios, and one way against itself as control; what is not installed is left out.

    python hand_over.py [ROUNDS]
"""

from __future__ import annotations

import ctypes
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import causeway_ipc
import numpy as np

BYTES, BLOCKS = 4096, 7
Trip = Callable[[], None]


def channels(pipe: Any, first: bool) -> Trip:
    """A new array each time; the other side sends back what it received."""
    ours = causeway_ipc.Channel(capacity=4)
    pipe.send(ours.ticket)
    theirs = causeway_ipc.open(pipe.recv())

    def there_and_back() -> None:
        array = causeway_ipc.empty(BYTES, "uint8")
        array.memoryview()[0] = 1
        ours.send(array)
        theirs.receive()

    return there_and_back if first else lambda: ours.send(theirs.receive())


def kept(pipe: Any, first: bool) -> Trip:
    """One array that both keep, and tickets of it: what a ring of buffers costs."""
    array = causeway_ipc.empty(BYTES, "uint8")
    ours = causeway_ipc.Channel(capacity=4)
    pipe.send(ours.ticket)
    theirs = causeway_ipc.open(pipe.recv())

    def there_and_back() -> None:
        ours.send(array)
        theirs.receive()

    return there_and_back if first else lambda: (theirs.receive(), ours.send(array))[1]


def torch_queue(pipe: Any, first: bool) -> Trip:
    import torch

    queues = pipe.queues

    def there_and_back() -> None:
        queues[0].put(torch.ones(BYTES, dtype=torch.uint8))
        queues[1].get()

    return there_and_back if first else lambda: queues[1].put(queues[0].get())


def iceoryx(pipe: Any, first: bool) -> Trip:
    import iceoryx2

    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)

    def service(name: str) -> Any:
        named = node.service_builder(iceoryx2.ServiceName.new(f"causeway bench {name}"))
        return named.publish_subscribe(iceoryx2.Slice[ctypes.c_uint8]).open_or_create()

    names = ["there", "back"] if first else ["back", "there"]
    publisher = service(names[0]).publisher_builder().initial_max_slice_len(BYTES).create()
    subscriber = service(names[1]).subscriber_builder().create()
    pipe.send(None)
    pipe.recv()  # both are there
    filler = np.ones(BYTES, "uint8")

    def send() -> None:
        sample = publisher.loan_slice_uninit(BYTES)
        ctypes.memmove(sample.payload_ptr, filler.ctypes.data, BYTES)
        sample.assume_init().send()

    def receive() -> None:
        while subscriber.receive() is None:
            time.sleep(0)

    return (lambda: (send(), receive())[1]) if first else (lambda: (receive(), send())[1])


WAYS = {"channel": channels, "kept array": kept, "torch SimpleQueue": torch_queue, "iceoryx2": iceoryx}
NEEDS = {"torch SimpleQueue": "torch", "iceoryx2": "iceoryx2"}


class Pipe:
    """A connection, which hands over PyTorch's queues as a process is started with them."""

    def __init__(self, connection: Any, queues: Any) -> None:
        self.send, self.recv, self.queues = connection.send, connection.recv, queues


def other_side(way: str, connection: Any, queues: Any, trips: int) -> None:
    trip = WAYS[way](Pipe(connection, queues), False)
    for _ in range(trips):
        trip()
    connection.recv()


def measure(way: str, rounds: int) -> list[float]:
    """Seconds for each trip, by blocks; each block starts its own process."""
    context = multiprocessing.get_context("spawn")
    queues = None
    if way.startswith("torch"):
        import torch.multiprocessing

        queues = [torch.multiprocessing.get_context("spawn").SimpleQueue() for _ in range(2)]
    ours, theirs = context.Pipe()
    warm = rounds // 5
    process = context.Process(target=other_side, args=(way, theirs, queues, rounds + warm))
    process.start()
    took = []
    trip = WAYS[way](Pipe(ours, queues), True)
    for number in range(rounds + warm):
        begun = time.perf_counter()
        trip()
        if number >= warm:
            took.append(time.perf_counter() - begun)
    ours.send(None)
    process.join()
    return took


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    ways = list(WAYS)
    for way, library in NEEDS.items():
        try:
            __import__(library)
        except ImportError:
            print(f"{way}: not installed")
            ways.remove(way)
    medians: dict[str, list[float]] = {way: [] for way in [*ways, "control"]}
    for _ in range(BLOCKS):
        for way in medians:
            medians[way].append(statistics.median(measure("channel" if way == "control" else way, rounds)))
    found = {way: statistics.median(blocks) for way, blocks in medians.items()}
    for way, seconds in found.items():
        ratios = ", ".join(f"{base} {found[base] / seconds:.3f}" for base in ["channel", "kept array"])
        print(f"{way:18} {seconds * 1e6:8.1f} us; times of it: {ratios}")


if __name__ == "__main__":
    main()
