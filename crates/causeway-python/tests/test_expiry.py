"""Tickets that are withdrawn when their time is over."""

from __future__ import annotations

from typing import Any

import causeway_ipc as cw
import pytest
from conftest import becomes


def is_withdrawn(ticket: str) -> bool:
    try:
        cw.open(ticket)
    except cw.Withdrawn:
        return True
    return False


def test_a_ticket_is_withdrawn_while_a_thread_keeps_the_interpreter(peer: Any) -> None:
    exporter = peer("""
export = cw.share(cw.empty(4), expires=0.2)
print(export.ticket)
sum(range(10**10))  # one call of C, which lets no other thread run
print("over")
""")
    ticket = exporter.hear()
    assert becomes(lambda: is_withdrawn(ticket))
    assert exporter._lines.empty(), "it is in that call still"


def test_what_is_open_stays_and_closing_before_or_after_is_no_matter() -> None:
    shared = cw.empty(4)
    before, after = cw.share(shared, expires=3600), cw.share(shared, expires=0.05)
    opened = cw.open(before)
    before.close()
    assert is_withdrawn(before.ticket) and becomes(lambda: is_withdrawn(after.ticket))
    after.close()
    opened[0] = 3
    assert shared[0].item() == 3


def test_without_a_thread_the_ticket_is_withdrawn_at_once_and_a_later_one_expires(peer: Any) -> None:
    exporter = peer("""
import resource
array, lasting = cw.empty(4), cw.share(cw.empty(4))
for _ in range(2):
    cw.share(array).close()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 19), before[1]))
try:
    cw.share(array, expires=60)
    print("shared")
except cw.LimitReached as error:
    print("withdrawn now" in str(error))
resource.setrlimit(resource.RLIMIT_AS, before)
print(cw.share(array, expires=0.05).ticket)
export = cw.share(array, expires=0.05)
print(export.ticket)
sys.stdin.read()
""")
    assert exporter.hear() == "True"
    exporter.hear()
    ticket = exporter.hear()
    assert becomes(lambda: is_withdrawn(ticket))


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1", "soon"])
def test_a_time_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises((TypeError, ValueError, cw.InvalidUse)):
        cw.share(cw.empty(4), expires=seconds)
