// What a consumer gets that was handed something else than a ticket: an exception it can catch, and
// the reason on the standard error, one line each. Nothing here needs a producer.
#include "common.hpp"

namespace {
template <typename Open> void try_open(const std::string &what, Open open) {
    try {
        open();
    } catch (const sycl::exception &e) {
        const bool invalid = e.code() == sycl::errc::invalid;
        std::cout << what << ": " << (invalid ? "invalid" : e.what()) << std::endl;
        return;
    }
    throw std::runtime_error(what + " was opened");
}

void open_garbage() {
    const sycl::queue queue;
    const sycl::context context = queue.get_context();
    const sycl::device device = queue.get_device();
    const syclex::properties shared{syclex::enable_ipc{true}};

    // A real ticket, spoilt in four ways.
    void *memory = sycl::malloc_device(4096, queue);
    ipc::handle handle = ipc::memory::get(memory, context);
    const bytes real = handle.data();
    bytes cut_off(real.begin(), real.begin() + real.size() / 2), zeros(real.size()), forged = real;
    forged[real.size() / 2] ^= std::byte{1};
    ipc::memory::put(handle, context);

    struct {
        const char *name;
        const bytes &data;
    } const tickets[] = {{"cut off", cut_off}, {"zeros", zeros}, {"forged", forged}, {"put", real}};
    for (const auto &[name, data] : tickets) {
        const auto &bytes_of = data;
        try_open(std::string("memory, ") + name,
                 [&] { ipc::memory::open(bytes_of, context, device); });
        try_open(std::string("physical memory, ") + name,
                 [&] { ipc::physical_memory::open(bytes_of, context, device); });
        try_open(std::string("event, ") + name, [&] { ipc::event::open(bytes_of, context); });
    }
    sycl::free(memory, queue);
}
} // namespace

int main() { return run("garbage", open_garbage); }
