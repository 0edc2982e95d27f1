"""Exports that are closed when their time is over, by one thread that runs while there are any."""

from __future__ import annotations

import _thread
import heapq
import itertools
import os
import threading
import time
import weakref

from ._causeway import Export
from ._errors import LimitReached


class _Clock:
    """What is to be closed, and when."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Export]]] = []
        self._numbers = itertools.count()
        self._is_running = False

    def add(self, seconds: float, export: Export) -> None:
        with self._changed:
            if not self._is_running:
                try:
                    _thread.start_new_thread(self._run, ())  # which no handler's exception can interrupt, unlike `Thread.start`
                except RuntimeError as error:
                    export.close()
                    raise LimitReached(f"nothing would withdraw this ticket when its time is over, so it is withdrawn now: {error}") from error
                self._is_running = True  # the thread waits for the lock
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), weakref.ref(export)))
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._due:
                rest = self._due[0][0] - time.monotonic()
                if rest > 0:
                    self._changed.wait(min(rest, threading.TIMEOUT_MAX))
                elif (export := heapq.heappop(self._due)[2]()) is not None:
                    export.close()
                    del export
            self._is_running = False


_clock = _Clock()


def close_after(seconds: float, export: Export) -> None:
    """Closes an export when that time is over, unless it is gone by then."""
    _clock.add(seconds, export)


def _forget_parent() -> None:
    """A forked child has no such thread, and what it inherited is its parent's."""
    global _clock
    _clock = _Clock()


os.register_at_fork(after_in_child=_forget_parent)
