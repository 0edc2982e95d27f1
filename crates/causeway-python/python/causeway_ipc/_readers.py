"""Where messages were written to, and whether a process that ends waits for who reads from there.

That nobody will read a message is hard to know: the other end may be on its way to another process, and who has read a message as bytes
may pass them on. So only what is certain counts: what the program has said, and a connection whose other end is open nowhere, long ago.
"""

from __future__ import annotations

import os
import select
import time
import weakref
from typing import Any

_LONG = 30.0
"""Seconds for which a process that ends waits for what was written to a connection whose other end is open nowhere."""
_LOOK = 0.1
"""Seconds between looks at one connection."""


class Written:
    """A connection that messages were written to."""

    def __init__(self, connection: Any) -> None:
        self._connection = weakref.ref(connection)
        self._unwaited_in = 0
        self._looked = -_LOOK
        self._alone_since: float | None = None  # seen by a process that ends

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
        if self._unwaited_in == os.getpid():
            return False
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            self._looked = now
            if not self._has_hung_up():
                self._alone_since = None
            elif self._alone_since is None:
                self._alone_since = now
        return self._alone_since is None or now - self._alone_since < _LONG

    def _has_hung_up(self) -> bool:
        at = getattr(self._connection(), "_handle", None)
        if at is None:
            return False  # it is closed here, and cannot be asked
        poll = select.poll()
        poll.register(at, 0)
        return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
