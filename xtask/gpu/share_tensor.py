"""A tensor of PyTorch, or an array of CuPy, that another process reads and writes.

    python3 share_tensor.py libur_adapter_cuda.so.0 torch|cupy

Neither library knows of this project: the tensor lies in memory that the library allocated, and the
work of each process runs on a stream of its library. What is added is a handle of the memory and two
events that order the two streams, through the C functions of Unified Runtime (`libur_loader.so.0` has
to be found, in LD_LIBRARY_PATH for example).
"""
import ctypes
import os
import subprocess
import sys
from ctypes import byref, c_size_t, c_uint32, c_void_p

COUNT, ROUNDS = 1 << 20, 100


class Desc(ctypes.Structure):
    """ur_exp_event_desc_t"""
    _fields_ = [("stype", c_uint32), ("next", c_void_p), ("flags", c_uint32)]


class Runtime:
    """The entries that are needed, on the first device."""

    def __init__(self, adapter):
        os.environ["UR_ADAPTERS_FORCE_LOAD"] = adapter
        self.lib = ctypes.CDLL("libur_loader.so.0")
        self.call("urLoaderInit", c_uint32(0), None)
        count, adapter, platform, device = c_uint32(), c_void_p(), c_void_p(), c_void_p()
        self.call("urAdapterGet", c_uint32(1), byref(adapter), byref(count))
        self.call("urPlatformGet", adapter, c_uint32(1), byref(platform), byref(count))
        if not count.value:
            sys.exit("the adapter has no platform: is its driver installed?")
        self.call("urDeviceGet", platform, c_uint32(1), c_uint32(1), byref(device), None)
        self.adapter, self.device, self.context = adapter, device, c_void_p()
        self.call("urContextCreate", c_uint32(1), byref(device), None, byref(self.context))

    def call(self, name, *arguments):
        """Calls an entry; ends the program with the adapter's own sentence if it fails."""
        code = getattr(self.lib, name)(*arguments)
        if code:
            text, native = ctypes.c_char_p(), ctypes.c_int32()
            said = hasattr(self, "adapter") and self.lib.urAdapterGetLastError(
                self.adapter, byref(text), byref(native)) == 0
            sys.exit(f"{name}: {code:#x}: {text.value.decode() if said and text.value else '(no words)'}")

    def queue(self, stream):
        """A queue over a stream of somebody else's."""
        queue = c_void_p()
        self.call("urQueueCreateWithNativeHandle", c_void_p(stream), self.context, self.device, None, byref(queue))
        return queue

    def event(self):
        """An event that processes can share."""
        event, desc = c_void_p(), Desc(0x8000, None, 2)
        self.call("urEventCreateExp", self.context, self.device, byref(desc), byref(event))
        return event

    def get(self, entry, *what):
        data, size = c_void_p(), c_size_t()
        self.call(entry, *what, byref(data), byref(size))
        return ctypes.string_at(data, size.value)

    def memory_handle(self, pointer):
        return self.get("urIPCGetMemHandleExp", self.context, c_void_p(pointer))

    def event_handle(self, event):
        return self.get("urIPCGetEventHandleExp", event)

    def open_memory(self, handle):
        pointer = c_void_p()
        self.call("urIPCOpenMemHandleExp", self.context, self.device, handle, c_size_t(len(handle)), byref(pointer))
        return pointer.value

    def open_event(self, handle):
        event = c_void_p()
        self.call("urIPCOpenEventHandleExp", self.context, handle, c_size_t(len(handle)), byref(event))
        return event

    def signal(self, queue, event):
        """`event` is signalled when everything before it in `queue` is done."""
        self.call("urEnqueueEventsWaitWithBarrierExt", queue, None, c_uint32(0), None, byref(event))

    def wait(self, queue, event):
        """Everything after it in `queue` waits for the latest signal of `event`."""
        self.call("urEnqueueEventsWaitWithBarrier", queue, c_uint32(1), byref(event), None)


