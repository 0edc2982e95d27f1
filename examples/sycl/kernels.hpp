// What the two programs with kernels agree on, and their code. The producer's kernel is written in SYCL, and compiled by the
// runtime when the program starts; the consumer's is SPIR-V that was made ahead, as a SYCL or OpenCL compiler would.
#pragma once

#include "common.hpp"
#include <sycl/kernel_bundle.hpp>

namespace kernels {
constexpr std::size_t size = 1 << 20; // numbers in the memory
constexpr std::uint32_t turns = 200;  // of each side
constexpr std::size_t group = 64;

// What a number becomes in the producer's turn, and then in the consumer's. A turn that is left out, or comes
// before the other's, has another result.
constexpr std::uint32_t mixed(std::uint32_t old, std::uint32_t turn) { return old * 5 + turn; }
constexpr std::uint32_t answered(std::uint32_t old, std::uint32_t turn) { return (old ^ turn) * 3; }

inline const std::string mix = R"(
#include <sycl/sycl.hpp>
namespace oneapi = sycl::ext::oneapi;

extern "C" SYCL_EXTERNAL SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((oneapi::experimental::nd_range_kernel<1>))
void mix(std::uint32_t *numbers, std::uint32_t turn) {
    const std::size_t i = oneapi::this_work_item::get_nd_item<1>().get_global_id(0);
    const std::uint32_t old = turn == 0 ? static_cast<std::uint32_t>(i) : numbers[i];
    numbers[i] = old * 5 + turn;
}
)";

// numbers[i] = (numbers[i] ^ turn) * 3: answer.spvasm, assembled by `spirv-as --target-env spv1.0`.
inline const std::vector<std::uint32_t> answer = {
#include "answer.inc"
};

// A kernel of SYCL's source.
inline sycl::kernel of_source(const sycl::context &context, const std::string &text,
                              const std::string &name) {
    auto bundle =
        syclex::create_kernel_bundle_from_source(context, syclex::source_language::sycl, text);
    return syclex::build(bundle).ext_oneapi_get_kernel(name);
}
// A kernel of SPIR-V.
inline sycl::kernel of_spirv(const sycl::context &context, const std::vector<std::uint32_t> &words,
                             const std::string &name) {
    const auto *first = reinterpret_cast<const std::byte *>(words.data());
    const bytes code(first, first + words.size() * sizeof words[0]);
    auto bundle =
        syclex::create_kernel_bundle_from_source(context, syclex::source_language::spirv, code);
    return syclex::build(bundle).ext_oneapi_get_kernel(name);
}
// Runs it over all numbers, in the queue's order.
inline void run(sycl::queue &queue, const sycl::kernel &kernel, std::uint32_t *numbers,
                std::uint32_t turn) {
    queue.submit([&](sycl::handler &command) {
        command.set_args(numbers, turn);
        command.parallel_for(sycl::nd_range<1>{size, group}, kernel);
    });
}
} // namespace kernels
