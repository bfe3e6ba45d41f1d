/// Lists that operations make on the host and kernels read.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "typeformer/kernel/cuda/workspace.cuh"

namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {

/// A list and its copy in the GPU's memory.
struct UploadedList {
  explicit UploadedList(Memory& source) : memory(source) {}
  std::vector<std::byte> contents;
  Workspace memory;
  const std::byte* on_gpu = nullptr;
};

/// The list with these contents, or null. It becomes the last one.
inline std::shared_ptr<const UploadedList> find_list(std::vector<std::shared_ptr<const UploadedList>>& lists,
                                                     std::span<const std::byte> contents) {
  const auto found = std::find_if(lists.begin(), lists.end(),
                                  [&](const auto& list) { return std::ranges::equal(list->contents, contents); });
  if (found == lists.end()) return nullptr;
  std::rotate(found, found + 1, lists.end());
  return lists.back();
}

/// The lists that were wanted last, found by their contents: equal ones are uploaded once. One that a recording reads
/// lives as long as the recording.
class UploadedLists {
 public:
  static constexpr std::size_t limit = 32;

  std::shared_ptr<const UploadedList> find(std::span<const std::byte> contents) { return find_list(lists_, contents); }
  /// Room for a new list, not kept yet. Throws Error when the GPU's memory is short.
  static std::shared_ptr<UploadedList> make(Memory& source, std::span<const std::byte> contents,
                                            std::string_view operation) {
    auto list = std::make_shared<UploadedList>(source);
    list->on_gpu = static_cast<const std::byte*>(list->memory.reserve(contents.size(), operation));
    list->contents.assign(contents.begin(), contents.end());
    return list;
  }
  void keep(std::shared_ptr<const UploadedList> list) {
    if (lists_.size() == limit) lists_.erase(lists_.begin());
    lists_.push_back(std::move(list));
  }

 private:
  std::vector<std::shared_ptr<const UploadedList>> lists_;
};

}  // namespace typeformer::inline TYPEFORMER_ABI::cuda::detail
