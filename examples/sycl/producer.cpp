// Shares memory, physical memory and events with one consumer or several, each at the ends of two
// named pipes: producer THERE BACK [THERE BACK]...
//
// In each of 1,000 rounds it fills the memory and signals one event, always the same; it goes on
// when every consumer's event, which it made and they signal, says that they have copied it.
#include "common.hpp"

#include <memory>

namespace {
struct consumer {
    std::unique_ptr<link> line;
    sycl::event done;   // ours; the consumer signals it
    sycl::event theirs; // the consumer's own
};

void produce(int argc, char **argv) {
    sycl::queue queue{sycl::property::queue::in_order{}};
    const sycl::context context = queue.get_context();
    const sycl::device device = queue.get_device();
    const syclex::properties shared{syclex::enable_ipc{true}};

    std::uint32_t *memory = sycl::malloc_device<std::uint32_t>(count, queue);
    require(memory != nullptr, "there is no memory");
    const std::size_t grain = syclex::get_mem_granularity(device, context);
    syclex::physical_mem answers(device, context, grain, shared);
    const mapping answered(answers, context);
    queue.memset(answered.as<void>(), 0, grain).wait();
    sycl::event ready = syclex::make_event(context, shared);

    ipc::handle memory_handle = ipc::memory::get(memory, context);
    ipc::handle answers_handle = ipc::physical_memory::get(answers);
    ipc::handle ready_handle = ipc::event::get(ready);

    std::vector<consumer> consumers;
    for (int at = 1; at + 1 < argc; at += 2) {
        consumer one{std::make_unique<link>(argv[at], argv[at + 1], true),
                     syclex::make_event(context, shared), {}};
        ipc::handle done_handle = ipc::event::get(one.done);
        const auto index = static_cast<std::byte>(consumers.size());
        for (const bytes &ticket : {memory_handle.data(), answers_handle.data(),
                                    ready_handle.data(), done_handle.data(), bytes{index}})
            one.line->send(ticket);
        one.theirs = ipc::event::open(one.line->receive(), context);
        // All is open over there: the handle is no longer needed, the event is.
        ipc::event::put(done_handle, context);
        consumers.push_back(std::move(one));
    }
    require(!consumers.empty(), "usage: producer THERE BACK [THERE BACK]...");
    ipc::memory::put(memory_handle, context);
    ipc::physical_memory::put(answers_handle, context);
    ipc::event::put(ready_handle, context);

    // A copy of the answers after each round, all made by the queue: it is looked at in the end.
    std::uint32_t *seen = sycl::malloc_host<std::uint32_t>(rounds * consumers.size(), queue);
    require(seen != nullptr, "there is no memory");
    for (std::uint32_t round = 0; round < rounds; ++round) {
        fill(queue, memory, round, count);
        syclex::enqueue_signal_event(queue, ready);
        for (consumer &one : consumers) one.line->step();
        for (consumer &one : consumers) one.line->await_step();
        for (consumer &one : consumers) syclex::enqueue_wait_event(queue, one.done);
        queue.memcpy(seen + round * consumers.size(), answered.as<void>(),
                     consumers.size() * sizeof *seen);
    }
    queue.wait();
    for (std::uint32_t round = 0; round < rounds; ++round)
        for (std::uint32_t i = 0; i < consumers.size(); ++i)
            require(seen[round * consumers.size() + i] == answer(i, round),
                    "consumer " + std::to_string(i) + "'s answer to round " + std::to_string(round) +
                        " was not there when its event said so, but " +
                        std::to_string(seen[round * consumers.size() + i]));

    // The other direction: their event, our wait on the host.
    for (std::uint32_t i = 0; i < consumers.size(); ++i) {
        consumers[i].line->step();
        consumers[i].line->await_step();
        consumers[i].theirs.wait();
        // A device's memory is read by the device: the host may not reach it.
        queue.memcpy(seen, answered.as<std::uint32_t>() + i, sizeof *seen).wait();
        require(*seen == answer(i, rounds),
                "a consumer's last answer was not there when its event said so");
        consumers[i].line->step();
    }
    sycl::free(seen, queue);
    sycl::free(memory, queue);
}
} // namespace

int main(int argc, char **argv) {
    return run("producer", [&] { produce(argc, argv); });
}
