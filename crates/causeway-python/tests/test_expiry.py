"""Tickets that are withdrawn when their time is over."""

from __future__ import annotations

import threading
from typing import Any

import causeway_ipc as cw
import pytest
from causeway_ipc import _expiry
from conftest import becomes


def test_a_thread_that_cannot_be_started_once_keeps_no_later_export_from_expiring(monkeypatch: Any) -> None:
    monkeypatch.setattr(_expiry, "_clock", _expiry._Clock())
    start = _expiry._thread.start_new_thread

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    shared = cw.empty(4)
    monkeypatch.setattr(_expiry._thread, "start_new_thread", refuse)
    with pytest.raises(cw.LimitReached, match="withdraw"):
        cw.share(shared, expires=60)
    monkeypatch.setattr(_expiry._thread, "start_new_thread", start)
    export = cw.share(shared, expires=0.05)
    gone = threading.Event()
    for _ in range(600):
        try:
            cw.open(export.ticket)
        except cw.Withdrawn:
            return
        gone.wait(0.05)
    raise AssertionError("it does not expire")


def test_a_ticket_that_cannot_be_withdrawn_in_time_keeps_no_later_one_from_expiring(recwarn: Any) -> None:
    class Stubborn:
        def close(self) -> None:
            raise cw.CausewayError("it stays")

    closed = threading.Event()

    class Kept:
        close = staticmethod(closed.set)

    stubborn: Any = Stubborn()
    kept: Any = Kept()
    clock = _expiry._Clock()
    clock.add(0.01, stubborn)
    clock.add(0.02, kept)
    assert closed.wait(30)
    assert ["it stays" in str(warning.message) for warning in recwarn] == [True]


def test_exports_that_are_gone_before_their_time_leave_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(_expiry, "_clock", clock := _expiry._Clock())
    shared = cw.empty(4)
    for _ in range(5000):
        cw.share(shared, expires=3600).close()
    assert becomes(lambda: clock._new.empty() and 0 < len(clock._due) <= 1024)
