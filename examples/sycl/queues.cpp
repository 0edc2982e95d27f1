// Queues in order and out of order: what waits for what, barriers, host tasks, profiling.
#include "common.hpp"

#include <sycl/ext/oneapi/experimental/enqueue_functions.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace {
using status = sycl::info::event_command_status;
namespace profiling = sycl::info::event_profiling;
constexpr std::size_t chain = 200;

// Holds a host task back until it is opened.
class gate {
  public:
    void open() {
        const std::lock_guard lock(mutex);
        is_open = true;
        changed.notify_all();
    }
    void pass() {
        std::unique_lock lock(mutex);
        require(changed.wait_for(lock, std::chrono::seconds(30), [&] { return is_open; }),
                "nobody opened the gate");
    }

  private:
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
};

status of(const sycl::event &event) {
    return event.get_info<sycl::info::event::command_execution_status>();
}

// Each link of a chain of copies depends on the one before, and nothing else orders them.
void dependencies_order_commands_out_of_order() {
    sycl::queue queue;
    require(!queue.is_in_order(), "the default is out of order");
    std::uint32_t *numbers = sycl::malloc_device<std::uint32_t>(chain + 1, queue);
    sycl::event last = queue.memset(numbers, 0xff, (chain + 1) * sizeof *numbers);
    last = fill(queue, numbers, std::uint32_t{42}, 1, {last});
    for (std::size_t i = 0; i < chain; ++i)
        last = queue.memcpy(numbers + i + 1, numbers + i, sizeof *numbers, last);
    std::uint32_t end = 0;
    queue.memcpy(&end, numbers + chain, sizeof end, last).wait();
    require(end == 42, "a chain of dependent copies ran out of order");
    require(of(last) == status::complete, "an earlier event is not complete");
    sycl::free(numbers, queue);
}

void in_order_queues_need_no_dependencies() {
    sycl::queue queue{sycl::property::queue::in_order{}};
    require(queue.is_in_order(), "it is not in order");
    std::uint32_t *numbers = sycl::malloc_shared<std::uint32_t>(chain + 1, queue);
    fill(queue, numbers, std::uint32_t{42}, 1);
    for (std::size_t i = 0; i < chain; ++i) queue.memcpy(numbers + i + 1, numbers + i, sizeof *numbers);
    queue.wait();
    require(numbers[chain] == 42, "copies of an in-order queue ran out of order");
    sycl::free(numbers, queue);
}

// The adapter's own host tasks: nothing behind the barrier may start before all in front of it.
void barriers_order_what_is_on_their_sides() {
    sycl::queue queue;
    gate held;
    std::atomic<int> before{0}, partly{0};
    std::atomic<bool> early{false};
    sycl::event first = queue.submit([&](sycl::handler &h) {
        syclex::host_task(h, [&] { held.pass(), ++before; });
    });
    for (int i = 0; i < 8; ++i)
        queue.submit([&](sycl::handler &h) { syclex::host_task(h, [&] { ++before; }); });
    sycl::event all = queue.ext_oneapi_submit_barrier();
    sycl::event after = queue.submit([&](sycl::handler &h) {
        syclex::host_task(h, [&] { early = early || before != 9; });
    });
    // A barrier that waits for some: on another queue, by an event.
    sycl::queue other(queue.get_context(), queue.get_device());
    other.ext_oneapi_submit_barrier({first});
    sycl::event behind = other.submit([&](sycl::handler &h) {
        syclex::host_task(h, [&] { early = early || before < 1, ++partly; });
    });
    require(of(all) != status::complete && of(after) != status::complete && partly == 0,
            "something passed a closed barrier");
    held.open();
    sycl::event::wait({all, after, behind});
    require(!early && before == 9 && partly == 1, "a barrier let something through too soon");
    syclex::barrier(queue);
    syclex::partial_barrier(queue, {after, behind});
    queue.wait_and_throw();
}

