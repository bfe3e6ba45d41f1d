/// What goes into a model: sequences of token ids of unequal length, one after the other, without padding.
#pragma once
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "typeformer/core/error.hpp"
#include "typeformer/policy/mask.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// A ragged batch: sequence s has lengths[s] of the ids, in order. Does not own them.
struct Batch {
  std::span<const std::int32_t> ids;
  std::span<const int> lengths;
  std::span<const MaskData> mask_data{};  ///< what masks read, one per sequence (prefixes); empty: nothing
};

namespace detail {

/// Throws Error when the lengths do not add up to the ids or an id is not in the vocabulary.
inline void check_batch(std::string_view operation, const Batch& batch, int vocab) {
  if (!batch.mask_data.empty() && batch.mask_data.size() != batch.lengths.size())
    throw Error(operation, "mask_data", "nothing, or one entry per sequence", std::to_string(batch.mask_data.size()));
  std::int64_t total = 0;
  for (const int length : batch.lengths) {
    if (length < 0) throw Error(operation, "lengths", "lengths of 0 or more", std::to_string(length));
    total += length;
  }
  if (total != static_cast<std::int64_t>(batch.ids.size()))
    throw Error(operation, "ids", std::to_string(total) + " ids, the sum of the lengths",
                std::to_string(batch.ids.size()));
  for (const std::int32_t id : batch.ids)
    if (id < 0 || id >= vocab)
      throw Error(operation, "ids", "ids from 0 to " + std::to_string(vocab - 1), std::to_string(id));
}

}  // namespace detail
}  // namespace typeformer
