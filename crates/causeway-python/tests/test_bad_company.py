"""What others do to it: processes killed at any moment, system calls denied, and use without end. `--long` is for the
numbers that a release is judged by; without it, few of each."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import causeway_ipc as cw
import pytest

KILLS = Path(__file__).with_name("kills.py")


@pytest.mark.parametrize("whom", ["consumers", "producers"])
def test_killed_processes_leave_nothing_behind(whom: str, is_long: bool, tmp_path: Path) -> None:
    count = 1000 if is_long else 15
    environment = os.environ | {"CAUSEWAY_DIR": str(tmp_path)}
    tmp_path.chmod(0o700)
    command = [sys.executable, str(KILLS), whom, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} {whom} killed\n" in done.stdout


# ptrace, process_vm_readv, process_vm_writev, pidfd_getfd
DENIED = {"x86_64": (0xC000003E, [101, 310, 311, 438]), "aarch64": (0xC00000B7, [117, 270, 271, 438])}

FILTER = """
import ctypes, multiprocessing.connection, struct
def deny(architecture, numbers):
    # Loads the architecture, then the number; EPERM for each of these, else all is allowed.
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, architecture), (0x06, 0, 0, 0x7FFF0000), (0x20, 0, 0, 0)]
    for number in numbers:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
    program.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    said = Program(len(program), ctypes.addressof(code))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(said), 0, 0):
        sys.exit(77)
    for number in numbers:
        assert libc.syscall(number, -1, -1, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 1
deny(int(sys.argv[1]), eval(sys.argv[2]))
"""


@pytest.mark.skipif(platform.machine() not in DENIED, reason="the numbers of the system calls are not known here")
def test_nothing_needs_what_containers_deny(peer: Any) -> None:
    arguments = [str(part) for part in DENIED[platform.machine()]]
    sharer = peer(FILTER + """
array, event, channel = cw.empty(1000, "int32"), cw.Event(), cw.Channel()
array[:] = 3
exports = [cw.share(array), cw.share(event), cw.share_many({"a": array[10:], "b": np.ones(3)})]
print(*(export.ticket for export in exports), channel.ticket)
channel.send(np.arange(5))
channel.send(cw.empty(1 << 20))
sys.stdin.readline()
event.record()
print(array[0].item())
sys.stdin.read()
""", *arguments)  # fmt: skip
    tickets = sharer.hear()
    opener = peer(FILTER + """
array, event, many, receiver = (cw.open(ticket) for ticket in sys.argv[3:])
array[0] = 8
print(array[1].item(), many["b"].tolist(), receiver.receive().tolist(), receiver.receive().shape)
sys.stdin.readline()
event.synchronize(10)
print(event.query())
""", *arguments, *tickets.split())  # fmt: skip
    assert opener.hear() == "3 [1.0, 1.0, 1.0] [0, 1, 2, 3, 4] (1048576,)"
    sharer.tell("record")
    assert sharer.hear() == "8"
    opener.tell("wait")
    assert opener.hear() == "True"


def test_no_shared_memory_has_the_number_of_a_closed_standard_stream(peer: Any) -> None:
    ticket = cw.share(kept := cw.empty(1 << 20, "uint8"))
    child = peer("""
import os
for number in (0, 2):
    os.close(number)
kept = cw.empty(1 << 20, "uint8"), cw.open(sys.argv[1])
print(*(os.path.exists(f"/proc/self/fd/{number}") and "memfd" in os.readlink(f"/proc/self/fd/{number}") for number in (0, 2)))
""", ticket.ticket)
    assert child.hear() == "False False"
    del kept


def test_shares_and_opens_without_end_leave_nothing(peer: Any, is_long: bool) -> None:
    count = 100_000 if is_long else 2_000
    sharer = peer("""
array, channel = cw.empty(1000, "int64"), cw.Channel()
export = cw.share(array)
print(export.ticket, channel.ticket)
while True:
    channel.send(array)
    channel.send({"a": cw.empty(20_000)})
""")
    code = f"""
import gc, os, tracemalloc
array, receiver = (cw.open(ticket) for ticket in sys.argv[1:3])
source, own, event = np.zeros(100), cw.empty(1000), cw.Event()
def times(count):
    for number in range(count):
        new = cw.empty(1000, "int32")
        with cw.share(new) as export, cw.share(event) as recorded:
            np.from_dlpack(cw.open(export.ticket))[0] = 1
            cw.open(recorded).query()
        cw.share_many({{"a": own[::2], "b": source}}).close()
        np.asarray(cw.open(sys.argv[1]))
        receiver.receive()
def state():
    gc.collect()
    resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
times(1000)
tracemalloc.start()
times(100)
before, traced = state(), tracemalloc.get_traced_memory()[0]
times({count})
after, grown = state(), tracemalloc.get_traced_memory()[0] - traced
print(after[0] - before[0], after[1] - before[1], after[2] - before[2], grown)
"""
    other = peer(code, *sharer.hear().split())
    line = other._lines.get(timeout=1800)
    resident, descriptors, threads, traced = (int(number) for number in line.split())
    print(f"{count} times: {resident} bytes resident more, {descriptors} descriptors, {threads} threads, {traced} bytes of Python's")
    # Python's own tables grow by leaps of about a megabyte.
    assert resident < 4 << 20 and descriptors <= 2 and threads <= 1 and traced < 2 << 20


def test_signals_at_ten_thousand_a_second_fail_nothing(peer: Any) -> None:
    sharer = peer("""
array, channel, event = cw.array(np.arange(1 << 18)), cw.Channel(), cw.Event()
exports = [cw.share(array), cw.share(event)]
print(*(export.ticket for export in exports), channel.ticket)
number = 0
while True:
    message = cw.empty(200_000 if number % 5 == 0 else 100, "int64")
    message[:] = number
    event.record()
    channel.send(message)
    number += 1
""")
    other = peer("""
import signal
signals = 0
def count(*_):
    global signals
    signals += 1
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
ticket, recorded, channel = sys.argv[1:]
receiver, event = cw.open(channel), cw.open(recorded)
right = 0
while right < 300 or signals < 1000:
    opened, message = cw.open(ticket), receiver.receive(timeout=30).numpy()
    event.synchronize(30)
    assert opened[3].item() == 3 and message[0] == message[-1]
    del opened
    right += 1
print("right")
""", *sharer.hear().split())  # fmt: skip
    assert other.hear() == "right"
