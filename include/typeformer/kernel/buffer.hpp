/// Memory of a device, owned.
#pragma once
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// `size` elements of T in the memory of a Device, freed with the object. The device must outlive it. Contents start as
/// zeros. A device gives allocate(bytes), release(pointer), upload(to, from, bytes), download(to, from, bytes),
/// zero(pointer, bytes), which keep the order of the operations around them; the host's side of a copy is free again,
/// or filled, when the call returns.
template <class Device, class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>,
                "a Buffer's elements must be trivially copyable: devices copy bytes. "
                "Store plain numbers or structs of them.");

 public:
  Buffer() = default;
  /// Throws Error when the device has no memory left, or no machine could have as much.
  Buffer(Device& on, std::size_t size) : Buffer() {  // whole already: when zero throws, the memory is released
    on_ = &on;
    size_ = size;
    if (size_ == 0) return;
    if (size_ > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw Error("Buffer", "size", "bytes that can be counted", std::to_string(size_) + " elements");
    data_ = static_cast<T*>(on.allocate(size_ * sizeof(T)));
    on.zero(data_, size_ * sizeof(T));
  }
  /// A copy of host memory.
  Buffer(Device& on, std::span<const T> from) : Buffer(on, from.size()) { upload(from); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_) on_->release(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// Copies from host memory to the from.size() elements from `first` on; `from` may be reused at once.
  void upload(std::span<const T> from, std::size_t first = 0) {
    if (!from.empty()) on_->upload(data_ + first, from.data(), from.size_bytes());
  }
  /// Copies to.size() elements from `first` on to host memory; waits for the device.
  void download(std::span<T> to, std::size_t first = 0) const {
    if (!to.empty()) on_->download(to.data(), data_ + first, to.size_bytes());
  }
  void zero() {
    if (data_) on_->zero(data_, size_ * sizeof(T));
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(on_, other.on_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  Device* on_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace typeformer