class Memory:
    """Somebody else's memory, as both libraries take it."""

    def __init__(self, pointer):
        self.__cuda_array_interface__ = {
            "shape": (COUNT,), "typestr": "<i8", "data": (pointer, False), "version": 2}


class Torch:
    def __init__(self):
        import torch
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.handle = self.stream.cuda_stream

    def on_stream(self):
        return self.torch.cuda.stream(self.stream)

    def make(self):
        return self.torch.arange(COUNT, dtype=self.torch.int64, device="cuda")

    def pointer(self, array):
        return array.data_ptr()

    def view(self, pointer):
        return self.torch.as_tensor(Memory(pointer), device="cuda")

    def equal(self, array, added):
        """A number on the device, looked at later: how many elements are off."""
        return (array != self.torch.arange(COUNT, dtype=self.torch.int64, device="cuda") + added).sum()

    def finish(self):
        self.stream.synchronize()


class Cupy(Torch):
    def __init__(self):
        import cupy
        self.cupy, self.stream = cupy, cupy.cuda.Stream(non_blocking=True)
        self.handle = self.stream.ptr

    def on_stream(self):
        return self.stream

    def make(self):
        return self.cupy.arange(COUNT, dtype=self.cupy.int64)

    def pointer(self, array):
        return array.data.ptr

    def view(self, pointer):
        return self.cupy.asarray(Memory(pointer))

    def equal(self, array, added):
        return (array != self.cupy.arange(COUNT, dtype=self.cupy.int64) + added).sum()


def exporter(adapter, name, library):
    with library.on_stream():
        array = library.make()
    library.finish()
    runtime = Runtime(adapter)
    queue, ours = runtime.queue(library.handle), runtime.event()
    other = subprocess.Popen([sys.executable, __file__, adapter, name, "importer"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(line):
        other.stdin.write(line + "\n")
        other.stdin.flush()
        answer = other.stdout.readline().split()
        if not answer:
            sys.exit("the other process ended")
        return answer

    memory = runtime.memory_handle(library.pointer(array))
    theirs = runtime.open_event(bytes.fromhex(ask(memory.hex() + " " + runtime.event_handle(ours).hex())[0]))
    wrong = []
    # Neither process waits for its stream: only the streams wait for each other.
    for round in range(ROUNDS):
        with library.on_stream():
            array += 1
        runtime.signal(queue, ours)
        ask("go")
        runtime.wait(queue, theirs)
        with library.on_stream():
            wrong.append(library.equal(array, 3 * (round + 1)))
    library.finish()
    off = sum(int(w) for w in wrong) + int(ask("end")[0])
    other.stdin.close()
    if other.wait() or off:
        sys.exit(f"{name}: {off} elements were wrong")
    how = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "default allocator")
    print(f"{name} ({how}): {COUNT} elements, {ROUNDS} rounds, written by both processes and read by both: right")


def importer(adapter, library):
    library.make()  # starts the library's context
    runtime = Runtime(adapter)
    queue, ours = runtime.queue(library.handle), runtime.event()
    memory, event = (bytes.fromhex(part) for part in sys.stdin.readline().split())
    array, theirs = library.view(runtime.open_memory(memory)), runtime.open_event(event)
    print(runtime.event_handle(ours).hex(), flush=True)
    wrong = []
    for line in sys.stdin:
        if line.strip() == "end":
            library.finish()
            print(sum(int(w) for w in wrong), flush=True)
            break
        runtime.wait(queue, theirs)
        with library.on_stream():
            wrong.append(library.equal(array, 3 * len(wrong) + 1))
            array += 2
        runtime.signal(queue, ours)
        print("submitted", flush=True)


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in ("torch", "cupy"):
        sys.exit(__doc__)
    adapter, name = os.path.abspath(sys.argv[1]), sys.argv[2]
    try:
        library = Torch() if name == "torch" else Cupy()
    except ImportError as error:
        print(f"skipped: {error}")
        return
    if "importer" in sys.argv[3:]:
        importer(adapter, library)
    else:
        exporter(adapter, name, library)


if __name__ == "__main__":
    main()
