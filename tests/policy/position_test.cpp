// Positions: frequencies, slopes, buckets and sinusoids against transformers' in f64 (tests/golden/formulas.py).
#include "typeformer/policy/position.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "policy/golden_json.hpp"

namespace tf = typeformer;
using Json = nlohmann::json;

namespace {

float number(const Json& json, const char* key, double otherwise) {
  return static_cast<float>(json.value(key, otherwise));
}

tf::RoPE rope_of(const Json& row) {
  using Kind = tf::RopeScaling::Kind;
  const Json& scaling = row.at("scaling");
  const std::string type = scaling.at("rope_type");
  REQUIRE((type == "default" || type == "linear" || type == "llama3" || type == "yarn"));
  tf::RopeScaling::Kind kind = Kind::none;
  if (type == "linear") kind = Kind::linear;
  if (type == "llama3") kind = Kind::llama3;
  if (type == "yarn") kind = Kind::yarn;
  return {.theta = number(scaling, "rope_theta", 0),
          .fraction = number(row, "fraction", 0),
          .scaling = {.kind = kind,
                      .factor = number(scaling, "factor", 1),
                      .low = number(scaling, "low_freq_factor", 1),
                      .high = number(scaling, "high_freq_factor", 4),
                      .original_context = scaling.value("original_max_position_embeddings", 8192),
                      .beta_fast = number(scaling, "beta_fast", 32),
                      .beta_slow = number(scaling, "beta_slow", 1)}};
}

}  // namespace

TEST_CASE("RoPE: frequencies and amplitude, plain and scaled") {
  int compared = 0;
  for (const Json& row : golden_formulas("rope_frequencies")) {
    if (row.at("scaling").at("rope_type") == "dynamic")
      continue;  // depends on the length; RopeScaling has no such kind
    CAPTURE(row.at("name").get<std::string>());
    const tf::RoPE rope = rope_of(row);
    const auto frequencies = row.at("frequencies").get<std::vector<double>>();
    const int width = rope.rotary_width(row.at("head_dim"));
    REQUIRE(width == 2 * static_cast<int>(frequencies.size()));
    for (int pair = 0; pair < width / 2; ++pair) {
      CAPTURE(pair);
      const double expected = frequencies[static_cast<std::size_t>(pair)];
      CHECK(std::abs(rope.frequency(pair, width) - expected) <= 1e-13 * expected);
    }
    CHECK(rope.amplitude() == doctest::Approx(row.at("amplitude").get<double>()).epsilon(1e-7));
    CHECK(rope.scaling.fits());
    ++compared;
  }
  CHECK(compared >= 10);
}

TEST_CASE("RoPE: the rotated width is the fraction of the head") {
  CHECK(tf::RoPE{.fraction = .25f}.rotary_width(96) == 24);   // GPT-NeoX-20B
  CHECK(tf::RoPE{.fraction = .25f}.rotary_width(256) == 64);  // GPT-J
  CHECK(tf::RoPE{.fraction = .4f}.rotary_width(80) == 32);    // Phi-2
  CHECK(tf::RoPE{}.rotary_width(128) == 128);
}

TEST_CASE("ALiBi: slopes for any number of heads, and the bias by distance") {
  int largest = 0;
  for (const Json& row : golden_formulas("alibi")) {
    const int heads = row.at("heads");
    const auto slopes = row.at("slopes").get<std::vector<double>>();
    REQUIRE(static_cast<int>(slopes.size()) == heads);
    for (int head = 0; head < heads; ++head) {
      CAPTURE(heads);
      CAPTURE(head);
      const auto bias = tf::ALiBi{}.head_bias(head, heads);
      const double slope = slopes[static_cast<std::size_t>(head)];
      CHECK(std::abs(double{bias(5, 4)} + slope) <= 4 * 6e-8 * slope);  // one key back: -slope
      CHECK(bias(7, 7) == 0.f);
      CHECK(bias(100, 36) == doctest::Approx(-64 * slope).epsilon(1e-6));
      CHECK(bias(1, 3) == -bias(3, 1));
    }
    largest = std::max(largest, heads);
  }
  CHECK(largest == 112);
}

