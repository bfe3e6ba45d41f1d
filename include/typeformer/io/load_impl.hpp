/// Bodies of load.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/error.hpp"
#include "typeformer/io/load.hpp"
#include "typeformer/io/names.hpp"
#include "typeformer/io/quote_name.hpp"
#include "typeformer/io/read_architecture_impl.hpp"
#include "typeformer/io/tensor_source.hpp"

namespace typeformer::inline TYPEFORMER_ABI::io {

namespace detail {

/// Throws Error when a stack of the type is longer than the file's: positions that the network was not made for.
/// Buckets of distances cover every length.
inline void compare_lengths(const std::string& name, const Architecture& type, const StackInfo& ours,
                            const StackInfo& theirs, const std::set<std::string>& may_differ) {
  if (ours.dims.max_seq > theirs.dims.max_seq && theirs.position.kind != "T5Buckets" && !may_differ.count(name))
    throw Error("load", name, std::to_string(ours.dims.max_seq) + ", as the type " + type.name + " has, or more",
                std::to_string(theirs.dims.max_seq) + " in the file");
}

/// Throws Error for the first field in which type and file disagree.
inline void compare(const Architecture& type, const FileArchitecture& file, const std::set<std::string>& may_differ) {
  const auto wanted = fields_of(type), found = fields_of(file.architecture);
  const auto value_of = [](const std::vector<ArchitectureField>& fields, const std::string& name) -> std::string {
    for (const auto& field : fields)
      if (field.name == name) return field.value;
    return "none";
  };
  const auto check = [&](const std::string& name) {
    const std::string ours = value_of(wanted, name), theirs = value_of(found, name);
    if (ours != theirs && !may_differ.count(name))
      throw Error("load", name, ours + ", as the type " + type.name + " has", theirs + " in the file");
  };
  std::set<std::string> names{"max_seq"};
  for (const auto* fields : {&wanted, &found})
    for (const auto& field : *fields) {
      names.insert(field.name);
      check(field.name);
    }
  for (const std::string& name : may_differ)
    if (!names.count(name)) {
      std::string known;
      for (const std::string& field : names) known += (known.empty() ? "" : ", ") + field;
      throw Error("load", "may_differ", "names of architecture fields: " + known, quote_name(name));
    }
  compare_lengths("max_seq", type, type.stack, file.architecture.stack, may_differ);
}

/// A parameter and the tensor it comes from.
struct Assignment {
  const Parameter* parameter;
  const SourceTensor* tensor;
  Transform transform;
};

inline std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

inline void check_shape(const Parameter& p, const SourceTensor& tensor) {
  const auto shape = tensor.shape();
  const auto rows = static_cast<std::uint64_t>(p.rows), columns = static_cast<std::uint64_t>(p.columns);
  const bool same = p.columns == 1 && shape.size() == 1 ? shape[0] == rows
                                                        : shape.size() == 2 && shape[0] == rows && shape[1] == columns;
  if (!same)
    throw Error("load", quote_name(tensor.name()), shape_text(std::vector{rows, columns}) + " for " + p.name(),
                shape_text(shape));
  if (!tensor.is_readable())
    throw Error("load", quote_name(tensor.name()), "a type that can be read", std::string(tensor.type_name()));
}

/// One tensor per parameter, and none left over.
inline std::vector<Assignment> assign(const TensorSource& source, const FileArchitecture& file,
                                      const Architecture& type, std::span<const Parameter> parameters,
                                      LoadReport& report) {
  std::vector<Assignment> assigned;
  std::set<std::string_view> used;
  const bool gated = file.architecture.stack.activation != "ReLU";
  for (const Parameter& p : parameters) {
    const TensorName name = file_name(p, file.family, source.gguf() != nullptr, gated);
    const SourceTensor* tensor = source.find(name.name);
    if (!tensor && p.tensor == Tensor::token_embeddings && file.architecture.stack.tied)
      for (const std::string_view other : names_of_tied_table(file.family, source.gguf() != nullptr))
        if (!tensor) tensor = source.find(other);
    if (!tensor) throw Error("load", quote_name(name.name), "the tensor of " + p.name(), "no such tensor in the file");
    check_shape(p, *tensor);
    assigned.push_back({&p, tensor, name.transform});
    used.insert(tensor->name());
    report.tensors_used.emplace_back(tensor->name());
  }
  std::set<std::string> types;
  for (const SourceTensor& tensor : source.tensors()) {
    types.insert(std::string(tensor.type_name()));
    if (used.count(tensor.name())) continue;
    const bool copy_of_tied = file.architecture.stack.tied && tensor.name() == "lm_head.weight";
    if (!copy_of_tied && !is_harmless_tensor(tensor.name(), file.family))
      throw Error("load", quote_name(tensor.name()), "a tensor that the type " + type.name + " has", "one too many");
    report.tensors_ignored.emplace_back(tensor.name());
  }
  report.tensor_types.assign(types.begin(), types.end());
  return assigned;
}

/// Undoes GGUF's permutation of q and k: [heads, head_dim / 2, 2] rows to [heads, 2, head_dim / 2].
inline std::vector<float> pair_rows_to_halves(const std::vector<float>& from, std::int64_t rows, std::int64_t columns,
                                              int head_dim) {
  std::vector<float> to(from.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row / head_dim, channel = row % head_dim;
    const std::int64_t half = head * head_dim + (channel % 2) * (head_dim / 2) + channel / 2;
    std::copy_n(from.begin() + row * columns, columns, to.begin() + half * columns);
  }
  return to;
}

/// Reads one tensor, a slice of rows at a time where nothing has to be re-ordered.
inline void read_tensor(const Assignment& from, int head_dim, const FittingCheckpoint::Store& store) {
  const Parameter& p = *from.parameter;
  const bool whole = from.transform == Transform::pair_rows_to_halves;
  const std::int64_t slice = whole ? p.size() : std::max(p.columns, (std::int64_t{1} << 20) / p.columns * p.columns);
  std::vector<float> values;
  for (std::int64_t first = 0; first < p.size(); first += slice) {
    values.resize(static_cast<std::size_t>(std::min(slice, p.size() - first)));
    from.tensor->read_floats(static_cast<std::uint64_t>(first), values.size(), values.data());
    if (from.transform == Transform::subtract_one)
      for (float& value : values) value -= 1.f;
    if (whole) values = pair_rows_to_halves(values, p.rows, p.columns, head_dim);
    store(p, values, first);
  }
  from.tensor->release();
}

}  // namespace detail

struct FittingCheckpoint::Contents {
  TensorSource source;
  std::vector<detail::Assignment> assigned;
  int head_dim = 0;
  LoadReport report;
};

TYPEFORMER_INLINE FittingCheckpoint::FittingCheckpoint(const std::filesystem::path& path, const Architecture& type,
                                                       std::span<const Parameter> parameters,
                                                       const std::set<std::string>& may_differ) {
  auto contents = std::make_shared<Contents>(Contents{TensorSource(path), {}, 0, {}});
  const FileArchitecture file = read_architecture(path, contents->source);
  detail::compare(type, file, may_differ);
  contents->report = {path.string(), file.family, file.fields_read, file.fields_ignored, {}, {}, {}, 0, 0};
  contents->assigned = detail::assign(contents->source, file, type, parameters, contents->report);
  contents->head_dim = file.architecture.stack.head_dim;
  contents_ = std::move(contents);
}

TYPEFORMER_INLINE void FittingCheckpoint::read(const Store& store) const {
  for (const detail::Assignment& from : contents_->assigned) detail::read_tensor(from, contents_->head_dim, store);
}

TYPEFORMER_INLINE const LoadReport& FittingCheckpoint::report() const noexcept { return contents_->report; }

}  // namespace typeformer
