// Buffers without kernels: copies, fills and updates by the handler, sub-buffers, host accessors,
// two dimensions, and what a buffer writes back when it goes.
#include "common.hpp"

#include <numeric>

namespace {
constexpr std::size_t count = 1000;

std::vector<int> ascending(std::size_t length) {
    std::vector<int> numbers(length);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

template <typename T, int D> void copy(sycl::queue &queue, sycl::buffer<T, D> &from, sycl::buffer<T, D> &to) {
    queue.submit([&](sycl::handler &h) {
        const sycl::accessor source(from, h, sycl::read_only);
        const sycl::accessor target(to, h, sycl::write_only);
        h.copy(source, target);
    });
}

void one_dimension(sycl::queue &queue) {
    const std::vector<int> in = ascending(count);
    std::vector<int> out(count, -1);
    {
        sycl::buffer<int> a(in.data(), count), b(count), c(out.data(), count);
        copy(queue, a, b);
        queue.submit([&](sycl::handler &h) {
            const sycl::accessor part(b, h, sycl::range<1>(10), sycl::id<1>(5));
            h.fill(part, 7);
        });
        copy(queue, b, c);
        sycl::host_accessor seen(b);
        require(seen[4] == 4 && seen[5] == 7 && seen[14] == 7 && seen[15] == 15, "a fill is wrong");
    }
    require(out[4] == 4 && out[5] == 7 && out[14] == 7 && out[999] == 999, "nothing was written back");
}

void to_and_from_pointers(sycl::queue &queue) {
    const std::vector<int> in = ascending(count);
    std::vector<int> out(count, -1);
    sycl::buffer<int> buffer(count);
    queue.submit([&](sycl::handler &h) {
        h.copy(in.data(), sycl::accessor(buffer, h, sycl::write_only, sycl::no_init));
    });
    queue.submit([&](sycl::handler &h) {
        const sycl::accessor part(buffer, h, sycl::range<1>(100), sycl::id<1>(300), sycl::read_only);
        h.copy(part, out.data());
    });
    queue.wait();
    require(out[0] == 300 && out[99] == 399 && out[100] == -1, "a part was copied wrongly");

    // What the host writes is what the device then has, and the other way round.
    { sycl::host_accessor numbers(buffer); numbers[500] = -5; }
    sycl::buffer<int> second(count);
    copy(queue, buffer, second);
    { sycl::host_accessor seen(second, sycl::read_only); require(seen[500] == -5, "a write is lost"); }
    queue.submit([&](sycl::handler &h) {
        h.update_host(sycl::accessor(buffer, h, sycl::read_only));
    }).wait();
}

void parts(sycl::queue &queue) {
    // An offset that every device's alignment permits.
    constexpr std::size_t offset = 4096 / sizeof(int);
    sycl::buffer<int> whole(2 * offset);
    { sycl::host_accessor numbers(whole); for (std::size_t i = 0; i < 2 * offset; ++i) numbers[i] = 1; }
    sycl::buffer<int> half(whole, sycl::id<1>(offset), sycl::range<1>(offset));
    queue.submit([&](sycl::handler &h) { h.fill(sycl::accessor(half, h, sycl::write_only), 2); });
    queue.wait();
    sycl::host_accessor numbers(whole, sycl::read_only);
    require(numbers[offset - 1] == 1 && numbers[offset] == 2 && numbers[2 * offset - 1] == 2,
            "a sub-buffer is not the part of its buffer");
}

void more_dimensions(sycl::queue &queue) {
    const std::vector<int> in = ascending(60 * 50);
    std::vector<int> out(60 * 50, -1);
    sycl::buffer<int, 2> a(in.data(), sycl::range(60, 50)), b(sycl::range(60, 50));
    queue.submit([&](sycl::handler &h) { h.fill(sycl::accessor(b, h, sycl::write_only), 0); });
    queue.submit([&](sycl::handler &h) {
        const sycl::accessor from(a, h, sycl::range(10, 20), sycl::id(5, 7), sycl::read_only);
        const sycl::accessor to(b, h, sycl::range(10, 20), sycl::id(30, 20), sycl::write_only);
        h.copy(from, to);
    });
    sycl::host_accessor seen(b, sycl::read_only);
    for (std::size_t row = 0; row < 60; ++row)
        for (std::size_t column = 0; column < 50; ++column) {
            const bool inside = row >= 30 && row < 40 && column >= 20 && column < 40;
            const int expected = inside ? in[(row - 25) * 50 + column - 13] : 0;
            require(seen[row][column] == expected, "a rectangle was copied wrongly");
        }
}

void at_the_host(sycl::queue &queue) {
    std::vector<int> numbers(count, 3);
    {
        sycl::buffer<int> buffer(numbers, sycl::property_list{sycl::property::buffer::use_host_ptr{}});
        queue.submit([&](sycl::handler &h) { h.fill(sycl::accessor(buffer, h, sycl::write_only), 4); });
    }
    require(numbers[0] == 4 && numbers[999] == 4, "a buffer on the host's memory was not written back");
}
} // namespace

int main() {
    return run("buffers", [] {
        sycl::queue queue;
        one_dimension(queue);
        to_and_from_pointers(queue);
        parts(queue);
        more_dimensions(queue);
        at_the_host(queue);
    });
}