TEST_CASE("T5: the bucket of every distance, both directions") {
  int tables = 0;
  for (const Json& row : golden_formulas("t5_buckets")) {
    const tf::T5Buckets buckets{
        .buckets = row.at("buckets"), .max_distance = row.at("max_distance"), .bidirectional = row.at("bidirectional")};
    const auto rows = row.at("rows").get<std::vector<int>>();
    const int first = row.at("first"), last = first + static_cast<int>(rows.size()) - 1;
    REQUIRE(first < -buckets.reach());
    REQUIRE(last > buckets.reach());
    for (int relative = first; relative <= last; ++relative) {
      CAPTURE(buckets.buckets);
      CAPTURE(buckets.bidirectional);
      CAPTURE(relative);
      CHECK(buckets.row(relative) == rows[static_cast<std::size_t>(relative - first)]);
      // What a kernel's table of rows may do: distances beyond reach() share its row.
      const int clamped = std::min(std::max(relative, -buckets.reach()), buckets.reach());
      CHECK(buckets.row(clamped) == buckets.row(relative));
    }
    CHECK(buckets.table_rows(77) == buckets.buckets);
    ++tables;
  }
  CHECK(tables == 4);
}

TEST_CASE("sinusoids in three layouts") {
  using Layout = tf::SinusoidLayout;
  int seen[3] = {};
  for (const Json& row : golden_formulas("sinusoids")) {
    const std::string name = row.at("layout");
    const Layout layout = name == "paper" ? Layout::paper : name == "halves" ? Layout::halves : Layout::spread;
    const tf::Sinusoidal policy{.base = row.at("base"), .layout = layout};
    const auto positions = row.at("positions").get<std::vector<int>>();
    const int width = row.at("d_model");
    for (std::size_t p = 0; p < positions.size(); ++p) {
      for (int channel = 0; channel < width; ++channel) {
        CAPTURE(name);
        CAPTURE(positions[p]);
        CAPTURE(channel);
        const double expected = row.at("table").at(p).at(static_cast<std::size_t>(channel));
        CHECK(std::abs(double{policy.embedding(positions[p], channel, width)} - expected) <= 6e-8);
      }
    }
    ++seen[static_cast<int>(layout)];
  }
  for (const int count : seen) CHECK(count == 2);
  CHECK(tf::Sinusoidal{.layout = Layout::spread}.embedding(3, 0, 2) == doctest::Approx(std::sin(3.)));  // one timescale
}

TEST_CASE("learned positions: one row each, after the offset") {
  CHECK(tf::LearnedPositions{}.table_rows(1024) == 1024);
  CHECK(tf::LearnedPositions{.offset = 2}.table_rows(2048) == 2050);  // OPT
}

TEST_CASE("where a policy acts decides which concept it meets") {
  static_assert(tf::PositionPolicy<tf::NoPosition>);
  static_assert(tf::RotaryPosition<tf::RoPE> && !tf::FormulaBias<tf::RoPE>);
  static_assert(tf::FormulaPosition<tf::Sinusoidal> && !tf::TablePosition<tf::Sinusoidal>);
  static_assert(tf::TablePosition<tf::LearnedPositions> && !tf::FormulaPosition<tf::LearnedPositions>);
  static_assert(tf::FormulaBias<tf::ALiBi> && !tf::TableBias<tf::ALiBi>);
  static_assert(tf::TableBias<tf::T5Buckets> && !tf::FormulaBias<tf::T5Buckets>);
}

TEST_CASE("a scaling's numbers must give frequencies") {
  using Kind = tf::RopeScaling::Kind;
  static_assert(tf::RopeScaling{}.fits());
  static_assert(!tf::RopeScaling{.kind = Kind::linear, .factor = 0.f}.fits());
  static_assert(
      tf::RopeScaling{.kind = Kind::linear, .factor = 8.f, .low = 9.f}.fits());  // linear reads the factor only
  static_assert(!tf::RopeScaling{.kind = Kind::llama3, .factor = 8.f, .low = 4.f, .high = 4.f}.fits());
  static_assert(!tf::RopeScaling{.kind = Kind::llama3, .factor = 8.f, .original_context = 0}.fits());
  static_assert(!tf::RopeScaling{.kind = Kind::yarn, .factor = 4.f, .beta_fast = 1.f, .beta_slow = 1.f}.fits());
  static_assert(tf::RopeScaling{.kind = Kind::yarn, .factor = 4.f}.fits());
}

TEST_CASE("a fraction of the head's channels keeps its width through float") {
  for (int head_dim = 2; head_dim <= 512; ++head_dim)
    for (int width = 2; width <= head_dim; width += 2) {
      const tf::RoPE rope{.fraction = static_cast<float>(width) / static_cast<float>(head_dim)};
      CHECK(rope.rotary_width(head_dim) == width);
    }
  // HuggingFace: int(head_dim * partial_rotary_factor), rounded down.
  CHECK(tf::RoPE{.fraction = .33f}.rotary_width(96) == 31);
  CHECK(tf::RoPE{.fraction = .4f}.rotary_width(80) == 32);
  CHECK(tf::RoPE{.fraction = .7f}.rotary_width(10) == 7);
}
