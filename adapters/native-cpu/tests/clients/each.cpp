// One queue on each platform, used in turn, with data and dependencies that cross between them:
// each [HOW MANY PLATFORMS THERE MUST BE]
#include "common.hpp"

#include <sycl/platform.hpp>

int main(int argc, char **argv) {
    return run("each", [&] {
        constexpr std::size_t length = 1000;
        std::vector<sycl::queue> queues;
        for (const sycl::platform &platform : sycl::platform::get_platforms())
            for (const sycl::device &device : platform.get_devices())
                queues.emplace_back(device, sycl::property::queue::in_order{});
        require(argc < 2 || queues.size() == std::stoul(argv[1]), "there are other platforms");
        for (sycl::queue &one : queues)
            for (sycl::queue &two : queues) {
                auto *here = sycl::malloc_device<int>(length, one);
                auto *there = sycl::malloc_host<int>(length, two);
                std::vector<int> seen(length);
                sycl::event shared = syclex::make_event(
                    one.get_context(), syclex::properties{syclex::enable_ipc{true}});
                ipc::handle ticket = ipc::event::get(shared);
                sycl::event filled = one.fill(here, 5, length);
                sycl::event copied = one.copy(here, seen.data(), length);
                // SYCL itself carries a dependency from one platform to the other.
                two.copy(seen.data(), there, length, {filled, copied});
                syclex::enqueue_signal_event(one, shared);
                shared.wait(), one.wait(), two.wait();
                require(there[length - 1] == 5, "a copy from one platform to the other is wrong");
                ipc::event::put(ticket, one.get_context());
                sycl::free(here, one), sycl::free(there, two);
            }
    });
}
