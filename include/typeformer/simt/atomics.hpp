/// Atomic read-modify-write operations and fences under their CUDA names.
#pragma once
#include <bit>
#include <concepts>
#include <type_traits>

#include "typeformer/simt/executor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

/// Types that CUDA's atomicAdd and atomicExch take.
template <class T>
concept AtomicNumber = std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long> ||
    std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
concept AtomicInteger = std::integral<T> &&(AtomicNumber<T> || std::is_same_v<T, long long>);

/// Replaces *address by update(*address) in one step and returns the old value.
template <class T, class Update>
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) T update_atomically(T* address, Update update) {
  using Word = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
  struct __attribute__((__may_alias__)) Cell {
    Word word;
  };
  Word* const memory = &reinterpret_cast<Cell*>(address)->word;
  Word old = __atomic_load_n(memory, __ATOMIC_RELAXED), wanted;
  do wanted = std::bit_cast<Word>(update(std::bit_cast<T>(old)));
  while (!__atomic_compare_exchange_n(memory, &old, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return std::bit_cast<T>(old);
}

template <class T, class Update>
T atomic(T* address, Update update, const char* operation, Place place) {
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof(T))
    fail(*current_lane, operation, place, "an address aligned to the operand",
         message("%p", static_cast<void*>(address)));
  checker_access(*current_lane, address, sizeof(T), Access::atomic, place);
  return update_atomically(address, update);
}

namespace device {

template <AtomicNumber T>
T atomicAdd(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return static_cast<T>(old + value); }, "atomicAdd", place);
}
template <AtomicInteger T>
T atomicSub(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return static_cast<T>(old - value); }, "atomicSub", place);
}
template <AtomicNumber T>
T atomicExch(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T) { return value; }, "atomicExch", place);
}
template <AtomicInteger T>
T atomicMin(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return value < old ? value : old; }, "atomicMin", place);
}
template <AtomicInteger T>
T atomicMax(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return old < value ? value : old; }, "atomicMax", place);
}
template <AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return static_cast<T>(old & value); }, "atomicAnd", place);
}
template <AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return static_cast<T>(old | value); }, "atomicOr", place);
}
template <AtomicInteger T>
T atomicXor(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [value](T old) { return static_cast<T>(old ^ value); }, "atomicXor", place);
}
/// ((old >= limit) ? 0 : old + 1)
inline unsigned atomicInc(unsigned* address, unsigned limit, Place place = Place::here()) {
  return atomic(
      address, [limit](unsigned old) { return old >= limit ? 0u : old + 1u; }, "atomicInc", place);
}
/// ((old == 0 || old > limit) ? limit : old - 1)
inline unsigned atomicDec(unsigned* address, unsigned limit, Place place = Place::here()) {
  return atomic(
      address, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1u; }, "atomicDec", place);
}
template <AtomicInteger T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value, Place place = Place::here()) {
  return atomic(
      address, [=](T old) { return old == compare ? value : old; }, "atomicCAS", place);
}

/// Fences of the block, the device and the system: the host is sequentially consistent within a block.
inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() {
  checker_fence(*current_lane);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() { __threadfence(); }

}  // namespace device
}  // namespace typeformer
