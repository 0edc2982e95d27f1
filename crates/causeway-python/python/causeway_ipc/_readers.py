"""Where messages were written to, and whether a process that ends waits for who reads from there.

That nobody will read a message is hard to know: the other end may be on its way to another process, and who has read a message as bytes
may pass them on. So only what is certain counts: what the program has said, a process that ended before it had what it was started with,
and a connection whose other end is open nowhere, long ago.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from . import _other_end

_LONG = 30.0
"""Seconds for which a process that ends waits for what was written to a connection whose other end is open nowhere."""
_LOOK = 0.1
"""Seconds between looks at one connection."""


class _Taken(Protocol):
    was_given_up: bool
    dropped: Callable[[], None]


class Written:
    """A connection that messages were written to."""

    def __init__(self, connection: Any) -> None:
        self._connection = weakref.ref(connection)
        self._unwaited_in = 0
        self._looked = -_LOOK
        self._alone_since: float | None = None  # seen by a process that ends
        self._other_end: _other_end.OtherEnd | None = None  # once it is closed here
        self.in_hand: _Taken | None = None
        """What the thread of a queue has taken last, to write it here."""

    @staticmethod
    def to(connection: Any) -> Written:
        """That of a connection."""
        written: Written | None = getattr(connection, "_causeway_written", None)
        if written is None:
            written = connection._causeway_written = Written(connection)
        return written

    def wait_for_nobody(self) -> None:
        """This process, and no child that it forks, ends without a wait for who reads from there."""
        self._unwaited_in = os.getpid()

    def is_waited_for(self) -> bool:
        """Of a process that ends."""
        return self._unwaited_in != os.getpid() and self.is_read()

    def is_read(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            self._looked = now
            if not self._has_hung_up():
                self._alone_since = None
            elif self._alone_since is None:
                self._alone_since = now
        return self._alone_since is None or now - self._alone_since < _LONG

    def is_gone(self) -> bool:
        return False  # who has read bytes may pass them on

    def closes(self, handle: int) -> None:
        """The connection is about to be closed here."""
        self._other_end = _other_end.of(handle)

    def _has_hung_up(self) -> bool:
        at = getattr(self._connection(), "_handle", None)
        if at is None:
            return self._other_end is not None and not self._other_end.is_open()
        return _other_end.hangs_up(at)


class Child:
    """A process that is started by `spawn` or `forkserver`, and reads what it is started with from a pipe that nobody else has."""

    def __init__(self, popen: Any, has_failed: Callable[[], bool]) -> None:
        self._popen, self._has_failed = popen, has_failed

    def is_waited_for(self) -> bool:
        return self.is_read()

    def is_read(self) -> bool:
        return not self.is_gone()

    def is_gone(self) -> bool:
        sentinel = getattr(self._popen, "sentinel", None)
        if sentinel is None:
            return self._has_failed()  # before anything was written
        finalizer = getattr(self._popen, "finalizer", None)
        is_closed = finalizer is not None and not finalizer.still_active()  # only after its end
        return is_closed or _other_end.hangs_up(sentinel)

