/// Arrays on the device from and to vectors of double.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "typed_arrays.hpp"
#include "typeformer/cuda.cuh"
#include "typeformer/kernel/buffer.hpp"

namespace support {

/// An array on the device that begins `shift` elements after an address aligned to 16 bytes. It ends where a unit of
/// the device's memory ends, so that AddressSanitizer sees who reads on; what lies before it is NaN.
template <class T>
class Array {
 public:
  Array(typeformer::cuda::Device& on, const std::vector<double>& numbers, std::size_t shift = 0) {
    constexpr std::size_t unit = 512 / sizeof(T), aligned = 16 / sizeof(T);
    const std::size_t used = numbers.size() + shift, free = (used + unit - 1) / unit * unit - used;
    begin_ = free / aligned * aligned + shift;
    std::vector<T> host(begin_, typeformer::from_float<T>(NAN));
    for (const double number : numbers) host.push_back(typeformer::from_float<T>(static_cast<float>(number)));
    buffer_ = {on, std::span<const T>(host)};
    type_ = {buffer_.data(), buffer_.size()};
  }
  /// Filled with NaN: what is not assigned shows.
  Array(typeformer::cuda::Device& on, std::size_t size, std::size_t shift = 0)
      : Array(on, std::vector<double>(size, NAN), shift) {}

  T* data() { return buffer_.data() ? buffer_.data() + begin_ : nullptr; }
  /// Throws when something was written before the array.
  std::vector<double> download() const {
    std::vector<T> host(buffer_.size());
    buffer_.download(std::span<T>(host));
    std::vector<double> numbers;
    for (std::size_t i = 0; i < host.size(); ++i) {
      const auto number = static_cast<double>(typeformer::to_float(host[i]));
      if (i >= begin_)
        numbers.push_back(number);
      else if (!std::isnan(number))
        throw std::out_of_range("a kernel wrote before an array");
    }
    return numbers;
  }

 private:
  std::size_t begin_ = 0;
  typeformer::Buffer<typeformer::cuda::Device, T> buffer_;
  TypedMemory type_;
};

/// The address `elements` before an array, so that a kernel that begins with that many elements reads the array: for
/// offsets of more than 32 bits where there is no memory for them.
template <class T>
T* before(T* array, std::int64_t elements) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(array) -
                              static_cast<std::uintptr_t>(elements) * sizeof(T));
}

/// What a wrong call says; "none" when it says nothing.
template <class Call>
std::string complaint_of(Call call) {
  try {
    call();
  } catch (const typeformer::Error& error) {
    return error.what();
  }
  return "none";
}
/// The same without any one of these arrays: the call says the same without each.
template <class Call, class... Pointers>
std::string complaint_without(Call call, Pointers&... arrays) {
  static double somewhere;
  std::string said;
  const auto fill = [](auto& array) { array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(&somewhere); };
  const auto leave_out = [&](auto& array) {
    (fill(arrays), ...);
    array = nullptr;
    const std::string text = complaint_of(call);
    said = said.empty() || said == text ? text : said + ", then " + text;
  };
  (leave_out(arrays), ...);
  return said;
}

}  // namespace support
