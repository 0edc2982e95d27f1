"""Programs of SYCL on the adapters of the wheel."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import causeway_ipc as cw
import numpy as np
import pytest

MODULE = [sys.executable, "-m", "causeway_ipc", "sycl"]
SAY = [sys.executable, "-c", "import os, sys; print(os.environ['UR_ADAPTERS_FORCE_LOAD'], *sys.argv[1:])"]


def test_the_wheel_has_the_adapters_that_it_names() -> None:
    found = cw.sycl_environment("cpu", "cuda", "level_zero", "cpu")
    paths = found["UR_ADAPTERS_FORCE_LOAD"].split(",")
    assert [os.path.basename(path) for path in paths] == [
        "libur_adapter_native_cpu.so.0", "libur_adapter_cuda.so.0", "libur_adapter_level_zero.so.0",
    ]  # fmt: skip
    assert all(open(path, "rb").read(4) == b"\x7fELF" for path in paths)
    assert cw.sycl_environment()["UR_ADAPTERS_FORCE_LOAD"] == paths[0]
    with pytest.raises(cw.WrongDevice, match="cuda or level_zero"):
        cw.sycl_environment("opencl")


def test_a_program_is_run_with_its_arguments_and_its_exit_status() -> None:
    done = subprocess.run([*MODULE, "--on", "cuda", "--", *SAY, "--one", "two"], capture_output=True, text=True, timeout=60)
    assert done.stdout == cw.sycl_environment("cuda")["UR_ADAPTERS_FORCE_LOAD"] + " --one two\n"
    done = subprocess.run([*MODULE, "--", sys.executable, "-c", "raise SystemExit(7)"], timeout=60)
    assert done.returncode == 7
    for program in [["ls", "-la", "/"], ["--", "ls", "-la", "/"], ["--on", "cpu", "ls", "-la", "/"]]:
        done = subprocess.run([*MODULE, *program], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "total" in done.stdout, done.stderr
    for nothing in [["--on", "cpu", "--"], ["--", ""]]:
        done = subprocess.run([*MODULE, *nothing], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "name the program" in done.stderr
    for wrong, said in [(["--on", "hip", "--", "true"], "no adapter for hip"), (["--", "/nowhere"], "No such file")]:
        done = subprocess.run([*MODULE, *wrong], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and said in done.stderr


def test_what_is_set_for_sycl_is_not_for_this_module() -> None:
    code = """
import os, causeway_ipc as cw
assert os.environ["UR_ADAPTERS_FORCE_LOAD"].endswith("libur_adapter_cuda.so.0")
assert cw.empty(3).device == "cpu"
"""
    subprocess.run([*MODULE, "--on", "cuda", "--", sys.executable, "-c", code], check=True, timeout=60)
    code = "import os, causeway_ipc as cw\nos.environ.update(cw.sycl_environment('cuda'))\nassert cw.empty(3).device == 'cpu'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(importlib.util.find_spec("dpctl") is None, reason="dpctl is not installed")
def test_dpctl_computes_on_the_cpu() -> None:
    code = """
import dpctl, dpctl.memory
import numpy as np
devices = dpctl.get_devices()
assert len(devices) == 1 and devices[0].is_cpu, devices
memory = dpctl.memory.MemoryUSMShared(4096, queue=dpctl.SyclQueue(devices[0]))
memory.copy_from_host(np.arange(4096, dtype="uint16").astype("uint8"))
other = dpctl.memory.MemoryUSMDevice(4096, queue=memory.sycl_queue)
other.copy_from_device(memory)
assert (other.copy_to_host() == np.arange(4096).astype("uint8")).all()
import causeway_ipc
with causeway_ipc.share(other) as export:
    assert bytes(causeway_ipc.open(export).memoryview()) == other.tobytes()
"""
    done = subprocess.run([*MODULE, "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("dpctl") is None, reason="dpctl is not installed")
def test_events_order_queues_of_dpctl() -> None:
    code = """
import dpctl, dpctl.memory, subprocess, sys
import numpy as np
import causeway_ipc as cw
queue = dpctl.SyclQueue()
event, shared = cw.Event(), cw.empty(1 << 20, "uint8")
other = '''
import sys, numpy as np, causeway_ipc as cw
event, shared = (cw.open(ticket) for ticket in sys.argv[1:])
print("ready", flush=True)
sys.stdin.readline()
event.synchronize(30)
print(int(shared.numpy().min()), int(shared.numpy().max()), flush=True)
'''
with cw.share(event) as recorded, cw.share(shared) as memory:
    command = [sys.executable, "-c", other, recorded.ticket, memory.ticket]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\\n"
    source = dpctl.memory.MemoryUSMShared(1 << 20, queue=queue)
    source.memset(9)
    queue.memcpy_async(shared.memoryview(), source, 1 << 20)
    event.record(queue)
    event.wait(queue)
    assert process.communicate("look\\n", timeout=60)[0] == "9 9\\n"
"""
    done = subprocess.run([*MODULE, "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


class Awaited:
    """A queue of SYCL's that has work until it is waited for."""

    sycl_device = None
    waits = 0

    def wait(self) -> None:
        self.waits += 1


def test_a_record_waits_for_a_queue_of_sycl() -> None:
    queue, event = Awaited(), cw.Event()
    event.record(queue)
    assert queue.waits == 1 and event.query()
    event.wait(queue)
    assert queue.waits == 1, "nothing of the queue's comes before what is waited for"
    with pytest.raises(TypeError, match="dpctl"):
        event.record("a stream")



class Queue:
    """A queue of dpctl's, as far as it says where it is."""

    def __init__(self, name: str) -> None:
        self.sycl_device = type("Device", (), {"filter_string": name})


class Usm:
    """An array of SYCL over memory of the host."""

    def __init__(self, array: np.ndarray, place: object) -> None:
        size = array.itemsize
        self.keep = array
        self.__sycl_usm_array_interface__ = {
            "data": (array.ctypes.data - 2 * size, False), "offset": 2, "shape": array.shape,
            "strides": tuple(stride // size for stride in array.strides), "typestr": f"|i{size}", "version": 1, "syclobj": place,
        }  # fmt: skip


def test_arrays_of_sycl_on_the_cpu_are_shared_by_their_interface() -> None:
    whole = np.arange(30, dtype="int32").reshape(5, 6)
    for place in [Queue("opencl:cpu:0"), "native_cpu:cpu:0"]:
        with cw.share(Usm(whole[1:, ::2], place)) as export:
            opened = cw.open(export)
            assert opened.dtype == "int32" and opened.tolist() == whole[1:, ::2].tolist()
    with pytest.raises(cw.Unsupported, match="opencl:gpu:0"):
        cw.share(Usm(whole, Queue("opencl:gpu:0")))
    with pytest.raises(cw.WrongDevice):
        cw.share(Usm(whole, Queue("level_zero:gpu:77")))
    assert not hasattr(cw.empty(1), "__sycl_usm_array_interface__")
