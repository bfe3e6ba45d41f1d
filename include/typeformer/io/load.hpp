/// load: a checkpoint becomes a model of a given type, or an Error says which field or tensor does not fit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "typeformer/core/annotate.hpp"
#include "typeformer/model/model.hpp"
#include "typeformer/report/architecture.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// What a load read: nothing of a file is used or passed over silently.
struct LoadReport {
  std::string path, family;
  std::vector<std::string> fields_read, fields_ignored;  ///< of config.json or the metadata
  std::vector<std::string> tensors_used, tensors_ignored;
  std::vector<std::string> tensor_types;  ///< as stored: "Q4_1", "F32", ...
  std::int64_t parameters = 0;
  std::size_t bytes = 0;  ///< of the weights in the model
};

/// What a load may overlook, and where it reports.
struct LoadOptions {
  /// Architecture fields ("norm.eps", "activation", ...) that need not agree: for ablations of a pre-trained model.
  /// "max_seq": the type's may exceed the file's (a smaller one always may).
  std::set<std::string> may_differ{};
  /// Filled when not null.
  LoadReport* report = nullptr;
};

namespace io {

/// A checkpoint that fits a type: its config agrees, and every parameter has its tensor. Opening reads headers only.
class FittingCheckpoint {
 public:
  /// Gets values.size() numbers of a parameter, row-major, of which the first is number `first`.
  using Store = std::function<void(const Parameter&, std::span<const float> values, std::int64_t first)>;

  /// `parameters` must outlive this object. Throws Error naming the field or tensor where type and file disagree.
  FittingCheckpoint(const std::filesystem::path& path, const Architecture& type, std::span<const Parameter> parameters,
                    const std::set<std::string>& may_differ);

  /// Hands every parameter to `store`, a slice at a time, de-quantized, rows in this library's order.
  void read(const Store& store) const;
  /// What is read; the numbers of the model are still to be filled in.
  const LoadReport& report() const noexcept;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace io

/// The checkpoint at `path` as a model of type M on a device, its matrices stored as W (quantized ones are
/// de-quantized): a HuggingFace folder (config.json with model.safetensors or shards) or a .gguf file. Before anything
/// is allocated, the file's config is compared with the type field by field, and every tensor's name, shape and type
/// with the parameter table. Throws Error naming the field or tensor, the type's value and the file's: a field that
/// disagrees or is not understood, a tensor that is missing, left over or of another shape, a file that is truncated or
/// lies.
template <class M, Storage W = float, class Device>
Model<M, Device, W> load(Device& on, const std::filesystem::path& path, const LoadOptions& options = {}) {
  const io::FittingCheckpoint checkpoint(path, architecture_of<M>(), parameters<M>, options.may_differ);
  Model<M, Device, W> model(on);
  checkpoint.read([&model](const Parameter& parameter, std::span<const float> values, std::int64_t first) {
    model.weights().set(parameter, values, first);
  });
  if (options.report) {
    LoadReport report = checkpoint.report();
    report.parameters = M::parameter_count;
    report.bytes = model.weights().matrices().size() * sizeof(W) + model.weights().vectors().size() * sizeof(float);
    *options.report = std::move(report);
  }
  return model;
}

}  // namespace typeformer

#if !defined(TYPEFORMER_SEPARATE_COMPILATION)
#include "typeformer/io/load_impl.hpp"
#endif
