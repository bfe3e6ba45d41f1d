// test: sanitize
// Devices that fail: nothing leaks, and what is thrown is an Error.
#include <new>

#include "kernel/support.hpp"

namespace {

/// Memory that cannot be filled or copied to.
struct BrokenDevice {
  bool fills = true;
  int allocations = 0;
  void* allocate(std::size_t bytes) {
    ++allocations;
    return ::operator new(bytes);
  }
  void release(void* memory) noexcept {
    --allocations;
    ::operator delete(memory);
  }
  void zero(void*, std::size_t) {
    if (!fills) throw typeformer::Error("BrokenDevice", "zero", "success", "none");
  }
  void upload(void*, const void*, std::size_t) { throw typeformer::Error("BrokenDevice", "upload", "success", "none"); }
};

}  // namespace

TEST_CASE("a buffer that cannot be filled frees its memory") {
  BrokenDevice on;
  using Buffer = typeformer::Buffer<BrokenDevice, float>;
  CHECK_THROWS_AS(Buffer(on, std::vector<float>(4)), typeformer::Error);
  on.fills = false;
  CHECK_THROWS_AS(Buffer(on, 4), typeformer::Error);
  CHECK(on.allocations == 0);
}

TEST_CASE("no memory for temporaries is an Error, on the calling thread alone too") {
  for (const int threads : {1, 2}) {
    typeformer::cpu::Device on(threads);
    for (const std::int64_t count : {1, 2})
      CHECK_THROWS_AS(on.parallel(count, 1, [](std::int64_t, std::int64_t) { throw std::bad_alloc(); }),
                      typeformer::Error);
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // which ends a program that asks for more memory than there is
TEST_CASE("no memory for an operation's partial sums is an Error too") {
  typeformer::cpu::Device on(1);
  constexpr typeformer::RMSNorm norm{};
  float gradient[4]{};
  CHECK_THROWS_AS(norm_rows_backward(on, typeformer::norm_form(typeformer::fixed<norm>),
                                     typeformer::NormBackwardArgs<float>{
                                         .dgain = gradient, .rows = std::int64_t{1} << 42, .width = 4}),
                  typeformer::Error);
}
#endif
