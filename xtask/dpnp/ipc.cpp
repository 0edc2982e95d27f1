// What dpctl has no function for: handles of the memory of USM pointers, and memory of handles, by the SYCL runtime's own
// extension. Contexts, devices and queues are dpctl's, which hands out where its C++ objects are.
#include <sycl/detail/core.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>

#include <cstring>
#include <iostream>

namespace ipc = sycl::ext::oneapi::experimental::ipc;

// How many bytes a handle has, which are written to `out` if there is room; 0 if there is none.
extern "C" std::size_t dpnp_ipc_get(void *memory, const sycl::context *context, std::byte *out,
                                    std::size_t room) try {
    ipc::handle handle = ipc::memory::get(memory, *context);
    const auto bytes = handle.data();
    if (bytes.size() <= room) std::memcpy(out, bytes.data(), bytes.size());
    return bytes.size();
} catch (const std::exception &error) {
    std::cerr << "dpnp_ipc_get: " << error.what() << std::endl;
    return 0;
}
// Where the memory of a handle is in this process; null if it cannot be opened.
extern "C" void *dpnp_ipc_open(const std::byte *bytes, std::size_t size, const sycl::context *context,
                               const sycl::device *device) try {
    return ipc::memory::open({bytes, bytes + size}, *context, *device);
} catch (const std::exception &error) {
    std::cerr << "dpnp_ipc_open: " << error.what() << std::endl;
    return nullptr;
}
extern "C" int dpnp_ipc_close(void *memory, const sycl::context *context) try {
    ipc::memory::close(memory, *context);
    return 0;
} catch (const std::exception &error) {
    std::cerr << "dpnp_ipc_close: " << error.what() << std::endl;
    return 1;
}
