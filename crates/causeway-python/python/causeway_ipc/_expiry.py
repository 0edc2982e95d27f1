"""Exports that are closed when their time is over, by one thread that runs while there are any."""

from __future__ import annotations

import _thread
import heapq
import itertools
import os
import queue
import threading
import time
import weakref

from ._causeway import Export
from ._errors import LimitReached


class _Clock:
    """What is to be closed, and when.

    The handler of a signal may raise, or share, at any point of `add`. So what is new goes to the thread in one call of C, the thread
    alone has the rest, and there is no lock that a caller waits for or leaves behind.
    """

    def __init__(self) -> None:
        self._new: queue.SimpleQueue[tuple[float, int, weakref.ref[Export]]] = queue.SimpleQueue()
        self._running = threading.Lock()
        self._numbers = itertools.count()

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
        while not self._new.empty() and self._running.acquire(blocking=False):
            try:
                self._close_all()
            finally:
                self._running.release()  # what is added until here is closed by this thread still

    def _close_all(self) -> None:
        due: list[tuple[float, int, weakref.ref[Export]]] = []
        while due or not self._new.empty():
            rest = due[0][0] - time.monotonic() if due else 0.0
            try:
                heapq.heappush(due, self._new.get(timeout=min(max(rest, 0.0), threading.TIMEOUT_MAX)))
                continue
            except queue.Empty:
                pass
            if due and due[0][0] <= time.monotonic() and (export := heapq.heappop(due)[2]()) is not None:
                export.close()
                del export


_clock = _Clock()


def close_after(seconds: float, export: Export) -> None:
    """Closes an export when that time is over, unless it is gone by then."""
    _clock.add(seconds, export)


def _forget_parent() -> None:
    """A forked child has no such thread, and what it inherited is its parent's."""
    global _clock
    _clock = _Clock()


os.register_at_fork(after_in_child=_forget_parent)
