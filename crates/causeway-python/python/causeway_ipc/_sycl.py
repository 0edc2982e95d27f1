"""Programs of SYCL, unmodified, on the adapters that came with this module."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import _causeway
from ._errors import Unsupported, WrongDevice

_FOLDER = Path(__file__).parent / "adapters"
_NAMES = {"cpu": "native_cpu", "native_cpu": "native_cpu", "cuda": "cuda", "level_zero": "level_zero"}
_LOADED = "UR_ADAPTERS_FORCE_LOAD"
_PASSES_FOR = "CAUSEWAY_NATIVE_CPU_BACKEND"


def sycl_environment(*devices: str) -> dict[str, str]:
    """The environment variables with which a program of SYCL runs on Causeway's adapters, and on no others.

    `devices` are "cpu", "cuda" and "level_zero"; without any, the CPU. Set the variables before the program starts,
    or before the process loads the SYCL runtime (before `import dpctl`); this module, whose drivers this starts, keeps all
    its devices then.

    The CPU says that it is one of OpenCL, which dpctl and the kernel compiler accept.
    """
    _causeway.devices()
    return _variables(devices)


def _variables(devices: Sequence[str]) -> dict[str, str]:
    libraries = []
    for device in devices or ("cpu",):
        name = _NAMES.get(device)
        if name is None:
            raise WrongDevice(f"there is no adapter for {device}: name cpu, cuda or level_zero")
        library = _FOLDER / f"libur_adapter_{name}.so.0"
        if not library.is_file():
            raise Unsupported(f"this installation lacks {library.name}: install a wheel of `cargo xtask wheel`")
        if str(library) not in libraries:
            libraries.append(str(library))
    found = {_LOADED: ",".join(libraries)}
    if any("native_cpu" in library for library in libraries):
        found[_PASSES_FOR] = "opencl"
    return found


def run(devices: list[str], command: list[str]) -> None:
    """Becomes the program, on these adapters."""
    environment = os.environ | _variables(devices)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def keep_apart() -> None:
    """Starts the drivers of this module without those variables, where a program was started with them: they are for SYCL."""
    if str(_FOLDER) in os.environ.get(_LOADED, ""):
        hidden = {name: os.environ.pop(name) for name in (_LOADED, _PASSES_FOR) if name in os.environ}
        try:
            _causeway.devices()
        finally:
            os.environ.update(hidden)
