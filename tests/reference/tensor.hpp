/// The judge's arrays: a shape and its numbers, row-major.
#pragma once
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reference {

/// A row-major array. Most are matrices: `rows` is the first extent, `columns` the product of the others.
template <class T>
struct Tensor {
  std::vector<std::size_t> shape;
  std::vector<T> data;

  Tensor() = default;
  explicit Tensor(std::vector<std::size_t> extents) : shape(std::move(extents)), data(count(shape)) {}
  Tensor(std::vector<std::size_t> extents, std::vector<T> numbers)
      : shape(std::move(extents)), data(std::move(numbers)) {
    if (data.size() != count(shape)) throw std::invalid_argument("reference: shape and numbers differ in size");
  }

  std::size_t size() const { return data.size(); }
  std::size_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::size_t columns() const { return data.size() / (rows() == 0 ? 1 : rows()); }
  T* row(std::size_t r) { return data.data() + r * columns(); }
  const T* row(std::size_t r) const { return data.data() + r * columns(); }
  T& operator()(std::size_t r, std::size_t c) { return data[r * columns() + c]; }
  const T& operator()(std::size_t r, std::size_t c) const { return data[r * columns() + c]; }

  static std::size_t count(const std::vector<std::size_t>& extents) {
    std::size_t product = 1;
    for (std::size_t extent : extents) product *= extent;
    return product;
  }
};

/// Parameters, or their gradients, by canonical name.
template <class T>
using Parameters = std::map<std::string, Tensor<T>>;

/// Every number converted by `To(number)`: double to float, or float to double.
template <class To, class From>
Tensor<To> convert(const Tensor<From>& from) {
  Tensor<To> to(from.shape);
  for (std::size_t i = 0; i < from.size(); ++i) to.data[i] = static_cast<To>(from.data[i]);
  return to;
}
template <class To, class From>
Parameters<To> convert(const Parameters<From>& from) {
  Parameters<To> to;
  for (const auto& [name, tensor] : from) to[name] = convert<To>(tensor);
  return to;
}

/// into += from, element by element; an empty `into` becomes `from`.
template <class T>
void accumulate(Tensor<T>& into, const Tensor<T>& from) {
  if (into.data.empty()) {
    into = from;
    return;
  }
  if (into.size() != from.size()) throw std::invalid_argument("reference: accumulate of unequal sizes");
  for (std::size_t i = 0; i < from.size(); ++i) into.data[i] = into.data[i] + from.data[i];
}

}  // namespace reference
