// Addresses reserved first and given memory later, piece by piece; access rights of each piece.
#include "common.hpp"

namespace {
using access = syclex::address_access_mode;

void pieces() {
    sycl::queue queue{sycl::property::queue::in_order{}};
    const sycl::context context = queue.get_context();
    const sycl::device device = queue.get_device();
    require(device.has(sycl::aspect::ext_oneapi_virtual_mem), "virtual memory is lacking");

    const std::size_t grain = syclex::get_mem_granularity(device, context);
    require(grain >= syclex::get_mem_granularity(context, syclex::granularity_mode::minimum),
            "the recommended granularity is below the least");
    const std::size_t size = 4 * grain;
    const std::uintptr_t start = syclex::reserve_virtual_mem(size, context);
    require(start != 0 && start % grain == 0, "the reserved addresses are not aligned");

    // The first object is mapped in two places at once, the second part by part: where a driver maps
    // whole objects only, as those of CUDA do, there is an object for each part.
    const syclex::physical_mem one(device, context, grain);
    const bool whole_only = device.get_backend() == sycl::backend::ext_oneapi_cuda;
    const syclex::physical_mem two(queue, whole_only ? grain : 2 * grain);
    const syclex::physical_mem rest(queue, grain);
    require(one.size() == grain && rest.size() == grain, "a size is wrong");
    require(one.get_context() == context && one.get_device() == device, "it is somebody else's");
    require(!one.ipc_enabled(), "nobody asked for sharing");
    auto *a = static_cast<std::uint32_t *>(one.map(start, grain, access::read_write));
    auto *b = static_cast<std::uint32_t *>(one.map(start + grain, grain, access::read_write));
    const auto part = [&](std::uintptr_t at, std::size_t offset) {
        const syclex::physical_mem &from = whole_only && offset != 0 ? rest : two;
        return from.map(at, grain, access::read_write, whole_only ? 0 : offset);
    };
    auto *c = static_cast<std::uint32_t *>(part(start + 2 * grain, grain));
    auto *d = static_cast<std::uint32_t *>(part(start + 3 * grain, 0));

    const std::size_t numbers = grain / sizeof *a;
    fill(queue, a, std::uint32_t{11}, numbers);
    fill(queue, c, std::uint32_t{22}, numbers);
    fill(queue, d, std::uint32_t{33}, numbers);
    std::uint32_t seen[3];
    queue.memcpy(seen, b + numbers - 1, sizeof *seen);
    queue.memcpy(seen + 1, c, sizeof *seen);
    queue.memcpy(seen + 2, d + numbers - 1, sizeof *seen);
    queue.wait();
    require(seen[0] == 11 && seen[1] == 22 && seen[2] == 33, "a mapping shows other memory");

    require(syclex::get_access_mode(a, grain, context) == access::read_write, "access is another");
    syclex::set_access_mode(a, grain, access::read, context);
    require(syclex::get_access_mode(a, grain, context) == access::read, "access did not change");
    require(syclex::get_access_mode(b, grain, context) == access::read_write, "a neighbour changed");
    syclex::set_access_mode(a, grain, access::none, context);
    require(syclex::get_access_mode(a, grain, context) == access::none, "access did not change");

    // The same object elsewhere, after it was away.
    for (std::uint32_t *piece : {a, b, c, d}) syclex::unmap(piece, grain, context);
    auto *again = static_cast<std::uint32_t *>(one.map(start + 3 * grain, grain, access::read));
    queue.memcpy(seen, again, sizeof *seen).wait();
    require(seen[0] == 11, "memory lost its contents between two mappings");
    syclex::unmap(again, grain, context);
    syclex::free_virtual_mem(start, size, context);

    refused(sycl::errc::runtime, "a size that is no multiple of the granularity",
            [&] { syclex::physical_mem odd(device, context, grain + 1); });
}
} // namespace

int main() { return run("virtual_memory", pieces); }
