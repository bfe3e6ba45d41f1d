/// Slot 4 of a Transformer: how the network learns where a token stands.
///
/// A policy says where it acts: on the embedding (added to it), on query and key (rotated), on the score (biased), or
/// nowhere.
#pragma once
#include <cmath>
#include <concepts>
#include <numbers>
#include <string_view>

#include "typeformer/core/annotate.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

/// Where a position policy acts: nowhere, on the embeddings before the first block, on queries and keys, or on scores.
enum class ActsOn { nothing, embedding, query_key, score };

/// NoPE: causal attention alone tells the order. Kazemnejad et al. 2023, arXiv:2305.19466.
struct NoPosition {
  static constexpr ActsOn acts_on = ActsOn::nothing;
};

/// How sines and cosines lie in a sinusoidal embedding of width d:
/// paper: sin, cos alternate, exponent 2i/d; halves: sines then cosines (Marian); spread: halves with timescales spaced
/// by d/2 - 1 (tensor2tensor).
enum class SinusoidLayout { paper, halves, spread };

/// sin and cos of position / 10000^(2i/d), added to the embedding. Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
struct Sinusoidal {
  float base = 1e4f;
  SinusoidLayout layout = SinusoidLayout::paper;
  static constexpr ActsOn acts_on = ActsOn::embedding;

  /// What is added to channel `channel` of the embedding at `position`.
  float embedding(int position, int channel, int d_model) const {
    const int half = d_model / 2;
    const bool alternate = layout == SinusoidLayout::paper;
    const int pair = alternate ? channel / 2 : channel % half;
    const bool cosine = alternate ? channel % 2 == 1 : channel >= half;
    const double spacing = layout != SinusoidLayout::spread ? half : half > 1 ? half - 1 : 1;
    const double angle = position * std::pow(double{base}, -pair / spacing);
    return static_cast<float>(cosine ? std::cos(angle) : std::sin(angle));
  }
};

/// A trained table, one row per position, added to the embedding. `offset` rows come before position 0 (OPT: 2).
struct LearnedPositions {
  int offset = 0;
  static constexpr ActsOn acts_on = ActsOn::embedding;
  static constexpr std::string_view table_name = "position_embeddings.weight";
  constexpr int table_rows(int max_seq) const { return max_seq + offset; }
};

/// Which channels of a head RoPE rotates together: (0,1)(2,3).. as in the paper, or (0,r/2)(1,r/2+1).. as in GPT-NeoX
/// and HuggingFace's Llama.
enum class Pairs { adjacent, halves };

/// How RoPE's frequencies are changed for contexts longer than the trained one.
struct RopeScaling {
  enum class Kind { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  float factor = 1.f;           ///< how much longer the context becomes
  float low = 1.f, high = 4.f;  ///< llama3: wavelengths above original/low are stretched, below original/high kept
  int original_context = 8192;  ///< llama3, yarn: the trained context
  float beta_fast = 32.f, beta_slow = 1.f;  ///< yarn: rotations over the trained context where the ramp begins and ends

  /// True when the numbers that `kind` reads give frequencies.
  constexpr bool fits() const {
    return kind == Kind::none ||
           (factor > 0.f &&
            (kind == Kind::linear ||
             (original_context > 0 &&
              (kind == Kind::llama3 ? 0.f < low && low < high : 0.f < beta_slow && beta_slow < beta_fast))));
  }
};

/// Rotates pair i of query and key by position * theta^(-2i/r). Su et al. 2021, arXiv:2104.09864, eq. 34.
struct RoPE {
  float theta = 1e4f;
  Pairs pairs = Pairs::halves;
  float fraction = 1.f;  ///< of the head that rotates: its first r = fraction * head_dim channels
  RopeScaling scaling{};
  static constexpr ActsOn acts_on = ActsOn::query_key;

  /// Rounded down, but for the last bits of a float: 26 of 88 channels stay 26. (HuggingFace rounds the product in
  /// double down, and may come out one lower where it is a whole number.) -1 for a fraction that is none.
  constexpr int rotary_width(int head_dim) const {
    return fraction >= 0.f && fraction <= 1.f ? static_cast<int>(double{fraction} * head_dim + 1e-4) : -1;
  }
  /// Radians per position of pair i, of r = width channels.
  double frequency(int pair, int width) const {
    const double plain = std::pow(double{theta}, -2. * pair / width);
    switch (scaling.kind) {
      case RopeScaling::Kind::none:
        return plain;
      case RopeScaling::Kind::linear:
        return plain / scaling.factor;
      case RopeScaling::Kind::llama3:
        return llama3(plain);
      case RopeScaling::Kind::yarn:
        return yarn(plain, pair, width);
    }
    return plain;
  }
  /// Factor of cos and sin (YaRN, Peng et al. 2023, arXiv:2309.00071, eq. 22; 1 otherwise).
  float amplitude() const {
    if (scaling.kind != RopeScaling::Kind::yarn || scaling.factor <= 1.f) return 1.f;
    return static_cast<float>(.1 * std::log(double{scaling.factor}) + 1.);
  }

