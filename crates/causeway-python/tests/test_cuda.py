"""The logic of CUDA over the software driver that `cargo build -p soft-cuda` makes, or over a GPU."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import causeway_ipc as cw
import numpy as np
import pytest
from conftest import becomes

DEVICES = [name for name, _ in cw.devices() if name.startswith("cuda")]
pytestmark = pytest.mark.skipif(not DEVICES, reason="no CUDA device: put soft-cuda's library into LD_LIBRARY_PATH as libcuda.so.1")

READ = """
opened = cw.open(sys.argv[1])
print(opened.device, *np.from_dlpack(opened, device="cpu").ravel())
"""


class Foreign:
    """An array of another library, as CuPy would have it."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (address, False), "version": 3}


def current(cuda: Any) -> None:
    """The device's primary context becomes this thread's."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    assert cuda.cuInit(0) == cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == cuda.cuCtxPushCurrent_v2(context) == 0


def test_an_array_on_the_device_is_shared_and_copied_to_the_host(peer: Any) -> None:
    array = cw.array(np.arange(12, dtype="float32").reshape(3, 4), device="cuda")
    assert array.device == "cuda:0" and array.__dlpack_device__() == (2, 0)
    assert array.__cuda_array_interface__["shape"] == (3, 4)
    with cw.share(array[1:, ::2]) as export:
        assert peer(READ, export.ticket).hear() == "cuda:0 4.0 6.0 8.0 10.0"
    with pytest.raises(TypeError, match="device='cpu'"):
        np.asarray(array)
    with pytest.raises(BufferError, match="an array on cuda:0 is no buffer"):
        array.memoryview()
    assert not hasattr(array, "__array_interface__") and not hasattr(cw.empty(1), "__cuda_array_interface__")


def test_the_streams_of_dlpack_are_checked() -> None:
    array = cw.empty(4, "float32", "cuda")
    for stream in [None, -1, 1, 2, 77]:
        array.__dlpack__(stream=stream)
    for stream in [0, -2]:
        with pytest.raises(BufferError, match="ambiguous"):
            array.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="copy"):
        array.__dlpack__(dl_device=(1, 0), copy=False)


def test_memory_that_another_library_allocated_is_shared_where_it_is(peer: Any) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    address = ctypes.c_uint64()
    current(cuda)
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), 4096) == 0
    values = np.arange(4, dtype="float32")
    to, size = ctypes.c_uint64(address.value + 64), ctypes.c_size_t(16)
    assert cuda.cuMemcpyAsync(to, ctypes.c_uint64(values.ctypes.data), size, None) == cuda.cuCtxSynchronize() == 0
    foreign = Foreign(address.value + 64, 4)
    with cw.share(foreign) as export:
        assert export.array is None
        assert peer(READ, export.ticket).hear() == "cuda:0 0.0 1.0 2.0 3.0"
    with cw.share_many({"a": foreign, "b": Foreign(address.value + 64, 4)}) as export:
        assert sorted(cw.open(export)) == ["a", "b"]
    with pytest.raises(cw.InvalidUse, match="ends 4032 bytes behind"):
        cw.share(Foreign(address.value + 64, 4096))
    with pytest.raises(cw.Unsupported, match="another library"):
        cw.share(foreign, read_only=True)
    with pytest.raises(cw.Unsupported, match="driver's descriptor"):
        cw.empty(4, device="cuda", read_only=True)


def test_arrays_of_one_allocation_have_one_export(peer: Any) -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    current(cuda)
    arrays: dict[str, Any] = {}
    allocations, each = 70, 5  # opened by several threads
    for one in range(allocations):
        address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), 2 << 20) == 0
        for number in reversed(range(each)):  # neither in the order of their addresses nor in that of their allocations
            at, name = address.value + 512 * number, f"{number} of {one}"
            values = np.array([one, number], "float32")
            to, size = ctypes.c_uint64(at), ctypes.c_size_t(8)
            assert cuda.cuMemcpyAsync(to, ctypes.c_uint64(values.ctypes.data), size, None) == 0
            arrays[name] = Foreign(at, 2)
    assert cuda.cuCtxSynchronize() == 0
    arrays = dict(sorted(arrays.items()))
    code = """
