/// The rules between the slots of a Transformer: each a type named after what it demands, with the numbers it looks at
/// as template arguments and one sentence for the compiler to print.
#pragma once
#include "typeformer/policy/slots.hpp"

namespace typeformer::inline TYPEFORMER_ABI::detail {

template <int vocab, int d_model, int n_layers, int d_ff, int max_seq>
struct sizes_are_positive {
  static constexpr bool ok = vocab > 0 && d_model > 0 && n_layers > 0 && d_ff > 0 && max_seq > 0;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "every size in Dims must be positive: a network needs a vocabulary, a width, layers, an inner "
                  "width and positions. Set Dims{.vocab, .d_model, .n_layers, .d_ff, .max_seq}.");
  };
};

template <int d_model, int heads, int head_dim>
struct d_model_splits_into_heads {
  static constexpr bool ok = heads > 0 && (head_dim > 0 || (head_dim == 0 && d_model % heads == 0));
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "d_model must be a positive multiple of heads: each head gets d_model / heads channels. "
                  "Change Dims{.d_model} or the attention policy's .heads, or set its .head_dim.");
  };
};

template <int heads, int kv_heads>
struct heads_split_over_kv_heads {
  static constexpr bool ok = heads > 0 && kv_heads > 0 && heads % kv_heads == 0;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "heads must be a positive multiple of kv_heads: each key/value head serves heads / kv_heads "
                  "query heads. Change GQA{.heads, .kv_heads}.");
  };
};

template <int rotary_width, int head_dim, bool rotates>
struct rotary_width_is_even {
  static constexpr bool ok = !rotates || (rotary_width > 0 && rotary_width <= head_dim && rotary_width % 2 == 0);
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "RoPE must rotate an even number of channels, at most head_dim: it turns them in pairs. "
                  "Change .head_dim or RoPE{.fraction}, or use ALiBi{}.");
  };
};

template <bool theta_above_one>
struct rope_turns_slower_with_each_pair {
  static constexpr bool ok = theta_above_one;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "RoPE's theta must be above 1: pair i turns by theta^(-2i/r) per position, slower with each pair. "
                  "Change RoPE{.theta}, usually 1e4f to 1e6f.");
  };
};

template <bool numbers_fit>
struct rope_scaling_stretches_the_context {
  static constexpr bool ok = numbers_fit;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "RopeScaling must have a positive factor, a positive original_context, low below high and beta_slow "
                  "below beta_fast: frequencies are divided by the factor, with a ramp between the two. Change "
                  "RoPE{.scaling}.");
  };
};

template <int d_model, bool base_positive>
struct sinusoids_come_in_pairs {
  static constexpr bool ok = d_model % 2 == 0 && base_positive;
  template <bool passed>
  struct explain {
    static_assert(
        passed,
        "d_model must be even and the base positive for Sinusoidal positions: every frequency, a power of the "
        "base, gives a sine and a cosine. Change Dims{.d_model}, Sinusoidal{.base} or the position policy.");
  };
};

template <int offset>
struct position_table_begins_at_its_first_row {
  static constexpr bool ok = offset >= 0;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "LearnedPositions must have an offset of 0 or more: position p reads row p + offset of the table. "
                  "Change LearnedPositions{.offset}.");
  };
};

template <int buckets, int max_distance, bool bidirectional>
struct buckets_reach_the_distance {
  static constexpr int exact = (bidirectional ? buckets / 2 : buckets) / 2;
  static constexpr bool ok = exact >= 1 && buckets % (bidirectional ? 2 : 1) == 0 &&
                             max_distance > exact&& max_distance <= (1 << 20);
  template <bool passed>
  struct explain {
    static_assert(
        passed,
        "T5Buckets must have two buckets or more per direction, as many for each, and a max_distance beyond the "
        "exact ones, up to 2^20: half of a direction's buckets hold one distance each. Change T5Buckets{.buckets, "
        ".max_distance}.");
  };
};

