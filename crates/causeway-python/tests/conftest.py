"""What the tests have in common: a second process that runs a few lines, and says what it prints."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import causeway_ipc.multiprocessing as cw_multiprocessing
import pytest

PATIENCE = 30.0


def becomes(is_so: Callable[[], bool]) -> bool:
    """Whether it is so now, or after a while."""
    deadline = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.001)
    return is_so()


def settled() -> bool:
    """Whether all arrays that this process sent are received, now or after a while."""
    return becomes(lambda: cw_multiprocessing.outstanding() == 0)


class Peer:
    """Another interpreter. `ask` is what it has printed next."""

    def __init__(self, code: str, *arguments: str) -> None:
        start = "import sys, numpy as np, causeway_ipc as cw\n"
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", start + code, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put(None)

    def hear(self) -> str:
        line = self._lines.get(timeout=PATIENCE)
        assert line is not None, f"the other process ended with {self.process.wait()}"
        return line

    def tell(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    """Starts other processes; none outlives its test."""
    started: list[Peer] = []

    def start(code: str, *arguments: str) -> Peer:
        started.append(Peer(code, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="1,000 processes killed, 100,000 shares and opens, and the like")


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--long"))
