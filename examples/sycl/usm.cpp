// Unified shared memory of every kind: what is known of a pointer, copies between all kinds, fills
// of patterns of all sizes.
#include "common.hpp"

#include <array>
#include <cstring>

namespace {
constexpr std::size_t size = 1 << 16;
using kind = sycl::usm::alloc;

// Reads and writes any memory by the queue, so that this works for devices with memory of their own.
bytes contents(sycl::queue &queue, const void *memory, std::size_t length) {
    bytes copy(length);
    queue.memcpy(copy.data(), memory, length).wait();
    return copy;
}

template <std::size_t Width> void pattern_fill(sycl::queue &queue, void *memory) {
    struct pattern {
        std::array<std::uint8_t, Width> bytes;
    };
    static_assert(sizeof(pattern) == Width);
    pattern value;
    for (std::size_t i = 0; i < Width; ++i) value.bytes[i] = static_cast<std::uint8_t>(3 * i + Width);
    // Not the whole of it: the bytes before and after must stay as they are.
    constexpr std::size_t margin = 192;
    const std::size_t times = (size - 2 * margin) / Width;
    queue.memset(memory, 0xee, size).wait();
    auto *const from = reinterpret_cast<pattern *>(static_cast<std::byte *>(memory) + margin);
    fill(queue, from, value, times).wait();
    const bytes now = contents(queue, memory, size);
    for (std::size_t i = 0; i < size; ++i) {
        const bool inside = i >= margin && i < margin + times * Width;
        const std::uint8_t expected = inside ? value.bytes[(i - margin) % Width] : 0xee;
        require(std::to_integer<std::uint8_t>(now[i]) == expected,
                "a fill by " + std::to_string(Width) + " bytes is wrong at " + std::to_string(i));
    }
}

void fills(sycl::queue &queue, void *memory) {
    pattern_fill<1>(queue, memory);
    pattern_fill<2>(queue, memory);
    pattern_fill<3>(queue, memory);
    pattern_fill<4>(queue, memory);
    pattern_fill<8>(queue, memory);
    pattern_fill<12>(queue, memory);
    pattern_fill<16>(queue, memory);
    pattern_fill<64>(queue, memory);
}

void copies(sycl::queue &queue, void *from, void *to) {
    for (const std::size_t length : {1, 2, 3, 4, 8, 12, 16, 64, 4095, 65536}) {
        bytes data(length);
        for (std::size_t i = 0; i < length; ++i) data[i] = static_cast<std::byte>(i * 7 + length);
        queue.memcpy(from, data.data(), length).wait();
        queue.memset(to, 0, size).wait();
        queue.memcpy(to, from, length).wait();
        require(contents(queue, to, length) == data, "a copy is not what was copied");
        if (length < size)
            require(contents(queue, static_cast<std::byte *>(to) + length, 1).front() == std::byte{0},
                    "a copy wrote past its end");
    }
}

void known(const sycl::queue &queue, const void *pointer, kind expected) {
    require(sycl::get_pointer_type(pointer, queue.get_context()) == expected, "the kind is another");
    if (expected != kind::unknown)
        require(sycl::get_pointer_device(pointer, queue.get_context()) == queue.get_device(),
                "the device is another");
}

void all_kinds() {
    sycl::queue queue;
    const sycl::device device = queue.get_device();
    for (const auto aspect : {sycl::aspect::usm_device_allocations, sycl::aspect::usm_host_allocations,
                              sycl::aspect::usm_shared_allocations})
        require(device.has(aspect), "a kind of memory is lacking");

    void *const memories[] = {sycl::malloc_device(size, queue), sycl::malloc_host(size, queue),
                              sycl::malloc_shared(size, queue),
                              sycl::aligned_alloc_device(4096, size, queue),
                              sycl::aligned_alloc_shared(64, size, queue)};
    const kind kinds[] = {kind::device, kind::host, kind::shared, kind::device, kind::shared};
    for (std::size_t i = 0; i < std::size(kinds); ++i) {
        require(memories[i] != nullptr, "there is no memory");
        known(queue, memories[i], kinds[i]);
        known(queue, static_cast<std::byte *>(memories[i]) + size - 1, kinds[i]);
        fills(queue, memories[i]);
    }
    require(reinterpret_cast<std::uintptr_t>(memories[3]) % 4096 == 0, "not aligned as asked for");
    for (void *from : memories)
        for (void *to : memories)
            if (from != to) copies(queue, from, to);

    queue.prefetch(memories[2], size).wait();
    queue.mem_advise(memories[2], size, 0).wait();
    known(queue, &size, kind::unknown);
    for (void *memory : memories) sycl::free(memory, queue);
    for (void *memory : memories) known(queue, memory, kind::unknown);
    sycl::free(nullptr, queue);

    // More than there is: a null pointer and no exception.
    require(sycl::malloc_device(std::size_t{1} << 60, queue) == nullptr, "an exabyte was handed out");
    // The C++ face of it.
    sycl::usm_allocator<int, kind::shared> allocator(queue);
    std::vector<int, decltype(allocator)> numbers(1000, 7, allocator);
    fill(queue, numbers.data(), 9, 500).wait();
    require(numbers[499] == 9 && numbers[500] == 7, "a fill of a container is wrong");
}
} // namespace

int main() { return run("usm", all_kinds); }
