"""What dpctl sees of the adapter, and what it does with it: devices, memory of all kinds, copies,
barriers and events. Run by tests/dpctl.rs.

Not here: dpctl.program. It opens libOpenCL.so by name, and where there is none, dpctl closes what it
never opened when the process ends (dlclose of null): a crash that no adapter has a part in."""

import dpctl
import dpctl.memory


def listed():
    devices = dpctl.get_devices()
    assert len(devices) == 1, devices
    (device,) = devices
    assert device.is_cpu and not device.is_gpu
    assert device.backend == dpctl.backend_type.opencl, device.backend
    assert dpctl.has_cpu_devices() and dpctl.get_num_devices() == 1
    assert dpctl.select_cpu_device() == device == dpctl.SyclDevice("opencl:cpu:0")
    assert device.name and device.vendor and device.driver_version
    assert device.max_compute_units > 0 and device.global_mem_size > 0
    assert device.has_aspect_usm_device_allocations
    assert device.has_aspect_usm_host_allocations
    assert device.has_aspect_usm_shared_allocations
    assert len(device.max_work_item_sizes3d) == 3
    (platform,) = dpctl.get_platforms()
    assert platform.name and platform.vendor and platform.version
    assert platform.get_devices() == [device]
    assert platform.default_context.get_devices() == [device]
    print("device:", device.name)
    return device


def copied(queue):
    kinds = [
        dpctl.memory.MemoryUSMDevice,
        dpctl.memory.MemoryUSMShared,
        dpctl.memory.MemoryUSMHost,
    ]
    size = 4099
    data = bytes(i * 7 % 256 for i in range(size))
    for kind in kinds:
        for other in kinds:
            one, two = kind(size, queue=queue), other(size, queue=queue)
            assert one.get_usm_type() != "unknown" and one.nbytes == size
            one.copy_from_host(data)
            two.memset(0)
            assert two.copy_to_host().tobytes() == bytes(size)
            two.copy_from_device(one)
            assert two.copy_to_host().tobytes() == data
            two.memset(0xEE)
            assert two.copy_to_host().tobytes() == b"\xee" * size
    host = dpctl.memory.MemoryUSMHost(16, queue=queue)
    host.copy_from_host(b"0123456789abcdef")
    assert bytes(memoryview(host)) == b"0123456789abcdef"
    aligned = dpctl.memory.MemoryUSMShared(4096, alignment=256, queue=queue)
    assert aligned._pointer % 256 == 0
    print("memory: fine")


def ordered(device):
    for properties in [None, "in_order", ["in_order", "enable_profiling"]]:
        queue = dpctl.SyclQueue(device, property=properties) if properties else dpctl.SyclQueue(device)
        one = dpctl.memory.MemoryUSMDevice(1 << 16, queue=queue)
        two = dpctl.memory.MemoryUSMShared(1 << 16, queue=queue)
        copied = queue.memcpy_async(two, one, 1 << 16)
        first = queue.submit_barrier([copied])
        second = queue.submit_barrier([first])
        dpctl.SyclEvent.wait_for([first, second])
        for event in (copied, first, second):
            event.wait()
            assert event.execution_status == dpctl.event_status_type.complete
            assert event.backend == dpctl.backend_type.opencl
        if properties and "enable_profiling" in properties:
            assert queue.has_enable_profiling
            times = copied.profiling_info_submit, copied.profiling_info_start, copied.profiling_info_end
            assert 0 < times[0] <= times[1] <= times[2], times
        queue.prefetch(two, 1 << 16)
        queue.mem_advise(two, 1 << 16, 0)
        queue.wait()
    print("queues: fine")


device = listed()
queue = dpctl.SyclQueue(device)
copied(queue)
ordered(device)
print("dpctl: fine")
