"""Many tensors of a model to another process: `share_many`, one ticket for all, beside PyTorch's own way, one message each. In turn; medians.

    python many.py [TENSORS [BYTES]]

The receiver has a view of each tensor at the end. PyTorch sends each by a descriptor, of which a process may have only so many
(`ulimit -n`), so its receiver lets go of each before the next; ours keeps all of them.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from typing import Any

import causeway_ipc
import torch
import torch.multiprocessing

ROUNDS = 5


def receiver(pipe: Any, count: int) -> None:
    torch.set_num_threads(1)
    while (way := pipe.recv()) is not None:
        if way == "ours":
            opened = {name: array.torch() for name, array in causeway_ipc.open(pipe.recv()).items()}
            assert len(opened) == count
            pipe.send(float(opened[str(count - 1)][0]))
            del opened
        else:
            for _ in range(count):
                last = pipe.recv()
            pipe.send(float(last[0]))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 115 * 170
    length = int(sys.argv[2]) // 4 if len(sys.argv) > 2 else 1024
    torch.set_num_threads(1)
    context = torch.multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=receiver, args=(theirs, count), daemon=True)
    process.start()
    # As a model loaded by a program that shares it, and one that PyTorch has put into its shared memory already.
    ours = {str(number): torch.full((length,), float(number)) for number in range(count)}
    placed = causeway_ipc.share_many(ours)
    in_place = {name: array.torch() for name, array in causeway_ipc.open(placed).items()}
    took: dict[str, list[float]] = {"ours, copied": [], "ours, in place": [], "PyTorch, one by one": []}
    for _ in range(ROUNDS):
        for name, tensors in (("ours, copied", ours), ("ours, in place", in_place)):
            begun = time.perf_counter()
            with causeway_ipc.share_many(tensors) as export:
                pipe.send("ours")
                pipe.send(export.ticket)
                assert pipe.recv() == float(count - 1)
            took[name].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        pipe.send("PyTorch")
        for tensor in ours.values():
            pipe.send(tensor.clone() if tensor.is_shared() else tensor)
        assert pipe.recv() == float(count - 1)
        took["PyTorch, one by one"].append(time.perf_counter() - begun)
        # What it has sent lies in memory of its own from then on: as at first for the next round.
        ours = {name: tensor.clone() for name, tensor in ours.items()}
    medians = {name: statistics.median(times) for name, times in took.items()}
    for name, median in medians.items():
        print(f"{count} tensors of {4 * length} bytes, {name}: {median * 1e3:.1f} ms")
    for name in ("ours, copied", "ours, in place"):
        print(f"PyTorch takes {medians['PyTorch, one by one'] / medians[name]:.1f} times as long as {name}")
    pipe.send(None)
    process.join(10)


if __name__ == "__main__":
    main()
