/// Defines the __tsan_* functions that -fsanitize=thread makes kernels call, and the hooks of checker.hpp. For one file
/// of a program, which includes it first and is compiled with TYPEFORMER_CUDA_ON_HOST but without -fsanitize=thread.
#pragma once
#if !defined(TYPEFORMER_SIMT_RACECHECK)
#define TYPEFORMER_SIMT_RACECHECK 1
#endif
#if defined(__SANITIZE_THREAD__)
#error "Compile the race checker's own file without -fsanitize=thread."
#endif
#include "typeformer/simt/racecheck.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

inline RaceChecker& race_checker() {
  static RaceChecker& checker = *new RaceChecker;
  return checker;
}

// Library templates may come from an instrumented file: what the checker itself does is not checked.
inline constinit thread_local bool checking = false;

inline void check_access(const void* pointer, std::size_t bytes, bool write, const void* caller, bool counted = true) {
  if (!current_lane || checking) return;
  checking = true;
  RaceChecker& checker = race_checker();
  checker.access(pointer, bytes, write, false, checker.origin_of(caller), counted);
  checking = false;
}

inline void check_alignment(const void* pointer, std::size_t bytes, const void* caller) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0 || !current_lane || checking) return;
  checking = true;
  RaceChecker& checker = race_checker();
  checker.misaligned(pointer, bytes, checker.origin_of(caller));
  checking = false;
}

void checker_access(Lane& lane, const void* address, std::size_t bytes, Access access, Place place) {
  if (checking) return;
  checking = true;
  RaceChecker& checker = race_checker();
  const bool write = access == Access::store || access == Access::atomic || access == Access::async_issue ||
                     access == Access::async_arrival;
  if (access == Access::atomic) checker.synchronize(lane, address);
  if (access == Access::async_arrival) checker.settle(*lane.block, address, bytes);
  checker.access(address, bytes, write, access == Access::atomic, checker.origin_of(place),
                 access != Access::async_arrival);
  if (access == Access::async_issue) checker.set_in_flight(*lane.block, address, bytes, true);
  checking = false;
}
void checker_rows(Warp& warp, const void* const* rows, unsigned matrices, Place place) {
  checking = true;
  RaceChecker& checker = race_checker();
  const std::uint32_t origin = checker.origin_of(place);
  Lane* const caller = current_lane;
  for (unsigned i = 0; i < 8 * matrices; ++i) {
    current_lane = &warp.lanes[i];  // a row counts as read by the lane that names it
    checker.access(rows[i], 16, false, false, origin, false);
  }
  current_lane = caller;
  if (options().counters) checker.counter().add_rows(origin, rows, matrices);
  checking = false;
}
void checker_warp_sync(Warp& warp, unsigned mask) { race_checker().sync_warp(warp, mask); }
void checker_fence(Lane& lane) { race_checker().fence(*lane.block); }
void checker_block_begin(Block& block) { race_checker().begin_block(block); }
void checker_block_end(Block&) { race_checker().end_block(); }
bool checker_new_finding(std::string& where, std::string& what) { return race_checker().take_finding(where, what); }
void checker_operation(const Operation& operation, const Stamp& stamp, bool outermost) {
  race_checker().begin_operation(operation, stamp, outermost);
}
void checker_launch(std::uint64_t first, std::uint64_t blocks) { race_checker().begin_kernel(first, blocks); }
void checker_allocate(const void* address, std::size_t bytes) { race_checker().allocate(address, bytes); }
void checker_release(const void* address) { race_checker().release(address); }
std::vector<LineCount> line_counts() {
  std::map<std::tuple<std::string, bool, bool>, LineCount> lines;
  race_checker().for_each_count([&](const void*, const std::string& where, const LineCount& count) {
    LineCount& line = lines[{where, count.shared, count.store}];
    line.where = where;
    line.shared = count.shared;
    line.store = count.store;
    line.bytes = count.bytes;
    line.instructions += count.instructions;
    line.lanes += count.lanes;
    line.actual += count.actual;
    line.ideal += count.ideal;
  });
  std::vector<LineCount> result;
  for (auto& [key, line] : lines) result.push_back(std::move(line));
  return result;
}
std::map<std::string, KernelCount> kernel_counts() {
  std::map<std::string, KernelCount> result;
  race_checker().for_each_count(
      [&](const void* kernel, const std::string&, const LineCount& count) { result[kernel_name(kernel)].add(count); });
  return result;
}
void reset_line_counts() { race_checker().reset_counts(); }

}  // namespace typeformer

// The unaligned forms are what the compiler makes of copies and packed structs: no single instruction on a GPU.
#define TYPEFORMER_SIMT_TSAN(name, bytes, write)                                                \
  extern "C" void __tsan_##name(void* pointer) {                                                \
    constexpr bool single = std::string_view(#name).find("unaligned") != 0;                     \
    if (single) typeformer::simt::check_alignment(pointer, bytes, __builtin_return_address(0)); \
    typeformer::simt::check_access(pointer, bytes, write, __builtin_return_address(0));         \
  }
