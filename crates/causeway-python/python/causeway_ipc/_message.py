"""What is pickled in one call, and maybe written: whether anybody can receive it still."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from multiprocessing import queues
from typing import Any, Protocol

from ._readers import Child, Written


_END: object = getattr(queues, "_sentinel")


class _Reader(Protocol):
    """Who reads a message."""

    def is_waited_for(self) -> bool:
        """Whether a process that ends waits for it."""

    def is_read(self) -> bool:
        """Whether anybody may read what it has not received yet."""

    def is_gone(self) -> bool:
        """Whether it has certainly ended, and nobody else reads what it has not."""


class Message:
    """What is pickled in one call, and maybe written. What it has posted is taken back if that ends before all of it was written."""

    def __init__(self, *went: _Reader) -> None:
        self.was_broken_off = False
        self.was_given_up = False
        self.dropped: Callable[[], None] = lambda: None
        """Called where it was given up before any of it was written."""
        self.due = math.inf
        self.written: list[int] = []
        self.went: list[_Reader] = [*went]
        """Where it was written to, as a whole or in part, or is going to be."""

    def write(self, write: Callable[..., int], handle: int, data: Any) -> int:
        # One step for the interpreter: no signal's handler runs between the write and the record of it.
        self.written.extend(map(write, (handle,), (data,)))
        return self.written[-1]

    def is_lost(self) -> bool:
        """Nobody can receive a part, nor what its reader ended without. What was written when the handler of a signal raised is received
        as ever."""
        was_cut = self.was_broken_off and sum(self.written) < self.due
        return was_cut or self.was_given_up or any(reader.is_gone() for reader in self.went)

    def is_waited_for(self) -> bool:
        """Whether this process waits at its end until it is received."""
        return not self.went or any(reader.is_waited_for() for reader in self.went)

    def is_read(self) -> bool:
        """Whether anybody may receive it."""
        return not self.went or any(reader.is_read() for reader in self.went)


class Start(Message):
    """The start of a process by `spawn` or `forkserver`, which is sent several messages in one call."""

    def __init__(self, popen: Any) -> None:
        super().__init__()
        self._child = Child(popen, lambda: self.was_broken_off)

    def message(self) -> Message:
        return Message(self._child)


class _Thread(threading.local):
    message: Message | None = None
    fed: Message | None = None


thread = _Thread()


def current() -> Message | None:
    """What this thread pickles, or writes, at the moment."""
    return thread.message


def to_write() -> Message:
    """What is pickled now for a connection or a queue."""
    return thread.message or thread.fed or Message()


class Fed:
    """What a queue's thread takes from the queue. Each of it has a message before it is taken: who gives the queue up finds it."""

    def __init__(self, buffer: Any, written: Written) -> None:
        self.buffer, self.written = buffer, written

    def __len__(self) -> int:
        return len(self.buffer)

    def popleft(self) -> Any:
        self.takes()
        return self.buffer.popleft()

    def takes(self) -> None:
        """The next is about to be taken, or was taken where nobody could hear of it before."""
        thread.fed = self.written.in_hand = Message(self.written)

    def was_given_up(self) -> bool:
        """Whether nothing is left to write but what was given up."""
        taken = self.written.in_hand
        return taken is not None and taken.was_given_up and all(one is _END for one in self.buffer.copy())
