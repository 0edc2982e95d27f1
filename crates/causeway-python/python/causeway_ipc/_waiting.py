"""What waits have in common, and waiting in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from ._errors import Timeout

T = TypeVar("T")


class _Pending(Protocol):
    def done(self) -> bool: ...


def too_late(what: str, timeout: float) -> Timeout:
    error = Timeout(f"{what} within {timeout} seconds: wait again, or longer (timeout=)")
    error.is_transient = True
    return error


async def until(attempt: Callable[[], T | None], timeout: float, late: Callable[[], Exception]) -> T:
    """The first answer of `attempt` that is not None, looked for more and more seldom; an error that `late` makes in the end."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    pause = 0.0
    while (answer := attempt()) is None:
        if loop.time() > deadline:
            raise late()
        await asyncio.sleep(pause)
        pause = min(pause * 2 + 20e-6, 2e-3)
    return answer


async def settled(pending: _Pending, timeout: float = 60.0) -> None:
    """Until what an event stood for is done."""
    await until(lambda: pending.done() or None, timeout, lambda: too_late("the event was not done", timeout))
