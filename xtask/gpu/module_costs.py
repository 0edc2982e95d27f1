"""What it costs to hand tensors of a GPU to another process: the Python module beside PyTorch's own way, and beside the driver alone.

    python3 module_costs.py [ROUNDS]

1,000 tensors of 1 MiB to a new process, and again and again to the same; 115 x 170 small tensors; and, without either library, what the
driver's calls for as many allocations take, which is the least that either can. Both processes have started the device before the clock
does. In turn, medians. PYTORCH_CUDA_ALLOC_CONF is as the caller set it.
"""
import array as numbers
import ctypes
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time

import causeway_ipc
import torch
import torch.multiprocessing

MIB, TENSORS, MODEL = 1 << 20, 1000, 115 * 170
ALLOCATION, ALLOCATIONS = 2 << 20, 500
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PATIENCE = 60
SEGMENTS = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
seconds = time.perf_counter


def receiver(pipe):
    """Has a tensor of each of what it is sent, and says how long the parts of that took; it keeps nothing."""
    torch.zeros(1, device="cuda")  # what a process does once, of both
    causeway_ipc.empty(1, "uint8", "cuda")
    pipe.send(None)
    while (given := pipe.recv()) is not None:
        begun = seconds()
        opened = causeway_ipc.open(given) if isinstance(given, str) else given
        then = seconds()
        tensors = [array.torch() for array in opened.values()] if isinstance(opened, dict) else opened
        pipe.send((len(tensors), then - begun, seconds() - then))
        del tensors, given, opened


def one_by_one(pipe):
    """As `receiver`, of tensors that come one by one."""
    torch.zeros(1, device="cuda")
    pipe.send(None)
    while (count := pipe.recv()) is not None:
        tensors = [pipe.recv() for _ in range(count)]
        pipe.send((len(tensors), 0.0, 0.0))
        del tensors


class Other:
    """The other process."""

    def __init__(self, target=receiver):
        context = torch.multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(theirs,), daemon=True)
        self.process.start()
        assert self.pipe.poll(PATIENCE)
        self.pipe.recv()

    def answer(self, count):
        assert self.pipe.poll(PATIENCE)
        had, opened, made = self.pipe.recv()
        assert had == count
        return opened, made

    def end(self):
        self.pipe.send(None)
        self.process.join(PATIENCE)
        assert self.process.exitcode == 0


def by_ticket(other, tensors, parts):
    """Seconds to hand over the tensors under one ticket."""
    begun = seconds()
    with causeway_ipc.share_many(tensors) as export:
        ticket = export.ticket
        shared = seconds() - begun
        other.pipe.send(ticket)
        opened, made = other.answer(len(tensors))
        took = seconds() - begun
    parts.append((shared, opened, made))
    return took


def by_torch(other, tensors, parts):
    begun = seconds()
    other.pipe.send(list(tensors.values()))
    other.answer(len(tensors))
    return seconds() - begun


def by_torch_one_by_one(other, tensors, parts):
    begun = seconds()
    other.pipe.send(len(tensors))
    for tensor in tensors.values():
        other.pipe.send(tensor)
    other.answer(len(tensors))
    return seconds() - begun


def in_turn(ways, given, again, rounds):
    """The median of each way, and what the others take beside PyTorch's; `again` says whether to the same process each time."""
    took, parts = {way: [] for way in ways}, {way: [] for way in ways}
    others = {}
    for number in range(rounds + again):
        for way, (call, target) in ways.items():
            if way not in others:
                others[way] = Other(target)
            each = call(others[way], given[way], parts[way])
            if number or not again:
                took[way].append(each)
            if not again:
                others.pop(way).end()
    for other in others.values():
        other.end()
    medians = {way: statistics.median(times) for way, times in took.items()}
    for way, times in took.items():
        line = f"  {way}: {medians[way] * 1e3:.2f} ms ({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f})"
        if parts[way]:
            shared, opened, made = (statistics.median(part) * 1e3 for part in zip(*parts[way][again:]))
            line += f"; share_many {shared:.2f}, open {opened:.2f}, torch() {made:.2f}"
        print(line, flush=True)
    return medians


