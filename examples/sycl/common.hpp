// What the programs of this folder share: refusals said in words, what a call throws, and a link to
// another program over two named pipes.
#pragma once

#include <sycl/detail/core.hpp>
#include <sycl/ext/oneapi/experimental/ipc_event.hpp>
#include <sycl/ext/oneapi/experimental/ipc_memory.hpp>
#include <sycl/ext/oneapi/experimental/ipc_physical_memory.hpp>
#include <sycl/ext/oneapi/experimental/reusable_events.hpp>
#include <sycl/ext/oneapi/virtual_mem/virtual_mem.hpp>
#include <sycl/properties/all_properties.hpp>
#include <sycl/usm.hpp>
#include <sycl/usm/usm_allocator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace syclex = sycl::ext::oneapi::experimental;
namespace ipc = syclex::ipc;

using bytes = std::vector<std::byte>;

inline void require(bool fine, const std::string &what) {
    if (!fine) throw std::runtime_error(what);
}

// Runs `call`, which must throw a SYCL exception of this code; anything else ends the program.
template <typename Call> void refused(sycl::errc code, const std::string &what, Call call) {
    try {
        call();
    } catch (const sycl::exception &e) {
        require(e.code() == code, what + ": refused in another way: " + e.what());
        return;
    }
    throw std::runtime_error(what + ": was not refused");
}

// Runs a program's body and says what went wrong, if anything; the value is for `main`.
template <typename Body> int run(const char *name, Body body) {
    try {
        body();
    } catch (const std::exception &e) {
        std::cerr << name << ": " << e.what() << std::endl;
        return 1;
    }
    std::cout << name << ": fine" << std::endl;
    return 0;
}

// Fills memory with one value, `times` times, by the runtime's own command. For Level Zero its header
// makes a kernel of that, which takes a SYCL compiler: there the value is copied from the host, and
// then ever more of what is in place already.
template <typename T>
sycl::event fill(sycl::queue &queue, T *memory, const T &value, std::size_t times,
                 const std::vector<sycl::event> &after = {}) {
    if (queue.get_backend() != sycl::backend::ext_oneapi_level_zero)
        return queue.fill(memory, value, times, after);
    // Kept to the program's end: a copy may begin at any time after this.
    static std::deque<T> values;
    values.push_back(value);
    sycl::event last = queue.memcpy(memory, &values.back(), sizeof value, after);
    for (std::size_t there = 1; there < times; there *= 2)
        last = queue.memcpy(memory + there, memory, std::min(there, times - there) * sizeof value, last);
    return last;
}

// The two directions between two programs. Both sides open the pipes in the same order, since
// opening a pipe lasts until its other end is open too.
class link {
  public:
    // `first` of exactly one of the two sides is true.
    link(const std::string &there, const std::string &back, bool first) {
        if (first) out.open(there, std::ios::binary), in.open(back, std::ios::binary);
        else in.open(there, std::ios::binary), out.open(back, std::ios::binary);
        require(out.good() && in.good(), "cannot open " + there + " and " + back);
    }
    void send(const bytes &data) {
        const std::uint32_t size = static_cast<std::uint32_t>(data.size());
        out.write(reinterpret_cast<const char *>(&size), sizeof size);
        out.write(reinterpret_cast<const char *>(data.data()), size);
        require(out.flush().good(), "the other program no longer listens");
    }
    bytes receive() {
        std::uint32_t size = 0;
        in.read(reinterpret_cast<char *>(&size), sizeof size);
        require(in.good(), "the other program ended early");
        bytes data(size);
        in.read(reinterpret_cast<char *>(data.data()), size);
        require(in.good(), "the other program ended in the middle of a message");
        return data;
    }
    // An empty message: "I have got this far".
    void step() { send({}); }
    void await_step() { require(receive().empty(), "expected a step, not data"); }

  private:
    std::ofstream out;
    std::ifstream in;
};

// Physical memory at an address of this process, as long as this lives.
class mapping {
  public:
    mapping(const syclex::physical_mem &memory, const sycl::context &context)
        : size(memory.size()), context(context),
          address(syclex::reserve_virtual_mem(size, context)),
          pointer(memory.map(address, size, syclex::address_access_mode::read_write)) {}
    mapping(const mapping &) = delete;
    mapping &operator=(const mapping &) = delete;
    ~mapping() {
        syclex::unmap(pointer, size, context);
        syclex::free_virtual_mem(address, size, context);
    }
    template <typename T> T *as() const { return static_cast<T *>(pointer); }

  private:
    std::size_t size;
    sycl::context context;
    std::uintptr_t address;
    void *pointer;
};

// What a producer and its consumers agree on: rounds, numbers in the memory, and the number that
// stands for a round, or for a consumer's answer to it.
constexpr std::uint32_t rounds = 1000;
constexpr std::size_t count = 16384;
constexpr std::uint32_t answer(std::uint32_t consumer, std::uint32_t round) {
    return (consumer + 1) * 1000000 + round;
}
