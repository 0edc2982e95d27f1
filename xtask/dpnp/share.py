"""An array of dpnp's that another process computes on: share.py LIBRARY, the library being ipc.cpp's.

The producer fills an array; the consumer opens its memory, makes an array of dpnp's of it, which copies nothing, and computes there
with dpnp's kernels; the producer finds the results in its own array.
"""
import ctypes
import subprocess
import sys

import dpctl
import dpctl.memory
import dpnp
import numpy

SIZE = 1_000_000


class Library:
    def __init__(self, path):
        self.own = ctypes.CDLL(path)
        self.own.dpnp_ipc_get.restype = ctypes.c_size_t
        self.own.dpnp_ipc_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        self.own.dpnp_ipc_open.restype = ctypes.c_void_p
        self.own.dpnp_ipc_open.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        self.own.dpnp_ipc_close.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def handle(self, array):
        room = ctypes.create_string_buffer(4096)
        at = array.__sycl_usm_array_interface__["data"][0]
        length = self.own.dpnp_ipc_get(at, array.sycl_context.addressof_ref(), room, len(room))
        assert 0 < length <= len(room), length
        return room.raw[:length]

    def open(self, handle, queue):
        context, device = queue.sycl_context.addressof_ref(), queue.sycl_device.addressof_ref()
        at = self.own.dpnp_ipc_open(handle, len(handle), context, device)
        assert at, "the memory is not opened"
        return at

    def close(self, at, queue):
        assert self.own.dpnp_ipc_close(at, queue.sycl_context.addressof_ref()) == 0


class Opened:
    """Memory at an address, as dpctl and dpnp take it from other libraries."""

    def __init__(self, at, size, kind, queue):
        self.__sycl_usm_array_interface__ = {
            "data": (at, False), "shape": (size,), "strides": None, "typestr": kind, "version": 1, "syclobj": queue,
        }


def consume(library):
    queue = dpctl.SyclQueue()
    handle = bytes.fromhex(sys.stdin.readline())
    at = library.open(handle, queue)
    memory = dpctl.memory.as_usm_memory(Opened(at, SIZE, "<f8", queue))
    array = dpnp.ndarray(SIZE, dtype="f8", buffer=memory)
    assert array.__sycl_usm_array_interface__["data"][0] == at, "dpnp copied"
    assert float(array.sum()) == SIZE * (SIZE - 1) / 2, "not what the producer wrote"
    array *= 2
    array[::2] = dpnp.sort(-array)[: SIZE // 2]
    array.sycl_queue.wait()
    del array, memory
    library.close(at, queue)
    print("computed", flush=True)


def produce(library):
    array = dpnp.arange(SIZE, dtype="f8")
    array.sycl_queue.wait()
    expected = numpy.arange(SIZE, dtype="f8") * 2
    expected[::2] = numpy.sort(-expected)[: SIZE // 2]
    with subprocess.Popen([sys.executable, *sys.argv, "consumer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as consumer:
        said, _ = consumer.communicate(library.handle(array).hex() + "\n", timeout=120)
    assert consumer.returncode == 0 and said == "computed\n", (consumer.returncode, said)
    assert numpy.array_equal(dpnp.asnumpy(array), expected), "the consumer's results are not in the producer's array"
    print(f"another process computed on {SIZE} numbers of {array.sycl_device.name}")


library = Library(sys.argv[1])
consume(library) if sys.argv[2:] else produce(library)
