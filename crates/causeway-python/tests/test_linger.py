"""Memory that was opened and closed stays for a moment, so that the next open finds it: for how long, for whom, and when not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest

DEVICES = ["cpu", *(name for name, _ in cw.devices() if name == "cuda:0")]
COUNT = 1 << 19
"""Elements of 4 bytes: 2 MiB, a mapping of its own."""
FOR_EVER = "3600"

LOOK = """
import ctypes, time
def is_on_device(at):
    cuda, context, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cuda.cuCtxPushCurrent_v2(context) == 0
    # CU_POINTER_ATTRIBUTE_BUFFER_ID, which what is mapped has
    return cuda.cuPointerGetAttribute(ctypes.byref(number), 7, ctypes.c_uint64(at)) == 0
def is_mapped(at):
    if IS_CUDA:
        return is_on_device(at)
    lines = (line.split() for line in open("/proc/self/maps"))
    shared = (line[0].split("-") for line in lines if line[4] != "0")  # of a file, which memfds are
    return any(int(start, 16) <= at < int(end, 16) for start, end in shared)
def goes(at):
    deadline = time.monotonic() + 30
    while is_mapped(at) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_mapped(at)
def fails(ticket):
    try:
        cw.open(ticket)
        return "opened"
    except cw.CausewayError as error:
        return type(error).__name__
def first(array):
    return np.from_dlpack(array, device="cpu")[0].item() if array.device != "cpu" else array[0].item()
IS_CUDA = False
def opened_and_closed(ticket):
    global IS_CUDA
    array = cw.open(ticket)
    IS_CUDA = array.device != "cpu"
    return array.ptr, first(array)
"""
SHARE = LOOK + """
array = cw.array(np.full(int(sys.argv[2]), 7, "int32"), device=sys.argv[1])
for line in sys.stdin:
    if line == "share\\n":
        export = cw.share(array)
        print(export.ticket)
    if line == "close\\n":
        export.close()
        print("closed")
"""


def shared(device: str, **how: Any) -> cw.Export:
    return cw.share(cw.array(np.full(COUNT, 7, "int32"), device=device, **how))


@pytest.fixture
def lingers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """For how many seconds memory stays in processes that are started from now on."""
    return lambda seconds: monkeypatch.setenv("CAUSEWAY_LINGER", seconds)


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_closed_is_there_for_the_next_open(peer: Any, lingers: Any, device: str) -> None:
    code = LOOK + "at, value = opened_and_closed(sys.argv[1])\nprint(value, is_mapped(at), opened_and_closed(sys.argv[1]) == (at, value))"
    with shared(device) as export:
        lingers(FOR_EVER)
        other = peer(code, export.ticket)
        assert other.hear() == "7 True True"
        assert other.end() == 0, "and the end of the process waits for none of it"
        lingers("0")
        assert peer(code, export.ticket).hear().startswith("7 False ")


@pytest.mark.parametrize("device", DEVICES)
def test_it_goes_back_by_itself(peer: Any, device: str) -> None:
    threads = "len([name for name in os.listdir('/proc/self/task') if 'linger' in open(f'/proc/self/task/{name}/comm').read()])"
    with shared(device) as export:
        other = peer(LOOK + f"""
import os
at, _ = opened_and_closed(sys.argv[1])
print(goes(at))
deadline = time.monotonic() + 30
while {threads} and time.monotonic() < deadline:
    time.sleep(0.01)
print({threads}, opened_and_closed(sys.argv[1])[1])
""", export.ticket)  # fmt: skip
        assert other.hear() == "True"
        assert other.hear() == "0 7", "the thread has ended, and another open is one as ever"


@pytest.mark.parametrize("device", DEVICES)
def test_another_ticket_for_the_same_memory_finds_it_and_the_withdrawn_one_does_not(peer: Any, lingers: Any, device: str) -> None:
    lingers(FOR_EVER)
    sharer = peer(SHARE, device, str(COUNT))
    sharer.tell("share")
    ticket = sharer.hear()
    other = peer(LOOK + """