def judge(name, ours, theirs, most):
    """A line for people and one for programs: whether it takes no more than so much of PyTorch's time."""
    ratio = ours / theirs
    print(f"{'PASS' if ratio <= most else 'MISS'} {name}: {ours * 1e3:.2f} ms against {theirs * 1e3:.2f}: {ratio:.3f} (limit {most})")
    print("RESULT", json.dumps({"name": name, "ours_ms": ours * 1e3, "torch_ms": theirs * 1e3, "ratio": ratio, "limit": most}), flush=True)


def tensors_of_torch(count, length):
    made = {str(number): torch.ones(length, dtype=torch.uint8, device="cuda") for number in range(count)}
    torch.cuda.synchronize()
    return made


def tensors_of(arrays):
    return {name: array.torch() for name, array in arrays.items()}


def copied_by_ticket(other, tensors, parts):
    """As `by_ticket`, after a copy into one new allocation: the tensors stay their owner's."""
    begun = seconds()
    placed = tensors_of(causeway_ipc.empty_many(tensors, "cuda"))
    torch._foreach_copy_(list(placed.values()), list(tensors.values()))
    torch.cuda.synchronize()
    return seconds() - begun + by_ticket(other, placed, parts)


def a_thousand():
    theirs = tensors_of_torch(TENSORS, MIB)
    together = tensors_of(causeway_ipc.empty_many(theirs, "cuda"))
    apart = {name: causeway_ipc.empty(MIB, "uint8", "cuda").torch() for name in theirs}
    ways = {
        "PyTorch's tensors, PyTorch": (by_torch, theirs),
        "PyTorch's tensors, one ticket": (by_ticket, theirs),
        "PyTorch's tensors, copied to empty_many, one ticket": (copied_by_ticket, theirs),
        "tensors of empty_many, one ticket": (by_ticket, together),
        "tensors of empty, one ticket": (by_ticket, apart),
    }
    if SEGMENTS:  # what does not lie in PyTorch's memory is the same with either
        ways = dict(list(ways.items())[:2])
    calls, given = {way: (call, receiver) for way, (call, _) in ways.items()}, {way: its for way, (_, its) in ways.items()}
    allocator = "expandable segments" if SEGMENTS else "the default allocator"
    for again, what in [(False, "to a new process"), (True, "again to a process that let go of them")]:
        print(f"{TENSORS} tensors of 1 MiB {what}, {allocator}:")
        yardstick, *others = in_turn(calls, given, again, ROUNDS).values()
        for way, ours in zip(list(ways)[1:], others):
            judge(f"1,000 tensors of 1 MiB {what} ({allocator}): {way}", ours, yardstick, 0.5)


def a_model():
    tensors = tensors_of_torch(MODEL, 4096)
    ways = {"PyTorch, one by one": (by_torch_one_by_one, one_by_one), "one ticket": (by_ticket, receiver)}
    print(f"{MODEL} tensors of 4 KiB to a new process:")
    yardstick, ours = in_turn(ways, dict.fromkeys(ways, tensors), False, 2).values()
    judge(f"115 x 170 tensors, share_many{' (expandable segments)' if SEGMENTS else ''}", ours, yardstick, 0.25)