opened = cw.open(sys.argv[1])
right = all(np.from_dlpack(array, device="cpu").tolist() == [int(name.split()[2]), int(name.split()[0])] for name, array in opened.items())
print(right, list(opened) == sorted(opened), len(opened))
"""
    with cw.share(arrays["0 of 0"]) as single, cw.share_many(arrays) as export:
        # A ticket of one array says more than 250 characters; of an array in an allocation that is exported, some 100.
        assert len(export.ticket) < allocations * len(single.ticket) + 110 * len(arrays)
        assert peer(code, export.ticket).hear() == f"True True {allocations * each}"
        ticket = export.ticket
    late = peer("try:\n    cw.open(sys.argv[1])\nexcept cw.Withdrawn:\n    print('withdrawn')", ticket)
    assert late.hear() == "withdrawn"


def test_arrays_of_empty_many_are_one_export_of_the_device(peer: Any) -> None:
    arrays = cw.empty_many({str(number): ((2, 3), "int32") for number in range(100)}, "cuda")
    current(ctypes.CDLL("libcuda.so.1"))
    with cw.share_many(arrays) as export, cw.share(arrays["7"]) as single:
        assert len(export.ticket) < 2 * len(single.ticket) + 100 * 110
        code = "opened = cw.open(sys.argv[1])\nprint(len(opened), {a.device for a in opened.values()}, opened['99'].ptr - opened['0'].ptr)"
        assert peer(code, export.ticket).hear() == f"100 {{'cuda:0'}} {99 * 256}"


def test_events_order_streams(peer: Any) -> None:
    event = cw.Event("cuda")
    with cw.share(event) as export:
        other = peer("event = cw.open(sys.argv[1])\nevent.wait()\nevent.record()\nevent.synchronize(5)\nprint(event.device)", export.ticket)
        event.record()
        event.wait()
        event.synchronize(5)
        assert other.hear() == "cuda:0" and event.query()


def test_a_channel_of_the_device(peer: Any) -> None:
    with cw.Channel(device="cuda") as channel:
        other = peer("for array in cw.open(sys.argv[1]):\n    print(*np.from_dlpack(array, device='cpu'))", channel.ticket)
        for number in range(3):
            channel.send(cw.array(np.full(2, number, "float32"), device="cuda"))
        assert [other.hear() for _ in range(3)] == ["0.0 0.0", "1.0 1.0", "2.0 2.0"]


HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class OwnStream:
    """A stream of another library, which destroys it with its object, as CuPy does."""

    def __init__(self, cuda: Any) -> None:
        self.cuda, self.handle = cuda, ctypes.c_void_p()
        assert cuda.cuStreamCreate(ctypes.byref(self.handle), 1) == 0
        self.ptr = self.handle.value

    def __del__(self) -> None:
        assert self.cuda.cuStreamDestroy_v2(self.handle) == 0


def test_a_stream_lives_as_long_as_the_driver_may_be_asked_about_it() -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    current(cuda)
    event, stream = cw.Event("cuda"), OwnStream(cuda)
    known = weakref.ref(stream)
    event.record(stream)
    event.synchronize(timeout=30)
    del stream
    gc.collect()
    assert known() is not None


def test_a_channel_that_is_fed_from_two_streams_waits_for_both() -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    gate, reached, held = threading.Event(), threading.Event(), HOST_FUNCTION(lambda _: gate.wait(30) and None)
    streams = [ctypes.c_void_p() for _ in range(3)]
    array = cw.empty(4, "float32", "cuda")  # starts the driver
    current(cuda)
    for stream in streams:
        assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
    slow, fast, receiving = streams
    with cw.Channel(device="cuda") as channel, cw.open(channel.ticket) as receiver:
        assert cuda.cuLaunchHostFunc(slow, held, None) == 0
        channel.send(array, stream=slow.value)
        channel.send(array, stream=fast.value)
        receiver.receive(stream=receiving.value)
        receiver.receive(stream=receiving.value)
        done = HOST_FUNCTION(lambda _: reached.set())
        assert cuda.cuLaunchHostFunc(receiving, done, None) == 0
        assert not reached.wait(0.2), "the work of the slow stream is not done yet"
        gate.set()
        assert reached.wait(30)


NEVER = """
import ctypes, threading
cuda = ctypes.CDLL("libcuda.so.1")
event, stream, device, context = cw.Event("cuda"), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuDeviceGet(ctypes.byref(device), 0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert cuda.cuCtxPushCurrent_v2(context) == cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
held = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: threading.Event().wait() and None)
assert cuda.cuLaunchHostFunc(stream, held, None) == 0
event.record(stream.value)
export = cw.share(event)
print(export.ticket)
sys.stdin.read()
"""
"""A process that records an event behind work which never ends."""


def new_stream() -> int:
    cuda, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    current(cuda)
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
    return int(stream.value or 0)


def test_a_stream_that_waited_for_a_dead_process_waits_for_living_ones(peer: Any) -> None:
    dead, own = peer(NEVER), cw.Event("cuda")
    never, stream, other = cw.open(dead.hear()), new_stream(), new_stream()
    never.wait(stream)
    dead.kill()
    with pytest.raises(cw.ExporterGone):
        never.synchronize(30)
    gate = threading.Event()
    held = HOST_FUNCTION(lambda _: gate.wait(30) and None)
    assert ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc(ctypes.c_void_p(other), held, None) == 0
    own.record(other)
    own.wait(stream)  # which is not told of the other event's fate
    pending = own._pending()  # nor is a wait of the host
    gate.set()
    own.synchronize(30)
    assert becomes(pending.done)
    with pytest.raises(cw.ExporterGone):
        never.wait(stream)


def test_a_stream_lets_go_of_what_will_never_come(peer: Any, is_long: bool) -> None:
    if not is_long:
        pytest.skip("--long: as many processes as a stream keeps connections of, and more")
    stream, other, own = new_stream(), new_stream(), cw.Event("cuda")
    connections = []
    for _ in range(100):
        dead = peer(NEVER)
        never = cw.open(dead.hear())
        never.wait(stream)
        dead.kill()
        with pytest.raises(cw.ExporterGone):
            never.synchronize(30)
        del never
        for _ in range(2):  # the first is told, the second sees that the stream has gone on
            own.record(other)
            own.wait(stream)
        gc.collect()
        names = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path))
        connections.append(sum(name.startswith("socket:") for name in names))
    assert max(connections) < 70, connections


@pytest.mark.parametrize("whom", ["consumers", "producers"])
def test_killed_processes_leave_nothing_on_the_device(whom: str, is_long: bool, tmp_path: Path) -> None:
    count = 200 if is_long else 10
    command = [sys.executable, str(Path(__file__).with_name("kills.py")), whom, str(count), "--device", "cuda", "--lanes", "2"]
    tmp_path.chmod(0o700)
    environment = os.environ | {"CAUSEWAY_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} {whom} killed\n" in done.stdout


def test_arrays_of_two_devices_need_two_tickets() -> None:
    with pytest.raises(cw.InvalidUse, match="each device"):
        cw.share_many({"a": cw.empty(1), "b": cw.empty(1, device="cuda")})


DRIVER = """
import ctypes, threading, types
import multiprocessing.connection
import causeway_ipc.multiprocessing
cuda = ctypes.CDLL("libcuda.so.1")

