/// The kernel form of what happens to a score between the dot product and the softmax: scale, soft-cap, position bias.
#pragma once
#include <cstdint>

#include "typeformer/core/annotate.hpp"
#include "typeformer/core/math.hpp"
#include "typeformer/policy/position.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// No bias on the score.
struct NoBias {
  struct OfHead {
    TYPEFORMER_HD float operator()(int, int) const { return 0.f; }
  };
  static constexpr bool any = false, trained = false;
  TYPEFORMER_HD OfHead of_head(int, int) const { return {}; }
};

/// A bias by formula (ALiBi).
template <class Policy>
struct FormulaBiasForm {
  static constexpr bool any = true, trained = false;
  Policy policy;
  TYPEFORMER_HD auto of_head(int head, int heads) const { return policy.head_bias(head, heads); }
};

/// A trained bias, table[row(key - query)][head] (T5).
struct TableBiasForm {
  const float* table = nullptr;        ///< [rows, heads]
  const std::int32_t* rows = nullptr;  ///< [2 reach + 1]: the table's row for key - query = -reach .. reach
  int reach = 0;                       ///< distances beyond share the row of reach
  static constexpr bool any = true, trained = true;

  struct OfHead {
    const float* column;
    const std::int32_t* rows;
    int reach, heads;
    /// The table's row for a query and a key.
    TYPEFORMER_HD int row(int query, int key) const {
      const int relative = key - query;
      return rows[(relative < -reach ? -reach : relative > reach ? reach : relative) + reach];
    }
    TYPEFORMER_HD float operator()(int query, int key) const { return column[row(query, key) * heads]; }
  };
  TYPEFORMER_HD OfHead of_head(int head, int heads) const { return {table + head, rows, reach, heads}; }
};

/// score(dot) = softcap(scale * dot) + bias. The type says what there is, the fields carry the numbers.
template <bool with_softcap, class BiasForm>
struct ScoreForm {
  static constexpr bool has_softcap = with_softcap;
  using Bias = BiasForm;
  float scale = 1.f;
  float cap = 0.f;
  Bias bias{};

  /// The score before the bias.
  TYPEFORMER_HD float capped(float dot) const {
    if constexpr (has_softcap)
      return cap * math::tanh(dot * scale / cap);
    else
      return dot * scale;
  }
  /// d capped / d dot, from the capped score.
  TYPEFORMER_HD float slope(float capped_score) const {
    if constexpr (has_softcap)
      return scale * (1.f - (capped_score / cap) * (capped_score / cap));
    else
      return scale;
  }
};

}  // namespace typeformer
