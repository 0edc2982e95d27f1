"""The Python module on a GPU: arrays of PyTorch, CuPy and NumPy between two processes, in every order of two.

    python3 module.py [--denied] [pairs | memory]

What is allocated by the libraries themselves is shared where it is; tensors, storages and events of PyTorch, and arrays of
CuPy, go through `multiprocessing` (`pairs`). The device's memory is back after a receiver was killed, and after one closed it (`memory`).
With `--denied` this process and all that it starts may not use what containers deny: ptrace, process_vm_readv, process_vm_writev and
pidfd_getfd. PYTORCH_CUDA_ALLOC_CONF is as the caller set it.
"""
import ctypes
import importlib
import multiprocessing
import os
import struct
import sys
import time
from contextlib import nullcontext

import numpy as np

import causeway_ipc
import causeway_ipc.multiprocessing as causeway_multiprocessing

COUNT = 1 << 20
PATIENCE = 60
DENIED = {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438}  # on x86-64


class Numpy:
    on_device = False

    def make(self):
        return np.arange(COUNT)

    def of(self, shared):
        return shared.numpy() if shared.device == "cpu" else np.from_dlpack(shared, device="cpu")

    def values(self, array):
        return np.asarray(array)

    def finish(self):
        pass


class Torch(Numpy):
    on_device = True

    def __init__(self):
        import torch
        self.torch = torch

    def make(self):
        return self.torch.arange(COUNT, device="cuda")

    def of(self, shared):
        return shared.torch()

    def values(self, array):
        return array.cpu().numpy()

    def finish(self):
        self.torch.cuda.synchronize()


class Cupy(Numpy):
    on_device = True

    def __init__(self):
        import cupy
        self.cupy = cupy

    def make(self):
        return self.cupy.arange(COUNT)

    def of(self, shared):
        return self.cupy.asarray(shared.numpy()) if shared.device == "cpu" else shared.cupy()

    def values(self, array):
        return self.cupy.asnumpy(array)

    def finish(self):
        self.cupy.cuda.get_current_stream().synchronize()


LIBRARIES = {"numpy": Numpy, "torch": Torch, "cupy": Cupy}


def libraries():
    found = {}
    for name, kind in LIBRARIES.items():
        try:
            found[name] = kind()
        except ImportError as error:
            print(f"skipped {name}: {error}")
    return found


def receiver(name, pipe):
    """Opens what it is told of, checks it and adds 1."""
    library = LIBRARIES[name]()
    while (ticket := pipe.recv()) is not None:
        array = library.of(causeway_ipc.open(ticket))
        right = bool((library.values(array) == np.arange(COUNT)).all())
        array += 1
        library.finish()
        pipe.send(right)
        del array


def pairs(context, found):
    for to in found:
        pipe, theirs = context.Pipe()
        process = context.Process(target=receiver, args=(to, theirs), daemon=True)
        process.start()
        for origin, library in found.items():
            array = library.make()
            library.finish()
            with causeway_ipc.share(array) as export:
                pipe.send(export.ticket)
                assert pipe.recv(), f"{origin} to {to}: other values"
                # Seen here where both have the device's memory, or both the host's.
                is_one = library.on_device == LIBRARIES[to].on_device
                if is_one:
                    array = array if library.on_device else export.array.numpy()
                    assert (library.values(array) == np.arange(COUNT) + 1).all(), f"{origin} to {to}: not one memory"
            print(f"{origin} to {to}: right{', one memory' if is_one else ''}")
        pipe.send(None)
        process.join(PATIENCE)
        assert process.exitcode == 0


def taker(names, orders, answers):
    for name in names:
        importlib.import_module(name)
    causeway_multiprocessing.install()
    while (item := orders.get()) is not None:
        if isinstance(item, causeway_ipc.Event):
            item.synchronize(PATIENCE)
            answers.put(item.query())
        elif type(item).__name__ == "UntypedStorage":
            answers.put(item.cpu().tolist()[:4])
        else:
            total = item.sum()
            total = total.detach() if hasattr(total, "detach") else total
            answers.put((type(item).__module__.partition(".")[0], float(total)))


def through_multiprocessing(context, found):
    names = [name for name in ("torch", "cupy") if name in found]
    for name in names:
        importlib.import_module(name)
    causeway_multiprocessing.install()
    orders, answers = context.Queue(), context.Queue()
    process = context.Process(target=taker, args=(names, orders, answers), daemon=True)
    process.start()

    def ask(item):
        orders.put(item)
        return answers.get(timeout=PATIENCE)

    if "torch" in found:
        torch = found["torch"].torch
        for number in range(100):  # each on a stream of its own, and not waited for
            with torch.cuda.stream(torch.cuda.Stream()) if number % 2 else nullcontext():
                slow = torch.ones(COUNT, device="cuda") * number
                orders.put(slow)
        for number in range(100):
            assert answers.get(timeout=PATIENCE) == ("torch", float(number * COUNT)), number
        for kind in [torch.float16, torch.bfloat16, torch.int64, torch.uint8]:
            assert ask(torch.ones(1000, device="cuda").to(kind)) == ("torch", 1000.0), kind
        assert ask(torch.nn.Parameter(torch.ones(10, device="cuda"))) == ("torch", 10.0)
        assert ask(torch.arange(4, dtype=torch.uint8, device="cuda").untyped_storage()) == [0, 1, 2, 3]
        event = torch.cuda.Event()
        event.record()
        assert ask(event)
        print("multiprocessing: tensors from many streams, parameters, storages, events of PyTorch: right")
    if "cupy" in found:
        cupy = found["cupy"].cupy
        array = cupy.arange(1000).reshape(10, 100)[::2]
        assert ask(array) == ("cupy", float(array.sum()))
        print("multiprocessing: arrays of CuPy: right")
    orders.put(None)
    process.join(PATIENCE)
    assert process.exitcode == 0