class Driver:
    """The driver alone, through ctypes: what names an allocation goes over a socket, and is opened there."""

    class Properties(ctypes.Structure):
        _fields_ = [("kind", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int), ("device", ctypes.c_int),
                    ("win32", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]  # fmt: skip

    class Access(ctypes.Structure):
        _fields_ = [("place", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]

    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_ubyte * 64)]

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.properties = self.Properties(1, 1, 1, 0)  # pinned memory of device 0, POSIX descriptors

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        assert code == 0, f"{name}: {code}"

    def legacy(self):
        """The handle of a new allocation of `cuMemAlloc`."""
        at, handle = ctypes.c_uint64(), self.Handle()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(ALLOCATION))
        begun = seconds()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), at)
        return bytes(handle.bytes), seconds() - begun

    def open_legacy(self, handles):
        self.cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, self.Handle, ctypes.c_uint]
        at, begun = ctypes.c_uint64(), seconds()
        for handle in handles:
            self.call("cuIpcOpenMemHandle_v2", ctypes.byref(at), self.Handle.from_buffer_copy(handle), 1)
        return seconds() - begun

    def physical(self):
        """The descriptor of new physical memory."""
        handle, descriptor = ctypes.c_uint64(), ctypes.c_int()
        self.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(ALLOCATION), ctypes.byref(self.properties), ctypes.c_uint64())
        begun = seconds()
        self.call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, 1, ctypes.c_uint64())
        return descriptor.value, seconds() - begun

    def map_all(self, descriptors):
        """Seconds to import, and to map and give access."""
        at, whole, begun = ctypes.c_uint64(), ctypes.c_size_t(ALLOCATION * len(descriptors)), seconds()
        self.call("cuMemAddressReserve", ctypes.byref(at), whole, ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_uint64())
        handles = []
        for descriptor in descriptors:
            handles.append(ctypes.c_uint64())
            self.call("cuMemImportFromShareableHandle", ctypes.byref(handles[-1]), ctypes.c_void_p(descriptor), 1)
        imported = seconds() - begun
        for number, handle in enumerate(handles):
            place = ctypes.c_uint64(at.value + number * ALLOCATION)
            self.call("cuMemMap", place, ctypes.c_size_t(ALLOCATION), ctypes.c_size_t(), handle, ctypes.c_uint64())
        access = self.Access(1, 0, 3)
        self.call("cuMemSetAccess", at, whole, ctypes.byref(access), ctypes.c_size_t(1))
        return imported, seconds() - begun - imported


def driver_alone(path):
    """The process that opens."""
    driver = Driver()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        stream = link.makefile("rb")
        handles = [stream.read(64) for _ in range(ALLOCATIONS)]
        took = [driver.open_legacy(handles)]
        link.sendall(b".")
        descriptors = numbers.array("i")
        while len(descriptors) < ALLOCATIONS:
            _, more, _, _ = socket.recv_fds(link, 1, 250)
            descriptors.extend(more)
        took += driver.map_all(descriptors)
        link.sendall(json.dumps(took).encode())


def the_driver():
    driver, path = Driver(), f"/tmp/module-costs-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        process = multiprocessing.get_context("spawn").Process(target=driver_alone, args=(path,), daemon=True)
        process.start()
        link, _ = listener.accept()
        handles = [driver.legacy() for _ in range(ALLOCATIONS)]
        link.sendall(b"".join(handle for handle, _ in handles))
        assert link.recv(1) == b"."
        descriptors = [driver.physical() for _ in range(ALLOCATIONS)]
        for first in range(0, ALLOCATIONS, 250):
            socket.send_fds(link, [b"."], [descriptor for descriptor, _ in descriptors[first : first + 250]])
        opened, imported, mapped = json.loads(link.recv(4096))
        process.join(PATIENCE)
    os.unlink(path)
    named = [sum(took for _, took in made) * 1e3 for made in (handles, descriptors)]
    print(f"the driver alone, {ALLOCATIONS} allocations of 2 MiB: cuIpcGetMemHandle {named[0]:.1f} ms, cuIpcOpenMemHandle {opened * 1e3:.1f};")
    print(f"  physical: export {named[1]:.1f} ms, import {imported * 1e3:.1f}, map and access {mapped * 1e3:.1f}", flush=True)


def main():
    print(f"allocator: {os.environ.get('PYTORCH_CUDA_ALLOC_CONF', 'as PyTorch has it')}; {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    if not SEGMENTS:
        the_driver()
    a_thousand()
    a_model()


if __name__ == "__main__":
    main()