#define TYPEFORMER_SIMT_TSAN_SIZE(bytes)                             \
  TYPEFORMER_SIMT_TSAN(read##bytes, bytes, false)                    \
  TYPEFORMER_SIMT_TSAN(write##bytes, bytes, true)                    \
  TYPEFORMER_SIMT_TSAN(read_write##bytes, bytes, true)               \
  TYPEFORMER_SIMT_TSAN(unaligned_read##bytes, bytes, false)          \
  TYPEFORMER_SIMT_TSAN(unaligned_write##bytes, bytes, true)          \
  TYPEFORMER_SIMT_TSAN(volatile_read##bytes, bytes, false)           \
  TYPEFORMER_SIMT_TSAN(volatile_write##bytes, bytes, true)           \
  TYPEFORMER_SIMT_TSAN(unaligned_volatile_read##bytes, bytes, false) \
  TYPEFORMER_SIMT_TSAN(unaligned_volatile_write##bytes, bytes, true)
TYPEFORMER_SIMT_TSAN_SIZE(1)
TYPEFORMER_SIMT_TSAN_SIZE(2)
TYPEFORMER_SIMT_TSAN_SIZE(4)
TYPEFORMER_SIMT_TSAN_SIZE(8)
TYPEFORMER_SIMT_TSAN_SIZE(16)
#undef TYPEFORMER_SIMT_TSAN_SIZE
#undef TYPEFORMER_SIMT_TSAN

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_read_range(void* pointer, unsigned long bytes) {
  typeformer::simt::check_access(pointer, bytes, false, __builtin_return_address(0), false);
}
void __tsan_write_range(void* pointer, unsigned long bytes) {
  typeformer::simt::check_access(pointer, bytes, true, __builtin_return_address(0), false);
}
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  typeformer::simt::check_access(from, bytes, false, __builtin_return_address(0), false);
  typeformer::simt::check_access(to, bytes, true, __builtin_return_address(0), false);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  typeformer::simt::check_access(from, bytes, false, __builtin_return_address(0), false);
  typeformer::simt::check_access(to, bytes, true, __builtin_return_address(0), false);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  typeformer::simt::check_access(to, bytes, true, __builtin_return_address(0), false);
  return std::memset(to, value, bytes);
}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}

// Host atomics (mutexes, shared_ptr, the layer itself): done, not checked. Kernels' atomics come through
// checker_access.
#define TYPEFORMER_SIMT_TSAN_RMW(bits, T, name)                                        \
  extern "C" T __tsan_atomic##bits##_fetch_##name(volatile T* pointer, T value, int) { \
    return __atomic_fetch_##name(pointer, value, __ATOMIC_SEQ_CST);                    \
  }
#define TYPEFORMER_SIMT_TSAN_ATOMIC(bits, T)                                                                     \
  extern "C" T __tsan_atomic##bits##_load(const volatile T* pointer, int) {                                      \
    return __atomic_load_n(pointer, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                              \
  extern "C" void __tsan_atomic##bits##_store(volatile T* pointer, T value, int) {                               \
    __atomic_store_n(pointer, value, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                              \
  extern "C" T __tsan_atomic##bits##_exchange(volatile T* pointer, T value, int) {                               \
    return __atomic_exchange_n(pointer, value, __ATOMIC_SEQ_CST);                                                \
  }                                                                                                              \
  extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* pointer, T* old, T value, int, int) { \
    return __atomic_compare_exchange_n(pointer, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
  }                                                                                                              \
  extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* pointer, T* old, T value, int, int) {   \
    return __atomic_compare_exchange_n(pointer, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
  }                                                                                                              \
  extern "C" T __tsan_atomic##bits##_compare_exchange_val(volatile T* pointer, T old, T value, int, int) {       \
    __atomic_compare_exchange_n(pointer, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                \
    return old;                                                                                                  \
  }                                                                                                              \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, add)                                                                         \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, sub)                                                                         \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, and)                                                                         \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, or)                                                                          \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, xor)                                                                         \
  TYPEFORMER_SIMT_TSAN_RMW(bits, T, nand)
TYPEFORMER_SIMT_TSAN_ATOMIC(8, unsigned char)
TYPEFORMER_SIMT_TSAN_ATOMIC(16, unsigned short)
TYPEFORMER_SIMT_TSAN_ATOMIC(32, unsigned)
TYPEFORMER_SIMT_TSAN_ATOMIC(64, unsigned long)
#undef TYPEFORMER_SIMT_TSAN_ATOMIC
#undef TYPEFORMER_SIMT_TSAN_RMW