// SYCL's host tasks run on threads of the SYCL runtime, between commands of the device.
void host_tasks_run_between_commands() {
    sycl::queue queue;
    auto *numbers = sycl::malloc_shared<std::uint32_t>(2, queue);
    sycl::event filled = fill(queue, numbers, std::uint32_t{5}, 1);
    sycl::event doubled = queue.submit([&](sycl::handler &h) {
        h.depends_on(filled);
        h.host_task([=] { numbers[0] *= 2; });
    });
    queue.submit([&](sycl::handler &h) {
        h.depends_on(doubled);
        h.memcpy(numbers + 1, numbers, sizeof *numbers);
    });
    queue.wait();
    require(numbers[1] == 10, "a host task ran too late");
    sycl::free(numbers, queue);
}

void profiled(sycl::queue queue) {
    bytes from(1 << 20), to(1 << 20);
    std::uint64_t behind = 0;
    for (int i = 0; i < 10; ++i) {
        const sycl::event copied = queue.memcpy(to.data(), from.data(), from.size());
        copied.get_info<sycl::info::event::command_execution_status>();
        const auto submit = copied.get_profiling_info<profiling::command_submit>();
        const auto start = copied.get_profiling_info<profiling::command_start>();
        const auto end = copied.get_profiling_info<profiling::command_end>();
        require(submit != 0 && submit <= start && start < end, "times are out of order");
        require(!queue.is_in_order() || start >= behind, "two commands in order overlapped");
        behind = end;
        queue.wait();
    }
    // A signal is one moment, in the same time as the commands around it.
    sycl::event mark = syclex::make_event(queue.get_context(),
                                          syclex::properties{syclex::enable_profiling{true}});
    syclex::enqueue_signal_event(queue, mark);
    mark.wait();
    const auto at = mark.get_profiling_info<profiling::command_end>();
    require(at >= behind && at == mark.get_profiling_info<profiling::command_start>() &&
                at == mark.get_profiling_info<profiling::command_submit>(),
            "a signal's times are not one moment");
}

void profiling_tells_when_commands_ran() {
    using namespace sycl::property::queue;
    profiled(sycl::queue{enable_profiling{}});
    profiled(sycl::queue{sycl::property_list{in_order{}, enable_profiling{}}});
    sycl::queue plain;
    bytes from(16), to(16);
    sycl::event copied = plain.memcpy(to.data(), from.data(), from.size());
    copied.wait();
    refused(sycl::errc::invalid, "times of a queue without profiling",
            [&] { copied.get_profiling_info<profiling::command_end>(); });
}

// An event of a caller that is signalled again and again, without a process to share it with.
void events_are_signalled_again_and_again() {
    sycl::queue one{sycl::property::queue::in_order{}};
    sycl::queue two(one.get_context(), one.get_device(), sycl::property::queue::in_order{});
    sycl::event event = syclex::make_event(one.get_context());
    auto *numbers = sycl::malloc_shared<std::uint32_t>(1001, one);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        sycl::queue &from = i % 2 ? one : two, &to = i % 2 ? two : one;
        if (i == 0) fill(from, numbers, std::uint32_t{1}, 1);
        syclex::enqueue_signal_event(from, event);
        if (i % 3) syclex::enqueue_wait_event(to, event);
        else syclex::enqueue_wait_events(to, {event});
        to.memcpy(numbers + i + 1, numbers + i, sizeof *numbers);
    }
    one.wait(), two.wait(), event.wait();
    require(numbers[1000] == 1, "a wait did not wait for the latest signal");
    require(of(event) == status::complete, "the event is not complete");
    sycl::free(numbers, one);
}
} // namespace

int main() {
    return run("queues", [] {
        dependencies_order_commands_out_of_order();
        in_order_queues_need_no_dependencies();
        barriers_order_what_is_on_their_sides();
        host_tasks_run_between_commands();
        profiling_tells_when_commands_ran();
        events_are_signalled_again_and_again();
    });
}
