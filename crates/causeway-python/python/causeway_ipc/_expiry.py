"""Exports that are closed when their time is over, by one thread that runs while there are any."""

from __future__ import annotations

import _thread
import heapq
import itertools
import os
import queue
import threading
import time
import warnings
import weakref

from ._causeway import Export
from ._errors import LimitReached


_MANY = 1024
"""Entries from which on those of exports that are gone are dropped."""


class _Clock:
    """What is to be closed, and when.

    The handler of a signal may raise, or share, at any point of `add`. So what is new goes to the thread in one call of C, the thread
    alone has the rest, and there is no lock that a caller waits for or leaves behind.
    """

    def __init__(self) -> None:
        self._new: queue.SimpleQueue[tuple[float, int, weakref.ref[Export]]] = queue.SimpleQueue()
        self._running = threading.Lock()
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, weakref.ref[Export]]] = []  # a heap
        self._most = _MANY

    def add(self, seconds: float, export: Export) -> None:
        self._new.put((time.monotonic() + seconds, next(self._numbers), weakref.ref(export)))
        if self._running.locked():
            return
        try:
            _thread.start_new_thread(self._run, ())  # which no handler's exception can interrupt, unlike `Thread.start`
        except RuntimeError as error:
            export.close()
            raise LimitReached(f"nothing would withdraw this ticket when its time is over, so it is withdrawn now: {error}") from error

    def _run(self) -> None:
        """What a thread does while there is anything to close, unless another does."""
        while (self._due or not self._new.empty()) and self._running.acquire(blocking=False):
            try:
                self._close_all()
            finally:
                self._running.release()  # what is added until here is closed by this thread still

    def _close_all(self) -> None:
        while self._due or not self._new.empty():
            rest = self._due[0][0] - time.monotonic() if self._due else 0.0
            try:
                heapq.heappush(self._due, self._new.get(timeout=min(max(rest, 0.0), threading.TIMEOUT_MAX)))
                self._forget_the_gone()
                continue
            except queue.Empty:
                pass
            if self._due and self._due[0][0] <= time.monotonic() and (export := heapq.heappop(self._due)[2]()) is not None:
                try:
                    export.close()
                except Exception as error:
                    warnings.warn(f"a ticket whose time is over could not be withdrawn: {error}", RuntimeWarning, stacklevel=1)
                del export

    def _forget_the_gone(self) -> None:
        """Drops the entries of exports that are gone, whenever the number of entries has doubled."""
        if len(self._due) >= self._most:
            self._due = [entry for entry in self._due if entry[2]() is not None]
            heapq.heapify(self._due)
            self._most = max(2 * len(self._due), _MANY)


_clock = _Clock()


def close_after(seconds: float, export: Export) -> None:
    """Closes an export when that time is over, unless it is gone by then."""
    _clock.add(seconds, export)


def _forget_parent() -> None:
    """A forked child has no such thread, and what it inherited is its parent's."""
    global _clock
    _clock = _Clock()


os.register_at_fork(after_in_child=_forget_parent)
