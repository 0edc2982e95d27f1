"""Who may open an array, and who may write it: said when it is made, and held to by the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest

READ_AND_TRY_TO_WRITE = """
opened = cw.open(sys.argv[1])
view = np.asarray(opened)
print(opened.is_read_only, view.flags.writeable, int(view[0]), int(view.sum()))
try:
    opened[0] = 1
    print("written")
except ValueError:
    print("refused")
print(opened.memoryview().readonly)
sys.stdin.readline()
print(int(view[0]))
"""


@pytest.mark.parametrize("length", [3, 1000, 1 << 20])
def test_an_array_for_reading_only_is_read_and_not_written(peer: Any, length: int) -> None:
    array = cw.empty(length, "int64", read_only=True)
    assert not array.is_read_only, "its maker writes it"
    array[:] = np.arange(length)
    with cw.share(array) as export:
        assert not cw.open(export).is_read_only
        other = peer(READ_AND_TRY_TO_WRITE, export.ticket)
        assert other.hear() == f"True False 0 {sum(range(length))}"
        assert other.hear() == "refused" and other.hear() == "True"
        array[0] = 77
        other.tell("look")
        assert other.hear() == "77", "one memory"
    assert other.end() == 0


# What a process does that means to write all the same: by the mapping it has, by new ones of the same memory, by its
# descriptor, and by what the runtime itself copies with.
HOSTILE = """
import ctypes, mmap, os
opened = cw.open(sys.argv[1])
size = opened.nbytes
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
start = opened.ptr & -4096
print(libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(4096), 3), "mprotect")
for line in open("/proc/self/maps"):
    addresses, rights, *_ = line.split()
    first, last = (int(part, 16) for part in addresses.split("-"))
    if first <= opened.ptr < last:
        print(rights, "mapped")
        path = f"/proc/self/map_files/{addresses}"
done = []
try:
    descriptor = os.open(path, os.O_RDWR)
except OSError:
    descriptor = None  # only root may follow these names
