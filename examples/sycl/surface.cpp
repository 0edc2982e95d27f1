// Every function, overload, property, aspect and exception of SYCL's extension for inter-process
// communication, within one process (producer.cpp and consumer.cpp are two). Compiled as C++20 it
// has the overloads that take std::span, too. `surface without` expects devices that lack it all.
#include "common.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace {
constexpr std::size_t size = 4096;
using sycl::errc;

struct world {
    sycl::device device;
    sycl::context context = device.get_platform().khr_get_default_context();
    sycl::queue queue{context, device, sycl::property::queue::in_order{}};
};

template <typename Handle> bytes ticket_of(const Handle &handle) {
    const bytes data = handle.data();
    require(!data.empty(), "a handle has no bytes");
#if __cpp_lib_span
    const auto view = handle.data_view();
    require(bytes(view.begin(), view.end()) == data, "a view shows other bytes than the copy");
#endif
    return data;
}

// Calls `check` with what is not a handle's data: empty, cut off, too long, one byte changed.
// (Empty, but not null: a null pointer has an error of its own in UR, and SYCL calls that `runtime`.)
void garbage(const bytes &ticket, const std::function<void(const bytes &)> &check) {
    bytes empty(1);
    empty.pop_back();
    check(empty);
    check(bytes(ticket.begin(), ticket.end() - 1));
    bytes longer = ticket;
    longer.push_back(std::byte{0});
    check(longer);
    check(bytes(1 << 20, std::byte{0xff}));
    check(bytes(ticket.size()));
    check(bytes(ticket.size(), std::byte{0xff}));
    for (std::size_t i = 0; i < ticket.size(); i += 5) {
        bytes forged = ticket;
        forged[i] ^= std::byte{0x40};
        check(forged);
    }
}

// --- memory -----------------------------------------------------------------------------------

