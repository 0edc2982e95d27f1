"""Whether any process can still read what was written to a connection. What nobody can read any more, its sender gives up."""

from __future__ import annotations

import os
import select
import stat
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import process
from typing import Any

_GRACE = 3.0
"""Seconds for which nobody has the other end of a connection open, until what was written is given up: who has read a message as bytes
may make it meanwhile."""
_LOOK = 1.0
"""Seconds between looks through the descriptors of all processes."""


class Written:
    """A connection that messages were written to."""

    def __init__(self, connection: Any) -> None:
        status = os.fstat(connection.fileno())
        self._inode = status.st_ino
        self._is_pipe = stat.S_ISFIFO(status.st_mode)
        self._connection = weakref.ref(connection)
        self._unread_since: float | None = None
        self._unwaited_in = 0

    @staticmethod
    def to(connection: Any) -> Written | None:
        """That of a connection; none for one that is closed."""
        written: Written | None = getattr(connection, "_causeway_written", None)
        if written is None and not connection.closed:
            written = connection._causeway_written = Written(connection)
        return written

    def wait_for_nobody(self) -> None:
        """This process, and no child that it forks, ends without a wait for who reads from there."""
        self._unwaited_in = os.getpid()

    def is_waited_for(self) -> bool:
        return self._unwaited_in != os.getpid()

    def is_lost(self) -> bool:
        """Nobody has had the other end open for a while."""
        return self._unread_since is not None and time.monotonic() - self._unread_since >= _GRACE

    def _is_closed(self) -> bool:
        return (connection := self._connection()) is None or connection.closed

    def _has_hung_up(self) -> bool:
        """Of a connection that is open here: whether its other end is open nowhere."""
        at = getattr(self._connection(), "_handle", None)
        if at is None:
            return False
        poll = select.poll()
        poll.register(at, 0)
        return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))

    def _note(self, is_unread: bool) -> None:
        if not is_unread:
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = time.monotonic()


_looked = -1e9


def look(all_written: Iterable[Written], is_at_end: bool = False) -> None:
    """Looks which of the connections somebody can read from; for a thread, in which no signal's handler raises. A pipe that is closed here is looked for in all processes, and every pipe if
    this process ends, and reads nothing itself any more. The other end of a socket has no name to look for."""
    global _looked
    elsewhere = []
    for written in set(all_written):
        if written._is_pipe and (is_at_end or written._is_closed()):
            elsewhere.append(written)
        elif not written._is_closed():
            written._note(written._has_hung_up())
    if elsewhere and time.monotonic() - _looked >= _LOOK:
        _looked = time.monotonic()
        is_known, here, others = _pipes()
        found = others if is_at_end else here | others
        for written in elsewhere:
            written._note(is_known and written._inode not in found)


def _pipes() -> tuple[bool, set[int], set[int]]:
    """The pipes that this process has open, and other processes; and whether all that this one has to do with are among those."""
    here, others, own, session = set[int](), set[int](), str(os.getpid()), os.getsid(0)
    is_known = True
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return False, here, others
    for name in processes:
        try:
            (here if name == own else others).update(_pipes_of(name))
        except PermissionError:  # of another user, or one that lets nobody look: it has only what its ancestors have given it
            with suppress(OSError):
                is_known = is_known and os.getsid(int(name)) != session
        except OSError:
            pass  # it has ended
    # A parent outside of this container cannot be seen: it has the other end of the pipe by which its end is noticed.
    parent = getattr(process.parent_process(), "_sentinel", None)
    return is_known and (parent is None or os.fstat(parent).st_ino in others), here, others


def _pipes_of(name: str) -> Iterable[int]:
    for descriptor in os.listdir(f"/proc/{name}/fd"):
        with suppress(FileNotFoundError):
            link = os.readlink(f"/proc/{name}/fd/{descriptor}")
            if link.startswith("pipe:["):
                yield int(link[6:-1])