template <int keys>
struct mask_lets_a_query_see_itself {
  static constexpr bool ok = keys >= 0;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a window or chunk must hold at least one key: a query that sees nothing has no softmax. "
                  "Change SlidingWindow{.window}, Chunked{.chunk}, or your mask's reach().");
  };
};

template <int period, int locals>
struct pattern_fits_its_period {
  static constexpr bool ok = period >= 1 && locals >= 0 && locals <= period;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "LocalLayers must have 0 <= locals <= period with a positive period: the first 'locals' of every "
                  "'period' layers are local. Change LocalLayers<...>{.period, .locals}.");
  };
};

template <int kinds, bool every_layer_is_one>
struct pattern_gives_each_layer_a_kind {
  static constexpr bool ok = kinds >= 1 && every_layer_is_one;
  template <bool passed>
  struct explain {
    static_assert(
        passed,
        "a layer pattern's kind(layer) must be constexpr and one of 0 .. kinds - 1 for every layer, and changes<kind> "
        "a "
        "Changes<...>: a layer has to know its composition. Change the pattern's kinds, kind(layer) or changes.");
  };
};

template <bool stack_stays>
struct kinds_of_layers_share_a_stack {
  static constexpr bool ok = stack_stays;
  template <bool passed>
  struct explain {
    static_assert(
        passed,
        "a layer pattern must change only what a layer owns: embedding, position table, head, d_model, "
        "vocabulary, layer count and cross-attention belong to the stack. Remove what changes them from the pattern.");
  };
};

template <bool has_head, bool shapes_logits>
struct logits_need_a_head {
  static constexpr bool ok = has_head || !shapes_logits;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "NoHead{} must stand without TiedEmbeddings, LogitScale, FinalSoftcap and a head bias: a stack that "
                  "ends with hidden states has no logits. Remove NoHead{} or the option that shapes logits.");
  };
};

template <bool eps_not_negative>
struct eps_keeps_the_root_real {
  static constexpr bool ok = eps_not_negative;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a norm's eps must not be negative: it is added to a mean square under a root. Change .eps, usually "
                  "1e-5f or 1e-6f.");
  };
};

template <bool finite_and_not_negative>
struct softcaps_are_finite {
  static constexpr bool ok = finite_and_not_negative;
  template <bool passed>
  struct explain {
    static_assert(
        passed,
        "a soft-cap must be a finite number of 0 or more: scores stay within +-cap, and 0 means no cap. Change "
        "GQA{.softcap} or FinalSoftcap{.final_cap}.");
  };
};

template <bool norm_sum, bool other_norms, bool parallel>
struct norm_on_the_sum_stands_alone {
  static constexpr bool ok = !norm_sum || (!other_norms && !parallel);
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a block layout with norm_sum must have no other norm and no parallel branches: each branch "
                  "returns through one norm at most. Change the layout's norm_sum, norm_input, norm_output or "
                  "parallel.");
  };
};

template <bool parallel, bool norm_input>
struct parallel_branches_read_a_norm {
  static constexpr bool ok = !parallel || norm_input;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a parallel block layout must have norm_input: attention and feed-forward both read the normalized "
                  "input of the block. Set the layout's norm_input, or parallel to false.");
  };
};

template <bool complete>
struct position_gives_what_its_place_needs {
  static constexpr bool ok = complete;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "a position policy must give what its place needs: on query_key pairs, rotary_width, frequency and "
                  "amplitude; on score head_bias, or reach, row and table_rows; on embedding embedding, or offset and "
                  "table_rows. Add the missing members or change acts_on.");
  };
};

template <bool same_width, bool same_vocabulary>
struct stacks_share_width_and_vocabulary {
  static constexpr bool ok = same_width && same_vocabulary;
  template <bool passed>
  struct explain {
    static_assert(passed,
                  "encoder and decoder must have the same d_model and vocab: the decoder attends to the encoder's "
                  "output and both read one embedding table. Change the Dims of one of them.");
  };
};

}  // namespace typeformer
