/// Storage for one number per parameter: the weights of a model, its gradients, an optimizer's moments.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/kernel/buffer.hpp"
#include "typeformer/model/parameters.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

namespace detail {

/// Where each tensor of a stack lies: offsets by layer (0: the stack's own) and Tensor; -1: the composition has none.
class TensorIndex {
 public:
  TensorIndex(std::span<const Parameter> table, std::string_view stack) {
    for (const Parameter& p : table) {
      if (p.stack != stack) continue;
      const auto row = static_cast<std::size_t>(p.layer + 1);
      if (rows_.size() <= row) rows_.resize(row + 1, absent());
      rows_[row][static_cast<std::size_t>(p.tensor)] = p.offset;
    }
  }
  std::int64_t operator()(Tensor tensor, int layer) const {
    const auto row = static_cast<std::size_t>(layer + 1);
    return row < rows_.size() ? rows_[row][static_cast<std::size_t>(tensor)] : -1;
  }

 private:
  using Row = std::array<std::int64_t, static_cast<std::size_t>(Tensor::count)>;
  static Row absent() {
    Row row{};
    row.fill(-1);
    return row;
  }
  std::vector<Row> rows_;
};

}  // namespace detail

/// The tensors of one stack: pointers by tensor and layer, null where the composition has none. Matrices are of type W,
/// vectors (norms, biases, score tables) are float; both const when W is.
template <class W>
class StackView {
 public:
  using Vector = std::conditional_t<std::is_const_v<W>, const float, float>;
  StackView(W* matrices, Vector* vectors, const detail::TensorIndex& index)
      : matrices_(matrices), vectors_(vectors), index_(&index) {}
  W* matrix(Tensor tensor, int layer = -1) const { return at(matrices_, tensor, layer); }
  Vector* vector(Tensor tensor, int layer = -1) const { return at(vectors_, tensor, layer); }

 private:
  template <class T>
  T* at(T* base, Tensor tensor, int layer) const {
    const std::int64_t offset = (*index_)(tensor, layer);
    return offset < 0 ? nullptr : base + offset;
  }
  W* matrices_;
  Vector* vectors_;
  const detail::TensorIndex* index_;
};

/// One number per parameter of M in a device's memory, zeros at first. Matrices of type W, vectors float.
template <class M, class Device, Storage W = float>
class ParameterArena {
 public:
  explicit ParameterArena(Device& on)
      : on_(&on), matrices_(on, static_cast<std::size_t>(detail::parameter_totals<M>.matrices)),
        vectors_(on, static_cast<std::size_t>(detail::parameter_totals<M>.vectors)) {}

  /// The table, in the order of memory.
  static constexpr std::span<const Parameter> table() { return parameters<M>; }
  /// The entry called `name`. Throws Error when there is none.
  static const Parameter& find(std::string_view name) {
    for (const Parameter& p : table())
      if (p.name() == name) return p;
    throw Error("parameter", std::string(name), "the name of a parameter of " + std::string(M::name), "no such name");
  }

  /// Stores elements first .. first + values.size() - 1 of a parameter, rounded to its storage type.
  void set(const Parameter& p, std::span<const float> values, std::int64_t first = 0) {
    check(p, values.size(), first, "set");
    const auto at = static_cast<std::size_t>(p.offset + first);
    if (!p.matrix) return vectors_.upload(values, at);
    if constexpr (std::is_same_v<W, float>) {
      matrices_.upload(values, at);
    } else {
      std::vector<W> rounded(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) rounded[i] = from_float<W>(values[i]);
      matrices_.upload(rounded, at);
    }
  }
  /// The numbers of a parameter, row-major.
  std::vector<float> get(const Parameter& p) const {
    check_own(p, "get");
    std::vector<float> values(static_cast<std::size_t>(p.size()));
    const auto at = static_cast<std::size_t>(p.offset);
    if (!p.matrix) {
      vectors_.download(std::span<float>(values), at);
    } else if constexpr (std::is_same_v<W, float>) {
      matrices_.download(std::span<float>(values), at);
    } else {
      std::vector<W> stored(values.size());
      matrices_.download(std::span<W>(stored), at);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(stored[i]);
    }
    return values;
  }
  void zero() {
    matrices_.zero();
    vectors_.zero();
  }

  Device& device() const { return *on_; }
  Buffer<Device, W>& matrices() { return matrices_; }
  Buffer<Device, float>& vectors() { return vectors_; }
  const Buffer<Device, W>& matrices() const { return matrices_; }
  const Buffer<Device, float>& vectors() const { return vectors_; }

  /// The tensors of one stack: "", and of an encoder-decoder "encoder." and "decoder." too. Throws Error for another
  /// name.
  StackView<const W> stack(std::string_view name) const { return {matrices_.data(), vectors_.data(), index(name)}; }
  StackView<W> stack(std::string_view name) { return {matrices_.data(), vectors_.data(), index(name)}; }

 private:
  static const detail::TensorIndex& index(std::string_view stack) {
    static const detail::TensorIndex plain(table(), ""), encoder(table(), "encoder."), decoder(table(), "decoder.");
    if (stack.empty()) return plain;
    if (EncoderDecoderComposition<M> && stack == "encoder.") return encoder;
    if (EncoderDecoderComposition<M> && stack == "decoder.") return decoder;
    throw Error("stack", "name", EncoderDecoderComposition<M> ? "\"\", \"encoder.\" or \"decoder.\"" : "\"\"",
                "\"" + std::string(stack) + "\"");
  }
  static void check_own(const Parameter& p, std::string_view operation) {
    for (const Parameter& own : table())
      if (own.tensor == p.tensor && own.layer == p.layer && own.stack == p.stack && own.size() == p.size() &&
          own.offset == p.offset)
        return;
    throw Error(operation, p.name(), "a parameter of this model", "one of another, which lies elsewhere");
  }
  static void check(const Parameter& p, std::size_t count, std::int64_t first, std::string_view operation) {
    check_own(p, operation);
    if (first < 0 || first > p.size() || static_cast<std::int64_t>(count) > p.size() - first)
      throw Error(operation, p.name(), "at most " + std::to_string(p.size()) + " elements",
                  std::to_string(count) + " from " + std::to_string(first) + " on");
  }
  Device* on_;
  Buffer<Device, W> matrices_;
  Buffer<Device, float> vectors_;
};

}  // namespace typeformer