class ndarray:
    '''CuPy's, as far as it is needed here: memory of the device, seen through one of our arrays or through an allocation.'''
    def __init__(self, interface, keep):
        self.__cuda_array_interface__, self.keep = interface, keep
        self.shape, self.dtype, self.ptr = interface["shape"], np.dtype(interface["typestr"]), interface["data"][0]
        self.nbytes = self.dtype.itemsize * int(np.prod(self.shape))
        self.strides = interface.get("strides")
        self.device = types.SimpleNamespace(id=0, type="cuda", index=0)
    def __setitem__(self, key, other):
        stream = ctypes.c_void_p(current_stream())
        sizes = ctypes.c_uint64(self.ptr), ctypes.c_uint64(other.ptr), ctypes.c_size_t(self.nbytes)
        assert self.strides == other.strides  # CuPy's copies elements, this one bytes
        assert key is ... and cuda.cuMemcpyAsync(*sizes, stream) == 0
    def numpy(self):
        return cw.array(self).numpy()

streams = []
def current_stream():
    return streams[-1] if streams else new_stream()
def new_stream():
    stream = ctypes.c_void_p()
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
    streams.append(stream.value)
    return stream.value
device, context = ctypes.c_int(), ctypes.c_void_p()
assert cuda.cuInit(0) == cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == cuda.cuCtxPushCurrent_v2(context) == 0