at, _ = opened_and_closed(sys.argv[1])
print("ready")
sys.stdin.readline()
print(fails(sys.argv[1]), is_mapped(at))
print(opened_and_closed(sys.stdin.readline().strip()) == (at, 7))
""", ticket)  # fmt: skip
    assert other.hear() == "ready"
    sharer.tell("close")
    assert sharer.hear() == "closed"
    other.tell("look")
    assert other.hear() == "Withdrawn True"
    sharer.tell("share")
    other.tell(sharer.hear())
    assert other.hear() == "True"


@pytest.mark.parametrize("device", DEVICES)
def test_the_memory_of_a_killed_exporter_goes_at_once(peer: Any, lingers: Any, device: str) -> None:
    lingers(FOR_EVER)
    sharer = peer(SHARE, device, str(COUNT))
    sharer.tell("share")
    ticket = sharer.hear()
    other = peer(LOOK + "at, _ = opened_and_closed(sys.argv[1])\nprint(is_mapped(at))\nsys.stdin.readline()\nprint(fails(sys.argv[1]), goes(at))", ticket)
    assert other.hear() == "True"
    sharer.kill()
    other.tell("look")
    assert other.hear() == "ExporterGone True"


@pytest.mark.parametrize("device", DEVICES)
def test_a_stopped_exporter_holds_up_neither_the_next_open_nor_the_end(peer: Any, lingers: Any, device: str) -> None:
    sharer = peer(SHARE, device, str(COUNT))
    sharer.tell("share")
    ticket = sharer.hear()
    lingers(FOR_EVER)
    keeps = peer(LOOK + "at = opened_and_closed(sys.argv[1])\nprint('ready')\nsys.stdin.readline()\nprint(opened_and_closed(sys.argv[1]) == at)", ticket)
    lingers("0.1")
    lets_go = peer(LOOK + "array = cw.open(sys.argv[1])\nIS_CUDA = array.device != 'cpu'\nprint('ready')\nsys.stdin.readline()\nat = array.ptr\ndel array\nprint(goes(at))", ticket)
    assert keeps.hear() == lets_go.hear() == "ready"
    os.kill(sharer.process.pid, signal.SIGSTOP)
    try:
        keeps.tell("open")
        assert keeps.hear() == "True", "asking the exporter would have failed"
        lets_go.tell("close")
        assert lets_go.hear() == "True"
    finally:
        os.kill(sharer.process.pid, signal.SIGCONT)


def test_a_stopped_importer_lets_go_when_it_goes_on(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    sharer = peer(SHARE, "cpu", str(COUNT))
    sharer.tell("share")
    other = peer(LOOK + "at, _ = opened_and_closed(sys.argv[1])\nprint(is_mapped(at))\nprint(goes(at))", sharer.hear())
    assert other.hear() == "True"
    os.kill(other.process.pid, signal.SIGSTOP)
    sharer.kill()
    os.kill(other.process.pid, signal.SIGCONT)
    assert other.hear() == "True"


def test_a_forked_child_leaves_its_parents_alone(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    with shared("cpu") as export:
        other = peer(LOOK + """
import os
at, _ = opened_and_closed(sys.argv[1])
pid = os.fork()
if pid == 0:
    again, value = opened_and_closed(sys.argv[1])
    print(value, is_mapped(again), flush=True)
    sys.exit(0)  # with all that the end of an interpreter does
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), is_mapped(at), opened_and_closed(sys.argv[1]) == (at, 7))
""", export.ticket)  # fmt: skip
        assert other.hear() == "7 True"
        assert other.hear() == "0 True True"
        assert other.end() == 0


def test_what_expires_cannot_be_opened_though_it_is_there(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    array = cw.array(np.full(COUNT, 7, "int32"))
    other = peer(LOOK + """
print("ready")
ticket = sys.stdin.readline().strip()
at, _ = opened_and_closed(ticket)
print("opened")
deadline = time.monotonic() + 30
while (said := fails(ticket)) == "opened" and time.monotonic() < deadline:
    time.sleep(0.01)
print(said, is_mapped(at))
""")  # fmt: skip
    assert other.hear() == "ready"
    with cw.share(array, expires=3.0) as export:
        other.tell(export.ticket)
        assert [other.hear(), other.hear()] == ["opened", "Withdrawn True"]


def test_memory_for_reading_only_stays_so(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    with shared("cpu", read_only=True) as export:
        other = peer(LOOK + """
at, _ = opened_and_closed(sys.argv[1])
again = cw.open(sys.argv[1])
print(is_mapped(at), again.ptr == at, again.is_read_only, again.numpy().flags.writeable)
""", export.ticket)  # fmt: skip
        assert other.hear() == "True True True False"


def test_memory_for_one_process_is_not_anothers(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    waiting = [peer(LOOK + "import os\nprint(os.getpid())\nticket = sys.stdin.readline().strip()\nprint(fails(ticket), fails(ticket))") for _ in range(2)]
    pids = [other.hear() for other in waiting]
    try:
        export = shared("cpu", access=f"process:{pids[0]}")
    except cw.Unsupported as error:
        pytest.skip(f"this kernel cannot tell processes apart: {error}")
    with export:
        for other, said in zip(waiting, ["opened opened", "NotPermitted NotPermitted"]):
            other.tell(export.ticket)
            assert other.hear() == said


def test_so_much_stays_and_no_more(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    exports = [shared("cpu") for _ in range(60)]
    small = [cw.share(np.zeros(1000)) for _ in range(20)]
    other = peer(LOOK + """
def stay(tickets):
    places = {opened_and_closed(ticket)[0] for ticket in tickets}  # where one did not stay, the next one may be
    return sum(is_mapped(at) for at in places)
tickets = sys.stdin.readline().split()
print(stay(tickets[:60]), stay(tickets[60:]))
""")  # fmt: skip
    other.tell(" ".join(export.ticket for export in [*exports, *small]))
    assert other.hear() == "32 0", "64 MiB, and nothing that is opened as fast without"


def test_arrays_of_the_same_process_go_at_once(peer: Any, lingers: Any) -> None:
    lingers(FOR_EVER)
    other = peer(LOOK + f"""
array = cw.empty({COUNT}, "int32")
with cw.share(array) as export:
    at = cw.open(export).ptr
print(at == array.ptr)
del array, export
print(goes(at))
""")  # fmt: skip
    assert other.hear() == other.hear() == "True"
