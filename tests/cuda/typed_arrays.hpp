/// Which numbers lie where in the device's memory on the host: what compares results (tests/ptx) reads arrays by type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace support {

struct TypedArray {
  std::size_t bytes = 0;
  bool halves = false;  ///< bf16, not float
};
inline std::map<std::uintptr_t, TypedArray> typed_arrays;  ///< by address

/// Names the memory's type as long as it lives.
class TypedMemory {
 public:
  TypedMemory() = default;
  template <class T>
  TypedMemory(const T* data, std::size_t count) {
    if (count == 0) return;
    address_.reset(new std::uintptr_t(reinterpret_cast<std::uintptr_t>(data)));
    typed_arrays[*address_] = {count * sizeof(T), sizeof(T) == 2};
  }

 private:
  struct Forget {
    void operator()(std::uintptr_t* address) const {
      typed_arrays.erase(*address);
      delete address;
    }
  };
  std::unique_ptr<std::uintptr_t, Forget> address_;
};

}  // namespace support