 private:
  /// Llama 3.1: long wavelengths divided by the factor, short ones kept, a linear blend between.
  double llama3(double plain) const {
    const double wavelength = 2 * std::numbers::pi / plain, context = scaling.original_context;
    if (wavelength < context / scaling.high) return plain;
    if (wavelength > context / scaling.low) return plain / scaling.factor;
    const double keep = (context / wavelength - scaling.low) / (double{scaling.high} - scaling.low);
    return plain * ((1 - keep) / scaling.factor + keep);
  }
  /// arXiv:2309.00071, section 3.2: interpolated below beta_slow rotations, kept above beta_fast, a ramp between;
  /// linear in the pair's index between whole pairs, as in the authors' code (in the paper, eq. 18, in the number of
  /// rotations).
  double yarn(double plain, int pair, int width) const {
    const auto pair_of = [&](double rotations) {
      return width * std::log(scaling.original_context / (rotations * 2 * std::numbers::pi)) /
             (2 * std::log(double{theta}));
    };
    const double low = std::fmax(std::floor(pair_of(scaling.beta_fast)), 0.);
    double high = std::fmin(std::ceil(pair_of(scaling.beta_slow)), width - 1.);
    if (high == low) high += 1e-3;  // as in the authors' code: no division by zero
    const double ramp = std::fmin(std::fmax((pair - low) / (high - low), 0.), 1.);
    return plain / scaling.factor * ramp + plain * (1 - ramp);
  }
};

/// Adds slope(head) * (key - query) to the score, under every mask (as BLOOM's and MPT's code does): made for causal
/// ones, where it is minus the distance; a mask that shows later keys has them favoured. Press et al. 2021,
/// arXiv:2108.12409, section 3.
struct ALiBi {
  static constexpr ActsOn acts_on = ActsOn::score;

  struct HeadBias {
    float slope;
    TYPEFORMER_HD float operator()(int query, int key) const { return slope * static_cast<float>(key - query); }
  };
  /// Slopes 2^(-8i/c), i = 1..c, for the c = largest power of two <= heads first heads; the rest take every other slope
  /// of the series for 2c.
  TYPEFORMER_HD HeadBias head_bias(int head, int heads) const {
    int c = 1;
    while (2 * c <= heads) c *= 2;
    const float exponent = head < c ? -8.f * static_cast<float>(head + 1) / static_cast<float>(c)
                                    : -4.f * static_cast<float>(2 * (head - c) + 1) / static_cast<float>(c);
    return {exp2f(exponent)};
  }
};

/// Adds table[bucket(key - query)][head] to the score; one trained table per stack, shared by its layers. Where keys
/// come after their queries (an encoder), set `bidirectional`: without it they all share the bucket of distance 0.
/// Raffel et al. 2019, arXiv:1910.10683, section 2.1.
struct T5Buckets {
  int buckets = 32;
  int max_distance = 128;
  bool bidirectional = false;  ///< half of the buckets for keys after the query
  static constexpr ActsOn acts_on = ActsOn::score;
  static constexpr std::string_view table_name = "relative_bias.weight";

  constexpr int table_rows(int /*max_seq*/) const { return buckets; }
  /// Distances beyond this share the bucket of this.
  constexpr int reach() const { return max_distance; }
  /// The table's row for key - query = relative: exact for small distances, logarithmic up to max_distance.
  int row(int relative) const {
    const int side = bidirectional ? buckets / 2 : buckets;
    const int first = bidirectional && relative > 0 ? side : 0;
    const int distance = bidirectional ? std::abs(relative) : relative < 0 ? -relative : 0;
    const int exact = side / 2;
    if (distance < exact) return first + distance;
    const float ratio = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                        static_cast<float>(std::log(double(max_distance) / exact));
    const int bucket = exact + static_cast<int>(ratio * static_cast<float>(side - exact));
    return first + (bucket < side - 1 ? bucket : side - 1);
  }
};

/// What a position policy must give: where it acts. The concepts below say what each place needs.
template <class P>
concept PositionPolicy = requires {
  { P::acts_on } -> std::convertible_to<ActsOn>;
};

/// A position policy that acts on `place`.
template <class P, ActsOn place>
concept ActsAt = (P::acts_on == place) && PositionPolicy<P>;

/// Rotates query and key.
template <class P>
concept RotaryPosition = ActsAt<P, ActsOn::query_key> && requires(const P p, int i) {
  { p.pairs } -> std::convertible_to<Pairs>;
  { p.rotary_width(i) } -> std::same_as<int>;
  { p.frequency(i, i) } -> std::convertible_to<double>;
  { p.amplitude() } -> std::convertible_to<float>;
};
/// Adds a formula of (position, channel, d_model) to the embedding.
template <class P>
concept FormulaPosition = ActsAt<P, ActsOn::embedding> && requires(const P p, int i) {
  { p.embedding(i, i, i) } -> std::convertible_to<float>;
};
/// Adds a row of a trained table [table_rows(max_seq), d_model] to the embedding.
template <class P>
concept TablePosition = ActsAt<P, ActsOn::embedding> && requires(const P p, int i) {
  { p.offset } -> std::convertible_to<int>;
  { p.table_rows(i) } -> std::same_as<int>;
  { P::table_name } -> std::convertible_to<std::string_view>;
};
/// Adds a formula to the score: head_bias(head, heads) gives a function of (query, key).
template <class P>
concept FormulaBias = ActsAt<P, ActsOn::score> && requires(const P p, int i) {
  { p.head_bias(i, i)(i, i) } -> std::same_as<float>;
};
/// Adds an entry of a trained table [table_rows(max_seq), heads] to the score, chosen by key - query.
template <class P>
concept TableBias = ActsAt<P, ActsOn::score> && requires(const P p, int i) {
  { p.reach() } -> std::same_as<int>;
  { p.row(i) } -> std::same_as<int>;
  { p.table_rows(i) } -> std::same_as<int>;
  { P::table_name } -> std::convertible_to<std::string_view>;
};

}  // namespace typeformer