def interface(values):
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes)) == 0
    host = ctypes.c_uint64(values.ctypes.data)
    assert cuda.cuMemcpyAsync(address, host, ctypes.c_size_t(values.nbytes), None) == cuda.cuCtxSynchronize() == 0
    strides = None if values.flags.c_contiguous else values.strides
    return {"shape": values.shape, "typestr": values.dtype.str, "data": (address.value, False), "strides": strides, "version": 3}
def allocated(values):
    return module.ndarray(interface(values), None)
"""
CONNECT = """
causeway_ipc.multiprocessing.install()
connection = multiprocessing.connection.Client(sys.argv[1]) if len(sys.argv) > 1 else multiprocessing.connection.Listener()
"""
CUPY = (
    DRIVER
    + """
module = types.ModuleType("cupy")
stream_of = lambda: types.SimpleNamespace(ptr=current_stream())
module.ndarray, module.cuda = ndarray, types.SimpleNamespace(get_current_stream=stream_of)
module.from_dlpack = lambda array: ndarray(array.__cuda_array_interface__, array)
sys.modules["cupy"] = module
"""
    + CONNECT
)
TORCH = (
    DRIVER
    + """
from contextlib import nullcontext

module = types.ModuleType("torch")
module.strided, module.uint8 = object(), "uint8"
class Tensor(ndarray):
    '''PyTorch's, as far as it is needed here.'''
    layout, is_leaf, requires_grad = module.strided, True, False
    def detach(self):
        return Tensor(self.__cuda_array_interface__, self.keep)
    def numel(self):
        return int(np.prod(self.shape))
    def is_conj(self):
        return False
    is_neg = is_conj
    def requires_grad_(self, value=True):
        self.requires_grad = value
        return self
    def untyped_storage(self):
        return UntypedStorage(self)
    def set_(self, storage):
        said = storage.tensor.__cuda_array_interface__
        return Tensor({**said, "shape": (storage.tensor.nbytes,), "typestr": "|u1"}, storage.tensor)
class Parameter(Tensor):
    def __init__(self, tensor, requires_grad=True):
        super().__init__(tensor.__cuda_array_interface__, tensor)
        self.requires_grad = requires_grad
class UntypedStorage:
    def __init__(self, tensor):
        self.tensor, self.device = tensor, tensor.device
    def nbytes(self):
        return self.tensor.nbytes
class Event:
    device = None
    def record(self):
        self.device, self.handle = types.SimpleNamespace(type="cuda", index=0), ctypes.c_void_p()
        assert cuda.cuEventCreate(ctypes.byref(self.handle), 2) == 0
        assert cuda.cuEventRecord(self.handle, ctypes.c_void_p(current_stream())) == 0
class Stream:
    def __init__(self, device):
        stream = ctypes.c_void_p()
        assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        self.cuda_stream = stream.value
    def wait_event(self, event):
        if event.device:
            assert cuda.cuStreamWaitEvent(ctypes.c_void_p(self.cuda_stream), event.handle, 0) == 0
module.Tensor, module.UntypedStorage, module.ndarray = Tensor, UntypedStorage, Tensor
module.nn, module.version = types.SimpleNamespace(Parameter=Parameter), types.SimpleNamespace(hip=None)
module.device = lambda kind, index: types.SimpleNamespace(type=kind, index=index)
module.empty = lambda count, dtype, device: Tensor({"shape": (0,), "typestr": "|u1", "data": (0, False), "version": 3}, None)
class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64))]
inside = ctypes.pythonapi.PyCapsule_GetPointer
inside.restype, inside.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
def from_dlpack(capsule):
    said = DLTensor.from_address(inside(capsule, b"dltensor"))
    assert tuple(said.device) == (2, 0)
    interface = {"shape": tuple(said.shape[:said.ndim]), "typestr": f"<{'iuf'[said.code]}{said.bits // 8}", "data": (said.data, False), "version": 3}
    return Tensor(interface, capsule)
module.from_dlpack = from_dlpack
module.cuda = types.SimpleNamespace(Event=Event, Stream=Stream, device=nullcontext, current_device=lambda: 0,
    current_stream=lambda device: types.SimpleNamespace(cuda_stream=current_stream()))