// The functions of one of the two namespaces, the present one and the deprecated one.
struct present {
    using handle = ipc::handle;
    template <typename... A> static auto get(A... a) { return ipc::memory::get(a...); }
    template <typename... A> static void put(handle &h, A... a) { ipc::memory::put(h, a...); }
    template <typename... A> static auto open(const A &...a) { return ipc::memory::open(a...); }
    template <typename... A> static void close(A... a) { ipc::memory::close(a...); }
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct deprecated {
    using handle = syclex::ipc_memory::handle;
    template <typename... A> static auto get(A... a) { return syclex::ipc_memory::get(a...); }
    template <typename... A> static void put(handle &h, A... a) { syclex::ipc_memory::put(h, a...); }
    template <typename... A> static auto open(const A &...a) { return syclex::ipc_memory::open(a...); }
    template <typename... A> static void close(A... a) { syclex::ipc_memory::close(a...); }
};
#pragma GCC diagnostic pop

template <typename Api> void memory(world &w) {
    auto *numbers = sycl::malloc_device<std::uint32_t>(size, w.context.get_devices()[0], w.context);
    fill(w.queue, numbers, std::uint32_t{7}, size).wait();
    auto handle = Api::get(numbers, w.context);
    auto by_default = Api::get(numbers);
    // A pointer into the middle is shared as well, and opened as such.
    auto middle = Api::get(numbers + 100, w.context);
    const bytes ticket = ticket_of(handle);
    require(ticket_of(middle).size() == ticket.size(), "handles differ in size");

    std::vector<void *> opened{Api::open(ticket, w.context, w.device), Api::open(ticket, w.device),
                               Api::open(ticket), Api::open(ticket_of(by_default)),
                               Api::open(ticket_of(middle))};
#if __cpp_lib_span
    const auto view = handle.data_view();
    opened.insert(opened.begin(), {Api::open(view, w.context, w.device), Api::open(view, w.device),
                                   Api::open(view)});
#endif
    const std::uint32_t next = 8;
    w.queue.memcpy(numbers + 100, &next, sizeof next).wait();
    for (void *pointer : opened) {
        const auto *seen = static_cast<std::uint32_t *>(pointer) + (pointer == opened.back() ? 0 : 100);
        std::uint32_t value = 0;
        w.queue.memcpy(&value, seen, sizeof value).wait();
        require(value == next, "opened memory is other memory");
    }
    garbage(ticket, [&](const bytes &data) {
        refused(errc::invalid, "garbage for memory", [&] { Api::open(data, w.context, w.device); });
    });

    // Nobody's pointer is refused by SYCL's own question; memory of another kind by the adapter.
    int on_the_stack = 0;
    refused(errc::invalid, "sharing the stack", [&] { Api::get(&on_the_stack, w.context); });
    void *const shared = sycl::malloc_shared(size, w.queue), *const host = sycl::malloc_host(size, w.queue);
    refused(errc::runtime, "sharing shared memory", [&] { Api::get(shared, w.context); });
    refused(errc::runtime, "sharing host memory", [&] { Api::get(host, w.context); });
    refused(errc::runtime, "closing what was not opened", [&] { Api::close(&on_the_stack, w.context); });
    sycl::free(shared, w.queue);
    sycl::free(host, w.queue);

    Api::put(handle, w.context);
    Api::put(by_default);
    refused(errc::invalid, "a memory handle that was put", [&] { Api::open(ticket, w.context, w.device); });
    for (std::size_t i = 0; i < opened.size(); ++i)
        i % 2 ? Api::close(opened[i]) : Api::close(opened[i], w.context);
    // As SYCL programs do: the memory first, then the handle.
    sycl::free(numbers, w.context);
    refused(errc::invalid, "memory that was freed",
            [&] { Api::open(ticket_of(middle), w.context, w.device); });
    Api::put(middle, w.context);
}

// --- physical memory --------------------------------------------------------------------------

void physical(world &w) {
    const syclex::properties shared{syclex::enable_ipc{true}};
    const std::size_t grain = syclex::get_mem_granularity(w.device, w.context);
    syclex::physical_mem memory(w.device, w.context, grain, shared);
    const syclex::physical_mem by_queue(w.queue, grain, shared);
    syclex::physical_mem without(w.device, w.context, grain, syclex::properties{syclex::enable_ipc{false}});
    syclex::physical_mem plain(w.device, w.context, grain);
    require(memory.ipc_enabled() && by_queue.ipc_enabled(), "the property is lost");
    require(!without.ipc_enabled() && !plain.ipc_enabled(), "a property appeared");
    const mapping mapped(memory, w.context);
    fill(w.queue, mapped.as<std::uint32_t>(), std::uint32_t{7}, 1).wait();
    // A device's memory is read by the device: the host may not reach it.
    const auto first = [&](const mapping &at) {
        std::uint32_t value = 0;
        w.queue.memcpy(&value, at.as<std::uint32_t>(), sizeof value).wait();
        return value;
    };

    auto handle = ipc::physical_memory::get(memory), second = ipc::physical_memory::get(memory);
    const bytes ticket = ticket_of(handle);
    std::vector<syclex::physical_mem> opened{
        ipc::physical_memory::open(ticket, w.context, w.device),
        ipc::physical_memory::open(ticket, w.device), ipc::physical_memory::open(ticket)};
#if __cpp_lib_span
    const auto view = handle.data_view();
    opened.push_back(ipc::physical_memory::open(view, w.context, w.device));
    opened.push_back(ipc::physical_memory::open(view, w.device));
    opened.push_back(ipc::physical_memory::open(view));
#endif
    for (syclex::physical_mem &one : opened) {
        require(one.size() == grain && one.ipc_enabled(), "opened physical memory says other things");
        require(one.get_context() == w.context && one.get_device() == w.device, "it is elsewhere");
        const mapping there(one, w.context);
        require(first(there) == 7, "opened physical memory is other memory");
        fill(w.queue, there.as<std::uint32_t>(), std::uint32_t{7}, 1).wait();
    }
    // What was opened may be shared again.
    auto again = ipc::physical_memory::get(opened.front());
    const mapping third(ipc::physical_memory::open(ticket_of(again)), w.context);
    fill(w.queue, third.as<std::uint32_t>(), std::uint32_t{9}, 1).wait();
    require(first(mapped) == 9, "what was shared twice is other memory");
    garbage(ticket, [&](const bytes &data) {
        refused(errc::invalid, "garbage for physical memory",
                [&] { ipc::physical_memory::open(data, w.context, w.device); });
    });
    refused(errc::invalid, "sharing without the property", [&] { ipc::physical_memory::get(without); });
    refused(errc::invalid, "sharing without the property", [&] { ipc::physical_memory::get(plain); });
    ipc::physical_memory::put(again, w.context);
    ipc::physical_memory::put(second);
    ipc::physical_memory::put(handle, w.context);
    refused(errc::invalid, "a physical memory handle that was put", [&] { ipc::physical_memory::open(ticket); });
}

// --- events -----------------------------------------------------------------------------------

void events(world &w) {
    require(syclex::enable_ipc{} == syclex::enable_ipc{true} &&
                syclex::enable_ipc{true} != syclex::enable_ipc{false} &&
                syclex::enable_profiling{} == syclex::enable_profiling{true} &&
                syclex::enable_profiling{true} != syclex::enable_profiling{false},
            "properties compare wrongly");
    const syclex::properties shared{syclex::enable_ipc{true}};
    sycl::event event = syclex::make_event(w.context, shared);
    sycl::event by_default = syclex::make_event(shared);
    sycl::event plain = syclex::make_event(w.context), plainest = syclex::make_event();
    sycl::event both_off = syclex::make_event(
        w.context, syclex::properties{syclex::enable_ipc{false}, syclex::enable_profiling{false}});

    auto handle = ipc::event::get(event), second = ipc::event::get(by_default);
    const bytes ticket = ticket_of(handle);
    std::vector<sycl::event> opened{ipc::event::open(ticket, w.context), ipc::event::open(ticket)};
#if __cpp_lib_span
    const auto view = handle.data_view();
    opened.push_back(ipc::event::open(view, w.context));
    opened.push_back(ipc::event::open(view));
#endif
    auto *numbers = sycl::malloc_shared<std::uint32_t>(2, w.queue);
    std::uint32_t round = 0;
    // Signalled through each, waited for through each.
    std::vector<sycl::event> all = opened;
    all.push_back(event);
    for (sycl::event &from : all)
        for (sycl::event &to : all) {
            // A queue of its own for each: the runtime leaves out an in-order queue's wait for an
            // event object that this queue signalled last, and cannot know that the same event was
            // signalled through another object since.
            sycl::queue other(w.context, w.device, sycl::property::queue::in_order{});
            fill(w.queue, numbers, ++round, 1);
            syclex::enqueue_signal_event(w.queue, from);
            syclex::enqueue_wait_event(other, to);
            other.memcpy(numbers + 1, numbers, sizeof *numbers);
            syclex::enqueue_signal_event(other, to);
            from.wait();
            require(numbers[1] == round, "a wait through another handle came back too early");
        }
    syclex::enqueue_wait_events(w.queue, all);
    syclex::enqueue_wait_events(w.queue, {plain, plainest, both_off});
    for (sycl::event *one : {&plain, &plainest, &both_off}) {
        syclex::enqueue_signal_event(w.queue, *one);
        one->wait_and_throw();
        require(one->get_info<sycl::info::event::command_execution_status>() ==
                    sycl::info::event_command_status::complete,
                "a signal did not complete");
    }

    garbage(ticket, [&](const bytes &data) {
        refused(errc::invalid, "garbage for an event", [&] { ipc::event::open(data, w.context); });
    });
    refused(errc::invalid, "sharing without the property", [&] { ipc::event::get(plain); });
    refused(errc::invalid, "sharing without the property", [&] { ipc::event::get(both_off); });
    refused(errc::invalid, "sharing a command's event",
            [&] { ipc::event::get(fill(w.queue, numbers, 1u, 1)); });
    refused(errc::invalid, "sharing what was opened", [&] { ipc::event::get(opened.front()); });
    refused(errc::invalid, "sharing and profiling at once", [&] {
        syclex::make_event(w.context,
                           syclex::properties{syclex::enable_ipc{}, syclex::enable_profiling{}});
    });
    sycl::queue profiling(w.context, w.device, sycl::property::queue::enable_profiling{});
    refused(errc::invalid, "signalling a shared event on a profiling queue",
            [&] { syclex::enqueue_signal_event(profiling, event); });
    sycl::queue stranger(sycl::context(w.device), w.device);
    refused(errc::invalid, "signalling an event of another context",
            [&] { syclex::enqueue_signal_event(stranger, event); });

    ipc::event::put(second);
    ipc::event::put(handle, w.context);
    // What was opened outlives the event that it was opened from.
    sycl::event survivor = opened.front();
    opened.clear(), all.clear(), event = by_default;
    // An event's handle is good until it was put and its event is gone: SYCL keeps it until then.
    refused(errc::invalid, "an event handle that was put", [&] { ipc::event::open(ticket, w.context); });
    syclex::enqueue_signal_event(w.queue, survivor);
    survivor.wait();
    w.queue.wait();
    sycl::free(numbers, w.queue);
}

// Handles of one kind are no handles of another.
void kinds_do_not_mix(world &w) {
    const syclex::properties shared{syclex::enable_ipc{true}};
    void *pointer = sycl::malloc_device(size, w.queue);
    syclex::physical_mem object(w.queue, syclex::get_mem_granularity(w.device, w.context), shared);
    sycl::event event = syclex::make_event(w.context, shared);
    auto a = ipc::memory::get(pointer, w.context);
    auto b = ipc::physical_memory::get(object);
    auto c = ipc::event::get(event);
    for (const bytes &other : {b.data(), c.data()})
        refused(errc::invalid, "another kind's handle", [&] { ipc::memory::open(other); });
    for (const bytes &other : {a.data(), c.data()})
        refused(errc::invalid, "another kind's handle", [&] { ipc::physical_memory::open(other); });
    for (const bytes &other : {a.data(), b.data()})
        refused(errc::invalid, "another kind's handle", [&] { ipc::event::open(other); });
    ipc::event::put(c, w.context);
    ipc::physical_memory::put(b, w.context);
    ipc::memory::put(a, w.context);
    sycl::free(pointer, w.queue);
}

constexpr sycl::aspect aspects[] = {sycl::aspect::ext_oneapi_ipc_memory,
                                    sycl::aspect::ext_oneapi_ipc_physical_memory,
                                    sycl::aspect::ext_oneapi_ipc_event};

// On devices that have none of the three aspects every function says so.
void without(world &w) {
    for (const sycl::aspect aspect : aspects) require(!w.device.has(aspect), "an aspect is there");
    const bytes data(64);
    constexpr errc lacking = errc::feature_not_supported;
    refused(lacking, "opening memory", [&] { ipc::memory::open(data, w.context, w.device); });
    refused(lacking, "opening physical memory",
            [&] { ipc::physical_memory::open(data, w.context, w.device); });
    refused(lacking, "making shared physical memory", [&] {
        syclex::physical_mem(w.queue, syclex::get_mem_granularity(w.device, w.context),
                             syclex::properties{syclex::enable_ipc{true}});
    });
    refused(lacking, "opening an event", [&] { ipc::event::open(data, w.context); });
    refused(lacking, "making a shared event",
            [&] { syclex::make_event(w.context, syclex::properties{syclex::enable_ipc{true}}); });
}
} // namespace

int main(int argc, char **argv) {
    return run("surface", [&] {
        world w;
        if (argc > 1 && std::string(argv[1]) == "without") return without(w);
        for (const sycl::aspect aspect : aspects) require(w.device.has(aspect), "an aspect is lacking");
        memory<present>(w);
        memory<deprecated>(w);
        physical(w);
        events(w);
        kinds_do_not_mix(w);
    });
}
