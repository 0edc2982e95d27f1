"""A program that uses all of the module as its stubs say: mypy reads it, nothing runs it."""

from __future__ import annotations

import asyncio
from typing import Any

import causeway_ipc as cw
import causeway_ipc.multiprocessing
from causeway_ipc import Array, Channel, Event, Export, Receiver, Withdrawn


def make(n: int) -> Array:
    a: Array = cw.empty((n, 2), "float32", device=None, access="same-user", read_only=False)
    shape: tuple[int, ...] = a.shape
    name: str = a.dtype
    b: Array = a[0, ..., None]
    a[:] = 5
    size: int = len(a) + a.nbytes + a.ptr
    together: dict[str, Array] = cw.empty_many({"a": a, "b": ((n, 2), "int8")}, "cpu", access="same-user")
    return cw.array(together["a"] if size else b, device="cpu")


def give(a: Array) -> str:
    with cw.share(a, expires=3.0) as e:
        t: str = e.ticket
        inner: Array | None = e.array
    many: Export = cw.share_many({"a": a, "b": object()})
    many.close()
    return t


async def main() -> None:
    ev = Event("cpu")
    ev.record()
    ev.wait(1)
    ev.synchronize(timeout=2.0)
    done: bool = ev.query()
    await ev
    c = Channel(4, device=None)
    await c.send_async(make(3), timeout=1.0)
    r: Receiver = cw.open(c.ticket)
    async for x in r:
        print(x)
    for y in r:
        print(y)
    mv: memoryview = make(2).memoryview()


env: dict[str, str] = cw.sycl_environment("cpu")
names: list[tuple[str, str]] = cw.devices()
try:
    opened: Any = cw.open("x", device="cpu", timeout=1.0)
except Withdrawn as error:
    again: bool = error.is_transient
causeway_ipc.multiprocessing.install(linger=2.0)
asyncio.run(main())
