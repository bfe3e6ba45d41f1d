/// The interface between a tokenizer and the algorithm that turns one word into tokens.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI::text {

/// Turns one piece of pre-tokenised text into tokens. Immutable: one object serves many threads.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Appends the tokens of one piece (UTF-8, not empty). Equal pieces give equal tokens.
  virtual void encode(std::string_view piece, std::vector<std::int32_t>& ids) const = 0;

 protected:
  Model() = default;
};

}  // namespace typeformer
