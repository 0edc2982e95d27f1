"""`python -m causeway_ipc demo`: two processes share an array, and hand others over; `… sycl -- PROGRAM` runs a program of
SYCL on Causeway's adapters."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import subprocess
import sys
import time

import causeway_ipc
from causeway_ipc import _sycl

MEBIBYTES = 64
HANDED_OVER = 1000


def digest(array: causeway_ipc.Array) -> str:
    return hashlib.blake2b(array.memoryview()).hexdigest()


def demo() -> None:
    """Shares memory with a second interpreter, which verifies and changes it, and sends arrays through a channel."""
    for name, maker in causeway_ipc.devices():
        print(f"device {name}: {maker}")
    array = causeway_ipc.empty(MEBIBYTES << 20, "uint8")
    array.memoryview()[:] = bytes(range(256)) * (MEBIBYTES << 12)
    expected = digest(array)
    with causeway_ipc.share(array) as export, causeway_ipc.Channel() as channel, contextlib.ExitStack() as ends:
        command = [sys.executable, "-m", "causeway_ipc", "peer", export.ticket, channel.ticket]
        peer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        ends.callback(peer.kill)  # where this process ends before it
        assert peer.stdout is not None
        opened, same, took = peer.stdout.readline().split()
        if opened != "opened" or same != expected:
            sys.exit("the other process saw other bytes")
        print(f"{MEBIBYTES} MiB: opened by process {peer.pid} in {float(took) * 1e6:.0f} us, every byte verified by hash")
        peer.stdout.readline()
        if array.memoryview()[0] != 255:
            sys.exit("what the other process wrote was not seen")
        print("a byte that it wrote is seen here")
        begun = time.perf_counter()
        for number in range(HANDED_OVER):
            message = causeway_ipc.empty(1024, "uint32")
            message.memoryview()[0] = number
            channel.send(message)
        channel.close()
        each = (time.perf_counter() - begun) / HANDED_OVER
        if int(peer.stdout.readline()) != sum(range(HANDED_OVER)):
            sys.exit("what came through the channel was not what was sent")
        print(f"{HANDED_OVER} arrays of 4 KiB handed over, in order, {each * 1e6:.0f} us each")
        if peer.wait(10) != 0:
            sys.exit("the other process failed")


def peer(ticket: str, channel: str) -> None:
    begun = time.perf_counter()
    array = causeway_ipc.open(ticket)
    took = time.perf_counter() - begun
    print("opened", digest(array), took, flush=True)
    array.memoryview()[0] = 255
    print("written", flush=True)
    print(sum(message.memoryview()[0] for message in causeway_ipc.open(channel)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m causeway_ipc", description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("demo", help="shares an array with a second process, and verifies every byte")
    tasks.add_parser("devices", help="lists the devices whose memory can be shared")
    sycl = tasks.add_parser("sycl", help="runs a program of SYCL on Causeway's adapters: sycl [--on DEVICE] -- PROGRAM …")
    sycl.add_argument("--on", action="append", metavar="DEVICE", help="cpu (as without it), cuda or level_zero; may be repeated")
    sycl.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM …", help="and all that follows is its own")
    other = tasks.add_parser("peer")
    other.add_argument("ticket")
    other.add_argument("channel")
    arguments = parser.parse_args()
    if arguments.task == "demo":
        demo()
    elif arguments.task == "devices":
        print("\n".join(f"{name}\t{maker}" for name, maker in causeway_ipc.devices()))
    elif arguments.task == "sycl":
        program = arguments.program[arguments.program[:1] == ["--"] :]
        if not program or not program[0]:
            sycl.error("name the program that is to run")
        try:
            _sycl.run(arguments.on or [], program)
        except causeway_ipc.CausewayError as error:
            sys.exit(str(error))
    else:
        peer(arguments.ticket, arguments.channel)


def main_or_sentence() -> None:
    """Says in a sentence that nobody takes what is printed."""
    if sys.stdout is None:
        sys.exit("standard output is closed: give it one, or /dev/null")
    try:
        main()
        sys.stdout.flush()
    except causeway_ipc.CausewayError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter writes the rest there
        sys.exit(1 if isinstance(error, BrokenPipeError) else f"the output could not be written: {error.strerror}")


if __name__ == "__main__":
    main_or_sentence()
