"""Tensors of PyTorch's expandable segments, far larger than one physical handle, in another process.

    python3 torch_segments.py libur_adapter_cuda.so.0

Each tensor is written by this process, checked and changed whole by another one, and checked here again; so are
views that begin in the middle.
"""
import os
import subprocess
import sys
import time
from ctypes import CDLL, byref, c_int32, c_size_t, c_uint64, c_void_p

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
os.environ.setdefault("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "1")
from with_torch import Runtime, torch_or_none  # noqa: E402


class Words:
    """Somebody else's memory as an array of 8-byte numbers."""

    def __init__(self, pointer, count):
        self.__cuda_array_interface__ = {
            "shape": (count,), "typestr": "<i8", "data": (pointer, False), "version": 2}


def importer(adapter, torch):
    torch.zeros(1, device="cuda")
    runtime = Runtime(adapter)
    for line in sys.stdin:
        ticket, first, count = line.split()
        begun = time.monotonic()
        pointer = runtime.open_memory(bytes.fromhex(ticket))
        opened = time.monotonic() - begun
        view = torch.as_tensor(Words(pointer, int(count)), device="cuda")
        off = int((view != torch.arange(int(count), dtype=torch.int64, device="cuda") + int(first)).sum())
        view += 1
        torch.cuda.synchronize()
        del view
        runtime.call("urIPCCloseMemHandleExp", runtime.context, c_void_p(pointer))
        print(f"{off} {opened * 1e3:.1f}", flush=True)


def told(pointer):
    """What the driver says of an address: number of the allocation, range, mapping."""
    words = []
    for attribute in (7, 11, 12, 19, 18):
        word = c_uint64()
        code = CDLL("libcuda.so.1").cuPointerGetAttribute(byref(word), c_int32(attribute), c_uint64(pointer))
        words.append(f"{word.value:#x}" if code == 0 else f"error {code}")
    return ", ".join(words)


def main():
    torch = torch_or_none(__doc__)
    if torch is None:
        return 0
    adapter = os.path.abspath(sys.argv[1])
    if "importer" in sys.argv[2:]:
        importer(adapter, torch)
        return 0
    failures = 0
    other = subprocess.Popen([sys.executable, os.path.abspath(__file__), adapter, "importer"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    runtime = None
    for mib, skip in ((1, 0), (96, 0), (96, 37 << 20), (3 << 10, 0), (3 << 10, (1 << 30) + 4096)):
        words, first = (mib << 20) // 8, skip // 8
        tensor = torch.arange(words, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()
        runtime = runtime or Runtime(adapter)
        for place in (0, (mib << 19), (mib << 20) - 8, (mib << 20) + (64 << 20)):
            print(f"{mib} MiB + {place:#x}: {told(tensor.data_ptr() + place)}")
        begun = time.monotonic()
        ticket = runtime.memory_handle(tensor.data_ptr() + skip)
        got = (time.monotonic() - begun) * 1e3
        begun = time.monotonic()
        for _ in range(1000):
            data, size = c_void_p(), c_size_t()
            runtime.call("urIPCGetMemHandleExp", runtime.context, c_void_p(tensor.data_ptr() + skip), byref(data),
                         byref(size))
            runtime.call("urIPCPutMemHandleExp", runtime.context, data)
        again = (time.monotonic() - begun) * 1e3  # microseconds each
        other.stdin.write(f"{ticket.hex()} {first} {words - first}\n")
        other.stdin.flush()
        answer = other.stdout.readline().split()
        if len(answer) != 2:
            print(f"FAIL {mib} MiB from {skip} on: the other process ended")
            return failures + 1
        torch.cuda.synchronize()
        expected = torch.arange(words, dtype=torch.int64, device="cuda")
        expected[first:] += 1
        here_off = int((tensor != expected).sum())
        del tensor, expected
        if int(answer[0]) or here_off:
            failures += 1
            print(f"FAIL {mib} MiB from {skip} on: {answer[0]} elements wrong there, {here_off} here")
        else:
            print(f"PASS {mib} MiB from {skip} on: handle got in {got:.1f} ms (again: {again:.2f} us), opened in "
                  f"{answer[1]} ms, whole in both processes")
    other.stdin.close()
    failures += other.wait() != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
