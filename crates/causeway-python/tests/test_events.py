"""Events, in threads and event loops; on the CPU a record is done when it is made."""

from __future__ import annotations

import asyncio

import causeway_ipc as cw
import pytest
from conftest import Peer


def test_an_event_is_recorded_waited_for_and_awaited() -> None:
    event = cw.Event()
    assert event.query() and event.device == "cpu"
    for _ in range(3):
        event.record()
        event.wait()
        event.synchronize(1.0)

    async def both() -> None:
        await asyncio.gather(event, event)

    asyncio.run(both())


def test_an_event_of_another_process_is_the_same_event(peer: type[Peer]) -> None:
    other = peer("""
event = cw.Event()
export = cw.share(event)
print(export.ticket)
for line in sys.stdin:
    event.record()
    print("recorded")
""")
    ticket = other.hear()
    opened = cw.open(ticket)
    assert isinstance(opened, cw.Event)
    for _ in range(100):
        other.tell("record")
        assert other.hear() == "recorded"
        opened.synchronize(5.0)
        opened.record()
    with cw.share(opened) as again:
        assert cw.open(again).query()
    other.kill()
    assert opened.query(), "what was done stays done"
    with pytest.raises(cw.ExporterGone):
        cw.open(ticket)


def test_streams_where_there_are_none_are_refused() -> None:
    event = cw.Event()
    with pytest.raises(cw.InvalidUse, match="no streams"):
        event.record(7)
    with pytest.raises(TypeError, match="__cuda_stream__"):
        event.wait(object())
    with pytest.raises(cw.InvalidUse, match="from 0 to 1e19, or None"):
        event.synchronize(-1.0)
