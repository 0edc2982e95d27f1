"""What was read from a connection and cannot be received: its senders are told, since they would wait for it for ever."""

from __future__ import annotations

import _thread
import io
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from . import _outbox


class _Reading(threading.local):
    """What this thread has read in the call that it is in, in the order of the reads."""

    parts: list[io.BytesIO] | None = None


_reading = _Reading()
# What calls have read, by the lists' identities, until it is made or its senders are told.
_open: dict[int, list[io.BytesIO]] = {}


def _at_the_end() -> None:
    """A process that ends because a message could not be received may end before the thread has told anybody."""
    for parts in list(_open.values()):
        _give_up(parts)


def _leave_to_parent() -> None:
    global _open
    _open = {}


_outbox.at_the_end.append(_at_the_end)
os.register_at_fork(after_in_child=_leave_to_parent)


def tells_what_is_lost(call: Callable[..., Any]) -> Any:
    """A call that reads a message, and maybe makes what is in it. If it fails, nobody receives what it has read any more."""

    @wraps(call)
    def reads(*arguments: Any, **options: Any) -> Any:
        outer = _reading.parts
        parts: list[io.BytesIO] = []
        try:
            _open[id(parts)] = parts
            _reading.parts = parts
            made = call(*arguments, **options)
            _open.pop(id(parts), None)
            return made
        except BaseException:
            if parts:
                try:
                    # The first call here, and one step for the interpreter: the handler of another signal may raise only when the thread is there.
                    _thread.start_new_thread(_give_up, (parts,))
                except RuntimeError:
                    pass  # without a thread: when the process ends
            else:
                _open.pop(id(parts), None)
            raise
        finally:
            _reading.parts = outer

    return reads


def part_of_such_a_call(call: Callable[..., Any]) -> Any:
    """The same, but for a call within such a call, which sees to all of it."""
    reads = tells_what_is_lost(call)

    @wraps(call)
    def within(*arguments: Any, **options: Any) -> Any:
        return (reads if _reading.parts is None else call)(*arguments, **options)

    return within


def read(connection: Any, size: int, read: Callable[[int, int], bytes] = os.read) -> io.BytesIO:
    """What `Connection._recv` does. No handler of a signal runs between a read and the record of it."""
    part = io.BytesIO()
    if _reading.parts is not None:
        _reading.parts.append(part)
    handle = connection._handle
    while (left := size - part.tell()) > 0:
        if not sum(map(part.write, map(read, (handle,), (left,)))):  # one step for the interpreter
            if left < size:
                raise OSError("got end of file during message")
            if _reading.parts is not None:
                _reading.parts.pop()
            raise EOFError
    return part


def _give_up(parts: list[io.BytesIO]) -> None:
    for part in parts:
        message = part.getvalue()
        if _outbox.__name__.encode() in message:
            with suppress(Exception):  # of what is no message, or not the whole of one
                _GivesUp(io.BytesIO(message)).load()
    _open.pop(id(parts), None)


class _GivesUp(pickle.Unpickler):
    """Makes nothing of a message, and tells the senders of the arrays and events in it. They do not mind being told again."""

    def find_class(self, module: str, name: str) -> Any:
        return _tell if (module, name) == (_outbox.__name__, _outbox.receive.__name__) else _Nothing


def _tell(ticket: str, marks: str, number: int, answers: str | None) -> _Nothing:
    _outbox.tell(marks, number)
    return _Nothing()


class _Nothing:
    """Stands for everything else that a message names, and for what is made of it."""

    def __new__(cls, *_: object, **__: object) -> _Nothing:
        return object.__new__(cls)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, *_: object, **__: object) -> _Nothing:
        return self

    def _ignore(self, *_: object) -> None:
        pass

    __setstate__ = __setitem__ = append = extend = add = _ignore
