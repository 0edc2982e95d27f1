// Shares memory on which two processes run kernels in turn: kernel_producer THERE BACK
//
// A turn is a kernel of this program's, a signal of one shared event, a kernel of the consumer's behind it, and the
// consumer's signal, which the next turn is behind. Each is submitted, and nobody waits: what is sent over the pipes
// says that a signal was submitted, not that anything is done. The memory is looked at once, in the end.
#include "kernels.hpp"

namespace {
void produce(const std::string &there, const std::string &back) {
    sycl::queue queue{sycl::property::queue::in_order{}};
    const sycl::context context = queue.get_context();
    const sycl::kernel mix = kernels::of_source(context, kernels::mix, "mix");
    const syclex::properties shared{syclex::enable_ipc{true}};

    auto *numbers = sycl::malloc_device<std::uint32_t>(kernels::size, queue);
    require(numbers != nullptr, "there is no memory");
    sycl::event ready = syclex::make_event(context, shared);
    sycl::event done = syclex::make_event(context, shared);

    link line(there, back, true);
    ipc::handle memory = ipc::memory::get(numbers, context);
    ipc::handle ready_handle = ipc::event::get(ready);
    ipc::handle done_handle = ipc::event::get(done);
    for (const bytes &ticket : {memory.data(), ready_handle.data(), done_handle.data()})
        line.send(ticket);

    for (std::uint32_t turn = 0; turn < kernels::turns; ++turn) {
        kernels::run(queue, mix, numbers, turn);
        syclex::enqueue_signal_event(queue, ready);
        line.step();
        line.await_step();
        syclex::enqueue_wait_event(queue, done);
    }
    auto *seen = sycl::malloc_host<std::uint32_t>(kernels::size, queue);
    require(seen != nullptr, "there is no memory");
    queue.memcpy(seen, numbers, kernels::size * sizeof *seen).wait();
    for (std::size_t i = 0; i < kernels::size; ++i) {
        auto expected = static_cast<std::uint32_t>(i);
        for (std::uint32_t turn = 0; turn < kernels::turns; ++turn)
            expected = kernels::answered(kernels::mixed(expected, turn), turn);
        require(seen[i] == expected, "number " + std::to_string(i) + " is " + std::to_string(seen[i]) +
                                         " and not " + std::to_string(expected));
    }
    std::cout << 2 * kernels::turns << " kernels of two processes ran in turn on "
              << queue.get_device().get_info<sycl::info::device::name>() << std::endl;
    ipc::memory::put(memory, context);
    ipc::event::put(ready_handle, context);
    ipc::event::put(done_handle, context);
    sycl::free(seen, queue);
    sycl::free(numbers, queue);
}
} // namespace

int main(int argc, char **argv) {
    return run("kernel_producer", [&] {
        require(argc == 3, "usage: kernel_producer THERE BACK");
        produce(argv[1], argv[2]);
    });
}
