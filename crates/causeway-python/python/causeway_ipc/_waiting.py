"""Waiting in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from ._errors import Timeout

T = TypeVar("T")


_EAGER = 500e-6
"""Seconds of a wait before it begins to sleep."""


class _Pending(Protocol):
    def done(self) -> bool: ...


async def until(attempt: Callable[[], T | None], timeout: float, what: str) -> T:
    """The first answer of `attempt` that is not None, looked for more and more seldom."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    pause = 0.0
    while (answer := attempt()) is None:
        if loop.time() > deadline:
            raise Timeout(f"{what} within {timeout} seconds: wait again, or longer (timeout=)")
        await asyncio.sleep(pause)
        pause = min(pause * 2 + 20e-6, 2e-3)
    return answer


async def settled(pending: _Pending, timeout: float = 60.0) -> None:
    """Until what an event stood for is done."""
    await until(lambda: pending.done() or None, timeout, "the event was not done")


def wait(attempt: Callable[[], T | None], timeout: float, what: str) -> T:
    """The same without an event loop: at first it only lets others run, for the shortest sleep is longer than most waits."""
    begun = time.monotonic()
    pause = 0.0
    while (answer := attempt()) is None:
        waited = time.monotonic() - begun
        if waited > timeout:
            raise Timeout(f"{what} within {timeout} seconds: wait again, or longer (timeout=)")
        time.sleep(pause)
        if waited > _EAGER:
            pause = min(pause * 1.2 + 1e-6, 1e-3)
    return answer
