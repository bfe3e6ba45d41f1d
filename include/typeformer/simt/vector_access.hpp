/// Loads and stores of up to 16 bytes, one instruction on the GPU and one access for the checkers.
#pragma once
#include <type_traits>

#include "typeformer/simt/executor.hpp"

namespace typeformer::inline TYPEFORMER_ABI::simt {

// Not inlined and not instrumented: the host optimizer would split the copy into 4-byte pieces.
template <std::size_t Bytes>
TYPEFORMER_SIMT_UNSEEN __attribute__((noinline)) void copy_bytes(void* to, const void* from) {
  std::memcpy(to, from, Bytes);
}

template <class Vector>
void check_vector(const void* address, const char* operation, Place place) {
  static_assert(
      std::is_trivially_copyable_v<Vector> && sizeof(Vector) <= 16 && (sizeof(Vector) & (sizeof(Vector) - 1)) == 0,
      "A vector access moves 1, 2, 4, 8 or 16 bytes.");
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof(Vector)) [[unlikely]]
    fail(*current_lane, operation, place, "an address aligned to the access",
         message("a misaligned %zu-byte access at %p", sizeof(Vector), address));
}

/// *address as a Vector (float4, uint2 ...). Misaligned addresses are a Fault.
template <class Vector>
Vector load_vector(const void* address, Place place = Place::here()) {
  check_vector<Vector>(address, "load_vector", place);
  checker_access(*current_lane, address, sizeof(Vector), Access::load, place);
  Vector result;
  copy_bytes<sizeof(Vector)>(&result, address);
  return result;
}

/// Stores a Vector at the address. Misaligned addresses are a Fault.
template <class Vector>
void store_vector(void* address, Vector value, Place place = Place::here()) {
  check_vector<Vector>(address, "store_vector", place);
  checker_access(*current_lane, address, sizeof(Vector), Access::store, place);
  copy_bytes<sizeof(Vector)>(address, &value);
}

namespace device {

/// Loads and stores with cache hints, which the host does not model.
template <class T>
T __ldg(const T* address, Place place = Place::here()) {
  return load_vector<T>(address, place);
}
template <class T>
T __ldcs(const T* address, Place place = Place::here()) {
  return load_vector<T>(address, place);
}
template <class T>
T __ldcg(const T* address, Place place = Place::here()) {
  return load_vector<T>(address, place);
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  store_vector<T>(address, value, place);
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value, Place place = Place::here()) {
  store_vector<T>(address, value, place);
}

}  // namespace device
}  // namespace typeformer
