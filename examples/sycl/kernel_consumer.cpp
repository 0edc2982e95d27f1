// The other side of kernel_producer: kernel_consumer THERE BACK
#include "kernels.hpp"

namespace {
void consume(const std::string &there, const std::string &back) {
    sycl::queue queue{sycl::property::queue::in_order{}};
    const sycl::context context = queue.get_context();
    const sycl::device device = queue.get_device();
    const sycl::kernel answer = kernels::of_spirv(context, kernels::answer, "answer");

    link line(there, back, false);
    auto *numbers = static_cast<std::uint32_t *>(ipc::memory::open(line.receive(), context, device));
    const sycl::event ready = ipc::event::open(line.receive(), context);
    sycl::event done = ipc::event::open(line.receive(), context);
    for (std::uint32_t turn = 0; turn < kernels::turns; ++turn) {
        line.await_step();
        syclex::enqueue_wait_event(queue, ready);
        kernels::run(queue, answer, numbers, turn);
        syclex::enqueue_signal_event(queue, done);
        line.step();
    }
    queue.wait();
    ipc::memory::close(numbers, context);
}
} // namespace

int main(int argc, char **argv) {
    return run("kernel_consumer", [&] {
        require(argc == 3, "usage: kernel_consumer THERE BACK");
        consume(argv[1], argv[2]);
    });
}