def holder(tickets, pipe):
    held = [causeway_ipc.open(ticket) for ticket in tickets]
    pipe.send(len(held))
    pipe.recv()


def memory_comes_back(context, found):
    if "torch" not in found:
        return
    torch = found["torch"].torch
    free = lambda: torch.cuda.mem_get_info()[0]  # noqa: E731
    warm = causeway_ipc.empty(1 << 20, "uint8", "cuda")
    before = free()
    arrays = [causeway_ipc.empty(256 << 20, "uint8", "cuda") for _ in range(8)]
    exports = [causeway_ipc.share(array) for array in arrays]
    pipe, theirs = context.Pipe()
    process = context.Process(target=holder, args=([export.ticket for export in exports], theirs), daemon=True)
    process.start()
    assert pipe.recv() == 8
    process.kill()
    process.join()
    del exports, arrays
    begun = time.monotonic()
    while free() < before - (64 << 20) and time.monotonic() - begun < 10:
        time.sleep(0.01)
    took = time.monotonic() - begun
    print(f"2 GiB that a killed process had open are back after {took:.2f} s" if took < 10 else "NOT BACK after 10 s")
    assert took < 1, "not back within a second"
    del warm


def closer(pipe):
    """Opens and closes what it is told of, and stays."""
    causeway_ipc.empty(1, "uint8", "cuda")
    while (ticket := pipe.recv()) is not None:
        array = causeway_ipc.open(ticket)
        del array
        pipe.send(None)


def closed_memory_comes_back(context, found):
    """What a process has closed stays for a moment in case that it opens it again: for how long, when its sender closes it too or is killed."""
    if "torch" not in found:
        return
    torch = found["torch"].torch
    free = lambda: torch.cuda.mem_get_info()[0]  # noqa: E731

    def seconds_until_back(before, what):
        begun = time.monotonic()
        while free() < before - (64 << 20) and time.monotonic() - begun < 10:
            time.sleep(0.005)
        took = time.monotonic() - begun
        print(f"2 GiB {what}: back after {took:.2f} s")
        assert took < 1, "not back within a second"

    pipe, theirs = context.Pipe()
    process = context.Process(target=closer, args=(theirs,), daemon=True)
    process.start()
    warm = causeway_ipc.empty(1 << 20, "uint8", "cuda")
    with causeway_ipc.share(warm) as export:
        pipe.send(export.ticket)
        pipe.recv()
    before = free()
    array = causeway_ipc.empty(2 << 30, "uint8", "cuda")
    with causeway_ipc.share(array) as export:
        for _ in range(3):
            pipe.send(export.ticket)
            pipe.recv()
    del array, export
    seconds_until_back(before, "that a receiver and its sender closed")
    ours, others = context.Pipe()
    sender = context.Process(target=sends_and_waits, args=(others,), daemon=True)
    sender.start()
    pipe.send(ours.recv())
    pipe.recv()
    sender.kill()
    sender.join()
    seconds_until_back(before, "that a receiver had closed when its sender was killed")
    pipe.send(None)
    process.join(PATIENCE)
    assert process.exitcode == 0


def sends_and_waits(pipe):
    array = causeway_ipc.empty(2 << 30, "uint8", "cuda")
    export = causeway_ipc.share(array)
    pipe.send(export.ticket)
    time.sleep(PATIENCE)


def deny(numbers):
    """This process, and what it starts, is refused these system calls."""
    # Loads the architecture, then the number; EPERM for each of these, else all is allowed.
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, 0xC000003E), (0x06, 0, 0, 0x7FFF0000), (0x20, 0, 0, 0)]
    for number in numbers:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
    program.append((0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    libc, said = ctypes.CDLL(None, use_errno=True), Program(len(program), ctypes.addressof(code))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 == libc.prctl(22, 2, ctypes.byref(said), 0, 0), "no filter can be installed"
    for number in numbers:
        assert libc.syscall(number, -1, -1, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 1, f"system call {number} is not denied"


def main():
    if "--denied" in sys.argv:
        deny(DENIED.values())
        print(f"denied: {', '.join(DENIED)}")
    if not any(name.startswith("cuda") for name, _ in causeway_ipc.devices()):
        print("skipped: there is no CUDA device")
        return
    found = libraries()
    print(f"allocator: {os.environ.get('PYTORCH_CUDA_ALLOC_CONF', 'as PyTorch has it')}")
    context = multiprocessing.get_context("spawn")
    parts = {"pairs": [pairs, through_multiprocessing], "memory": [memory_comes_back, closed_memory_comes_back]}
    for name in [name for name in parts if name in sys.argv] or parts:
        for part in parts[name]:
            part(context, found)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
