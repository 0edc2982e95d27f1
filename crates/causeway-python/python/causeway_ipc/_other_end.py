"""Whether the other end of a connection is open anywhere, also of one that was closed here. Nothing here keeps either end open.

Both ways ask the kernel about one pipe or socket, and its answer is certain: an end that is on its way in a message, or that a forked
child has, is open.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import socket
import stat
import struct
from typing import Protocol

_PART = 8
"""What part of the descriptors that this process may have is used for pipes."""
_ALL = 0xFFFFFFFF
# Of linux/sock_diag.h and linux/unix_diag.h.
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER, _ASKED, _FOUND, _ATTRIBUTE = map(struct.Struct, ["=IHHII", "=BBHIIIII", "=BBBBIII", "=HH"])
_SHOW_PEER, _PEER = 4, 2


class OtherEnd(Protocol):
    def is_open(self) -> bool: ...


def of(handle: int) -> OtherEnd | None:
    """That of what a descriptor is an end of, for when the descriptor is closed. None where the kernel does not say."""
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISFIFO(mode):
            return _Pipe(handle)
        return _Socket(handle) if stat.S_ISSOCK(mode) else None
    except OSError:
        return None


def hangs_up(handle: int) -> bool:
    """Whether the other end of what a descriptor is an end of is open nowhere."""
    poll = select.poll()
    poll.register(handle, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


class _Pipe:
    """A pipe that was written to. It has a descriptor, so there are only so many: of further ones it is not known."""

    _descriptors: set[int] = set()

    def __init__(self, handle: int) -> None:
        if len(self._descriptors) >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _PART:
            raise OSError(errno.EMFILE, "the others are for the program")
        self._place = os.open(f"/proc/self/fd/{handle}", os.O_PATH)  # names the pipe, and is no end of it
        self._descriptors.add(self._place)

    def is_open(self) -> bool:
        try:
            writes = os.open(f"/proc/self/fd/{self._place}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            return error.errno != errno.ENXIO  # what has a name has no reader then
        try:
            return not hangs_up(writes)
        finally:
            os.close(writes)

    def __del__(self, close=os.close) -> None:  # type: ignore[no-untyped-def]
        if (place := getattr(self, "_place", None)) is not None:
            self._descriptors.discard(place)  # before another has the number
            close(place)


class _Socket:
    """A socket of this machine that is connected to another."""

    def __init__(self, handle: int) -> None:
        self._peer = _look(os.fstat(handle).st_ino)[1]
        self._cookie = _look(self._peer)[0]

    def is_open(self) -> bool:
        try:
            _look(self._peer, self._cookie)
        except OSError as error:
            return error.errno not in (errno.ENOENT, errno.ESTALE)  # none, or another by now
        return True


def _look(number: int, cookie: tuple[int, int] = (_ALL, _ALL)) -> tuple[tuple[int, int], int]:
    """The cookie of the socket with an inode's number, and the inode's number of its peer, 0 for none."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as asks:
        request = _ASKED.pack(socket.AF_UNIX, 0, 0, _ALL, number, _SHOW_PEER, *cookie)
        asks.send(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0) + request)
        answer = asks.recv(4096, socket.MSG_DONTWAIT)  # it is there when `send` returns
    length, kind, *_ = _HEADER.unpack_from(answer)
    if kind == _ERROR:
        raise OSError(-struct.unpack_from("=i", answer, _HEADER.size)[0], "sock_diag")
    found = _FOUND.unpack_from(answer, _HEADER.size)
    peer, at = 0, _HEADER.size + _FOUND.size
    while at < length:
        size, attribute = _ATTRIBUTE.unpack_from(answer, at)
        if attribute == _PEER:
            (peer,) = struct.unpack_from("=I", answer, at + _ATTRIBUTE.size)
        at += max(size + 3 & ~3, _ATTRIBUTE.size)
    return (found[5], found[6]), peer
