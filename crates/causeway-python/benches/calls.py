"""What `share` and `open` of what is open cost in Python beside the same calls of the Rust crate, in turn: medians of blocks.

    cargo build --release --example calls -p causeway
    python calls.py target/release/examples/calls [CALLS [DEVICE]]
"""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import time
from typing import Any

import causeway_ipc

BLOCKS = 15


def exporter(pipe: Any, device: str) -> None:
    array = causeway_ipc.empty(4096, "uint8", device)
    with causeway_ipc.share(array) as export:
        pipe.send(export.ticket)
        pipe.recv()


def main() -> None:
    rust, calls = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    backend = [] if device == "cpu" else [device]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    other = subprocess.Popen([rust, "export", *backend], **pipes)
    measurer = subprocess.Popen([rust, "measure", *backend, other.stdout.readline().strip()], **pipes)

    def in_rust(what: str) -> float:
        measurer.stdin.write(f"{what} {calls}\n")
        return float(measurer.stdout.readline()) / 1000

    pipe, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=exporter, args=(theirs, device), daemon=True)
    process.start()
    ticket = pipe.recv()
    array, opened = causeway_ipc.empty(4096, "uint8", device), causeway_ipc.open(ticket)
    kept = causeway_ipc.share(array)

    def in_python(call: Any) -> float:
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - begun) / calls * 1e6

    ways = {
        "share and close, Rust": lambda: in_rust("share"),
        "share and close, Python": lambda: in_python(lambda: causeway_ipc.share(array).close()),
        "open, Rust": lambda: in_rust("open"),
        "open from text, Rust": lambda: in_rust("text"),
        "open, Python": lambda: in_python(lambda: causeway_ipc.open(ticket)),
        "a call of Python that does nothing": lambda: in_python(lambda: None),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(BLOCKS):
        for name, way in ways.items():
            took[name].append(way())
    medians = {name: statistics.median(times) for name, times in took.items()}
    for name, median in medians.items():
        print(f"{name}: {median:.2f} us ({min(took[name]):.2f} to {max(took[name]):.2f})")
    for what, rust_way in [("share and close", "share and close, Rust"), ("open", "open, Rust"), ("open", "open from text, Rust")]:
        above = [ours - its for ours, its in zip(took[f"{what}, Python"], took[rust_way])]
        median = statistics.median(above)
        verdict = "PASS" if median <= 2 else "MISS"
        print(f"{verdict} {what} on {device}, Python above {rust_way!r}: {median:.2f} us (limit 2)")
    del opened, kept
    pipe.send(None)
    process.join(10)
    for one in (measurer, other):
        one.stdin.close()
        one.wait(10)


if __name__ == "__main__":
    main()