if descriptor is not None:
    for name, attempt in {
        "write": lambda: os.pwrite(descriptor, b"x" * 8, 0),
        "cut": lambda: os.ftruncate(descriptor, 0),
        "grow": lambda: os.ftruncate(descriptor, 2 * size),
        "mmap": lambda: mmap.mmap(descriptor, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
    }.items():
        try:
            attempt()
            done.append(name)
        except OSError:
            pass
    reading = libc.mmap(None, 4096, 1, 1, descriptor, 0)
    done += ["punch"] if libc.fallocate(descriptor, 3, ctypes.c_long(0), ctypes.c_long(4096)) == 0 else []
    done += ["mprotect of a new one"] if libc.mprotect(ctypes.c_void_p(reading), ctypes.c_size_t(4096), 3) == 0 else []
print("done:", *done)
sys.stdin.readline()
ctypes.memset(opened.ptr, 1, 8)
print("written")
"""


def test_who_means_to_write_it_all_the_same_does_not(peer: Any) -> None:
    array = cw.empty(1024, "int64", read_only=True)
    array[:] = np.arange(1024)
    with cw.share(array) as export:
        other = peer(HOSTILE, export.ticket)
        assert other.hear() == "-1 mprotect"
        assert other.hear() == "r--s mapped"
        assert other.hear() == "done:"
        other.tell("write")
        assert other.process.wait(30) == -signal.SIGSEGV, "a write ends the process that tries"
        assert (array.numpy() == np.arange(1024)).all()


def test_what_the_host_has_is_copied_into_such_memory(peer: Any) -> None:
    source = np.arange(10)
    exports = [
        cw.share(source, read_only=True),
        cw.share_many({"a": source, "b": source[::2]}, read_only=True),
        cw.share(cw.array(source, read_only=True), read_only=True),
    ]
    code = """
one, many, again = (cw.open(ticket) for ticket in sys.argv[1:])
print([array.is_read_only for array in (one, *many.values(), again)], many["b"].tolist())
"""
    other = peer(code, *(export.ticket for export in exports))
    assert other.hear() == "[True, True, True, True] [0, 2, 4, 6, 8]"


def test_it_is_passed_on_as_it_is(peer: Any) -> None:
    maker = peer("array = cw.array(np.arange(5), read_only=True)\nexport = cw.share(array)\nprint(export.ticket)\nsys.stdin.read()")
    opened = cw.open(maker.hear())
    assert opened.is_read_only and opened[1:].is_read_only
    with cw.share(opened[1:]) as export:
        other = peer("array = cw.open(sys.argv[1])\nprint(array.is_read_only, array.tolist())", export.ticket)
        assert other.hear() == "True [1, 2, 3, 4]"
    with pytest.raises(cw.InvalidUse, match="opened from a ticket"):
        cw.share(opened, access="same-user")
    copy = opened.__deepcopy__({})
    copy[0] = 9  # a copy is its maker's
    assert copy.tolist()[0] == 9 and opened.tolist()[0] == 0


def test_libraries_are_told(peer: Any) -> None:
    maker = peer("array = cw.array(np.arange(5), read_only=True)\nexport = cw.share(array)\nprint(export.ticket)\nsys.stdin.read()")
    opened = cw.open(maker.hear())
    assert opened.__array_interface__["data"][1] is True
    assert not np.from_dlpack(opened).flags.writeable
    with pytest.raises(BufferError, match="max_version"):
        opened.__dlpack__()
    np.from_dlpack(opened, copy=True)[0] = 3
    if sys.version_info >= (3, 12):
        assert memoryview(opened).readonly


def test_memory_that_was_made_otherwise_is_refused() -> None:
    array = cw.empty(10)
    with pytest.raises(cw.InvalidUse, match="when it is made"):
        cw.share(array, read_only=True)
    with pytest.raises(cw.InvalidUse, match="when it is made"):
        cw.share_many({"a": array}, access=f"user:{os.getuid() + 1}")
    cw.share(array, access="same-user").close()  # as it is
    with pytest.raises(cw.Unsupported, match="events"):
        cw.share(cw.Event(), read_only=True)
    for access in ["", "bob", "user:bob", "process:-1"]:
        with pytest.raises(cw.InvalidUse, match="user:UID"):
            cw.empty(10, access=access)
    with pytest.raises(cw.Unsupported, match="no such process"):
        cw.empty(10, access=f"process:{2**31 - 1}")


OPEN = """
for line in sys.stdin:
    try:
        print(*cw.open(line.strip()).tolist())
    except cw.CausewayError as error:
        print(type(error).__name__)
"""


def test_one_process_is_admitted_and_no_other(peer: Any) -> None:
    named, other = peer(OPEN), peer(OPEN)
    try:
        export = cw.share(np.arange(3), access=f"process:{named.process.pid}")
    except cw.Unsupported as error:
        pytest.skip(str(error))  # a kernel before 6.9
    with export:
        for one, heard in [(named, "0 1 2"), (other, "NotPermitted"), (named, "0 1 2")]:
            one.tell(export.ticket)
            assert one.hear() == heard


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts processes of another user")
def test_another_user_is_admitted_where_it_is_named(tmp_path: Path) -> None:
    place = Path("/tmp") / f"causeway-users-{os.getpid()}"
    place.mkdir(mode=0o711)
    os.chmod(place, 0o711)
    environment = os.environ | {"CAUSEWAY_DIR": str(place)}
    sharer = f"""
import sys, causeway_ipc as cw, numpy as np
exports = [cw.share(np.arange(3), access="user:41236", read_only=True), cw.share(np.arange(3))]
print(*(export.ticket for export in exports), flush=True)
sys.stdin.read()
"""
    # It becomes the other user once it has loaded everything: the interpreter may lie where that user may not go.
    become = "import os, sys, numpy, causeway_ipc as cw\nuser = int(sys.argv[1])\nos.setgroups([]), os.setgid(user), os.setuid(user)\n"
    try:
        with subprocess.Popen([sys.executable, "-c", sharer], stdin=-1, stdout=-1, text=True, env=environment) as process:
            assert process.stdout and process.stdin
            named, unnamed = process.stdout.readline().split()
            for user, heard in [(41236, ["0 1 2", "NotPermitted"]), (41237, ["NotPermitted", "NotPermitted"])]:
                done = subprocess.run(
                    [sys.executable, "-c", become + OPEN, str(user)], input=f"{named}\n{unnamed}\n", capture_output=True, text=True,
                    timeout=60, env=environment,
                )  # fmt: skip
                assert done.stdout.splitlines() == heard, done.stderr
            process.stdin.close()
    finally:
        for name in place.iterdir():
            name.unlink()
        place.rmdir()
