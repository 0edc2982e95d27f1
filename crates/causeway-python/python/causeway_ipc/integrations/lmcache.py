"""Descriptors of CUDA's `cuMemCreate` memory on their way to LMCache's server: `install_sender()` in vLLM's workers, and
`install_receiver()` in the server, which may be in another container.

LMCache's `VmmCudaIPCWrapper` pickles all but the descriptor, and asks its resolver for that. Here the sender offers it on a
socket in a directory that both see, and the kernel hands it to a process of the same user.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import causeway_ipc

_ID = 16  # bytes of an export id
_PATIENCE = 5.0


def folder() -> Path:
    """`lmcache` in `CAUSEWAY_DIR`, which containers have in common, or else in this user's directory for such things."""
    parent = os.environ.get("CAUSEWAY_DIR") or os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/causeway-lmcache-{os.geteuid()}"
    path = Path(parent, "lmcache")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise causeway_ipc.NotPermitted(f"{path} must be a directory of this user, closed to others (mode 0700)")
    return path


@contextmanager
def _address(folder: Path, name: str) -> Iterator[str]:
    """A socket's path that is short enough, however deep the folder is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


class Sender:
    """Hands out descriptors of wrappers, as long as the wrappers have them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._folder = folder()
        self._lock = threading.Lock()
        self._offered: dict[bytes, tuple[weakref.ref[Any], int]] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._name = f"sender-{os.urandom(16).hex()}"
        with _address(self._folder, self._name) as address:
            self._socket.bind(address)
        self._socket.listen(64)
        self._socket.settimeout(1.0)  # then it looks for what was closed
        threading.Thread(target=self._serve, name="causeway_ipc lmcache", daemon=True).start()

    def offer(self, wrapper: Any) -> None:
        """Offers the descriptor of a wrapper, if it has one; a receiver may ask for it until the wrapper is closed."""
        if (payload := wrapper.fd_payload()) is None:
            return
        export, descriptor = payload
        with self._lock:
            self._sweep()
            self._offered[export] = weakref.ref(wrapper), os.dup(descriptor)
        (self._folder / export.hex()).symlink_to(self._name)

    def _sweep(self) -> None:
        """Lets go of what was closed."""
        for export, (wrapper, descriptor) in list(self._offered.items()):
            there = wrapper()
            if there is None or there.fd_payload() is None:
                del self._offered[export]
                os.close(descriptor)
                (self._folder / export.hex()).unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
                with connection:
                    self._answer(connection)
            except OSError:  # a receiver that went, or did not ask in time
                with self._lock:
                    self._sweep()

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_PATIENCE)
        export = connection.recv(_ID, socket.MSG_WAITALL)
        with self._lock:
            self._sweep()
            if export in self._offered:
                socket.send_fds(connection, [b"."], [self._offered[export][1]])


def resolve(export: bytes) -> int:
    """The descriptor of an export, which is the caller's from then on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE)
        try:
            with _address(folder(), export.hex()) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise causeway_ipc.ExporterGone(
                f"nobody offers the export {export.hex()}: its process has ended, or has another CAUSEWAY_DIR"
            ) from error
        connection.sendall(export)
        try:
            _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
        except TimeoutError as error:
            raise causeway_ipc.Busy(f"the process that offers the export {export.hex()} did not answer") from error
    if not descriptors:
        raise causeway_ipc.Withdrawn(f"the export {export.hex()} was closed")
    return descriptors[0]


_sender: Sender | None = None


def offer(wrapper: Any) -> None:
    """Offers the descriptor of a wrapper from this process."""
    global _sender
    if _sender is None or _sender.pid != os.getpid():
        _sender = Sender()
    _sender.offer(wrapper)


def install_sender() -> None:
    """Offers the descriptor of every `VmmCudaIPCWrapper` that is made in this process from here on."""
    from lmcache.v1.platform.devices.cuda.ipc_wrapper import VmmCudaIPCWrapper

    made = VmmCudaIPCWrapper.__init__

    def make(self: Any, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        offer(self)

    VmmCudaIPCWrapper.__init__ = make


def install_receiver() -> None:
    """LMCache's wrappers ask here for their descriptors."""
    from lmcache.v1.platform.devices.cuda.ipc_wrapper import set_vmm_fd_resolver

    set_vmm_fd_resolver(resolve)
