"""PyTorch captures graphs in every mode while another thread allocates, fills, waits and frees through us.

    python3 torch_capture.py libur_adapter_cuda.so.0 [ROUNDS]

No capture may die, no call of ours may fail, and each captured graph has to compute what was captured.
"""
import ctypes
import os
import sys
import threading
from ctypes import byref, c_size_t, c_uint8, c_uint32, c_void_p

from with_torch import Runtime, torch_or_none


class Strict(Runtime):
    """Entries whose failure is an exception, so that other threads learn of it."""

    def call(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code:
            text, native = ctypes.c_char_p(), ctypes.c_int32()
            said = hasattr(self, "adapter") and self.lib.urAdapterGetLastError(
                self.adapter, byref(text), byref(native)) == 0
            words = text.value.decode() if said and text.value else "(no words)"
            raise RuntimeError(f"{name}: {code:#x}: {words}")

    def own_queue(self):
        queue = c_void_p()
        self.call("urQueueCreate", self.context, self.device, None, byref(queue))
        return queue


def work(runtime, queue, size=4 << 20):
    """Allocates, fills, asks, waits, copies back, checks and frees."""
    at, host, event = c_void_p(), c_void_p(), c_void_p()
    pattern = c_uint8(0x5A)
    runtime.call("urUSMDeviceAlloc", runtime.context, runtime.device, None, None, c_size_t(size), byref(at))
    runtime.call("urUSMHostAlloc", runtime.context, None, None, c_size_t(size), byref(host))
    runtime.call("urEnqueueUSMFill", queue, at, c_size_t(1), byref(pattern), c_size_t(size), c_uint32(0), None,
                 byref(event))
    status = c_uint32()
    runtime.call("urEventGetInfo", event, c_uint32(3), c_size_t(4), byref(status), None)
    runtime.call("urEventWait", c_uint32(1), byref(event))
    runtime.call("urEventRelease", event)
    runtime.call("urEnqueueUSMMemcpy", queue, ctypes.c_bool(True), host, at, c_size_t(size), c_uint32(0), None, None)
    wrong = sum(byte != 0x5A for byte in ctypes.string_at(host, 4096))
    if wrong:
        raise RuntimeError(f"{wrong} bytes of a fill were wrong")
    runtime.call("urQueueFinish", queue)
    runtime.call("urUSMFree", runtime.context, at)
    runtime.call("urUSMFree", runtime.context, host)


def main():
    torch = torch_or_none(__doc__)
    if torch is None:
        return 0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    runtime = Strict(os.path.abspath(sys.argv[1]))
    queue = runtime.own_queue()
    work(runtime, queue)
    failures = 0
    data = torch.zeros(1 << 20, device="cuda")
    for mode in ("global", "thread_local", "relaxed"):
        done, calls, failed = threading.Event(), [0], []

        def beside():
            try:
                while not done.is_set():
                    work(runtime, queue)
                    calls[0] += 1
            except RuntimeError as error:
                failed.append(str(error))

        thread = threading.Thread(target=beside)
        thread.start()
        died, wrong, during = [], 0, 0
        for _ in range(rounds):
            data.zero_()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            before = calls[0]
            try:
                with torch.cuda.graph(graph, capture_error_mode=mode):
                    data.add_(1)
                    # Until the other thread has been through at least once while this is captured.
                    begun = calls[0]
                    while calls[0] < begun + 2 and thread.is_alive():
                        pass
                    data.mul_(2)
                during += calls[0] - before
                graph.replay()
                graph.replay()
                torch.cuda.synchronize()
                wrong += int((data != 6).sum())  # (0 + 1) * 2 = 2, (2 + 1) * 2 = 6
            except Exception as error:  # what a broken capture raises differs between versions
                died.append(str(error).splitlines()[0])
        done.set()
        thread.join()
        if died or failed or wrong or not during:
            failures += 1
            print(f"FAIL {mode}: {len(died)} of {rounds} captures died {died[:1]}; calls of ours failed: "
                  f"{failed[:1]}; wrong elements: {wrong}; rounds of ours during captures: {during}")
        else:
            print(f"PASS {mode}: {rounds} captures and their replays are right; {during} rounds of ours during them")
    return failures


if __name__ == "__main__":
    sys.exit(main())