sys.modules["torch"] = module
multiprocessing.reduction.ForkingPickler.register(UntypedStorage, UntypedStorage.nbytes)  # which PyTorch does itself
"""
    + CONNECT
)


def test_arrays_of_cupy_travel_on_the_device_and_in_order(peer: Any) -> None:
    sender = peer(CUPY + """
print(connection.address, flush=True)
with connection.accept() as connection:
    for number in range(20):
        if number % 3 == 0:
            new_stream()
        connection.send([allocated(np.full((3, 4), number, "float32"))])
    ours = module.from_dlpack(cw.array(np.zeros(4, "int64"), device="cuda"))
    connection.send(ours)
    connection.recv()
    print(*ours.numpy(), causeway_ipc.multiprocessing.outstanding())
""")  # fmt: skip
    receiver = peer(CUPY + """
for number in range(20):
    [array] = connection.recv()
    cuda.cuCtxSynchronize()
    assert type(array) is ndarray and array.shape == (3, 4) and (array.numpy() == number).all()
array = connection.recv()
array[...] = allocated(np.arange(4))
cuda.cuCtxSynchronize()
connection.send(None)
print("received")
sys.stdin.read()
""", sender.hear())  # fmt: skip
    assert receiver.hear() == "received"
    assert sender.hear() == "0 1 2 3 0"


def test_what_is_copied_on_the_device_keeps_the_order_of_its_elements(peer: Any) -> None:
    sender = peer(CUPY + """
print(connection.address, flush=True)
with connection.accept() as connection:
    connection.send(allocated(np.asfortranarray(np.arange(12.0).reshape(3, 4))))
    connection.send(allocated(np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0)))
    connection.recv()
""")  # fmt: skip
    receiver = peer(CUPY + """
matrix, cube = connection.recv(), connection.recv()
cuda.cuCtxSynchronize()
print(matrix.strides, (matrix.numpy() == np.arange(12.0).reshape(3, 4)).all())
print(cube.strides, (cube.numpy() == np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0)).all())
connection.send(None)
""", sender.hear())  # fmt: skip
    assert receiver.hear() == "(8, 24) True"
    assert receiver.hear() == "(32, 8, 96) True"


def test_tensors_storages_and_events_of_torch_travel_on_the_device_and_in_order(peer: Any) -> None:
    sender = peer(TORCH + """
print(connection.address, flush=True)
with connection.accept() as connection:
    for number in range(20):
        if number % 3 == 0:
            new_stream()
        connection.send([allocated(np.full((3, 4), number, "float32")).requires_grad_(number % 2 == 0)])
    connection.send(Parameter(allocated(np.arange(5))))
    connection.send(allocated(np.arange(6, dtype="uint8")).untyped_storage())
    ours = cw.array(np.zeros(4, "int64"), device="cuda").torch()
    connection.send(ours)
    connection.recv()
    print(*ours.numpy(), causeway_ipc.multiprocessing.outstanding(), flush=True)
    gate, event = threading.Event(), Event()
    held = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(30) and None)
    connection.send(event)  # never recorded
    assert cuda.cuLaunchHostFunc(ctypes.c_void_p(new_stream()), held, None) == 0
    event.record()
    connection.send(event)
    connection.recv()
    gate.set()
    connection.recv()
""")  # fmt: skip
    receiver = peer(TORCH + """
for number in range(20):
    [tensor] = connection.recv()
    cuda.cuCtxSynchronize()
    assert type(tensor) is Tensor and tensor.requires_grad == (number % 2 == 0) and (tensor.numpy() == number).all()
parameter = connection.recv()
cuda.cuCtxSynchronize()
assert type(parameter) is Parameter and parameter.requires_grad and parameter.numpy().tolist() == [0, 1, 2, 3, 4]
storage = connection.recv()
cuda.cuCtxSynchronize()
assert type(storage) is UntypedStorage and storage.tensor.numpy().tolist() == [0, 1, 2, 3, 4, 5]
tensor = connection.recv()
tensor[...] = allocated(np.arange(4))
cuda.cuCtxSynchronize()
connection.send(None)
fresh, event = connection.recv(), connection.recv()
fresh.synchronize(30)
print(fresh.query(), event.query())
connection.send(None)
event.synchronize(30)
print(event.query())
connection.send(None)
""", sender.hear())  # fmt: skip
    assert receiver.hear() == "True False"
    assert receiver.hear() == "True"
    assert sender.hear() == "0 1 2 3 0"
