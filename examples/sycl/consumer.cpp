// What the producer shares, opened in another process: consumer THERE BACK
#include "common.hpp"

namespace {
void consume(const std::string &there, const std::string &back) {
    sycl::queue queue{sycl::property::queue::in_order{}};
    const sycl::context context = queue.get_context();
    const sycl::device device = queue.get_device();

    link line(there, back, false);
    auto *memory = static_cast<std::uint32_t *>(ipc::memory::open(line.receive(), context, device));
    const syclex::physical_mem answers =
        ipc::physical_memory::open(line.receive(), context, device);
    require(answers.ipc_enabled(), "opened physical memory may be shared again");
    const sycl::event ready = ipc::event::open(line.receive(), context);
    sycl::event done = ipc::event::open(line.receive(), context);
    const auto me = std::to_integer<std::uint32_t>(line.receive().at(0));
    refused(sycl::errc::runtime, "sharing opened memory", [&] { ipc::memory::get(memory, context); });
    refused(sycl::errc::invalid, "sharing an opened event", [&] { ipc::event::get(ready); });
    const mapping answered(answers, context);
    std::uint32_t *mine = answered.as<std::uint32_t>() + me;

    sycl::event own = syclex::make_event(context, syclex::properties{syclex::enable_ipc{true}});
    ipc::handle own_handle = ipc::event::get(own);
    line.send(own_handle.data());

    // The first and the last number of each round, copied by the queue.
    auto *seen = sycl::malloc_host<std::uint32_t>(2 * rounds, queue);
    auto *said = sycl::malloc_host<std::uint32_t>(rounds + 1, queue);
    require(seen != nullptr && said != nullptr, "there is no memory");
    for (std::uint32_t round = 0; round <= rounds; ++round) said[round] = answer(me, round);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        line.await_step();
        syclex::enqueue_wait_event(queue, ready);
        queue.memcpy(seen + 2 * round, memory, sizeof *seen);
        queue.memcpy(seen + 2 * round + 1, memory + count - 1, sizeof *seen);
        queue.memcpy(mine, said + round, sizeof *said);
        syclex::enqueue_signal_event(queue, done);
        line.step();
    }
    queue.wait();
    for (std::uint32_t round = 0; round < rounds; ++round)
        require(seen[2 * round] == round && seen[2 * round + 1] == round,
                "the memory did not hold the round's number when the event said so");

    line.await_step();
    queue.memcpy(mine, said + rounds, sizeof *said);
    syclex::enqueue_signal_event(queue, own);
    line.step();
    line.await_step();
    ipc::event::put(own_handle, context);
    sycl::free(said, queue);
    sycl::free(seen, queue);
    ipc::memory::close(memory, context);
}
} // namespace

int main(int argc, char **argv) {
    return run("consumer", [&] {
        require(argc == 3, "usage: consumer THERE BACK");
        consume(argv[1], argv[2]);
    });
}
