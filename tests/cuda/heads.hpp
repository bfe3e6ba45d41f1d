/// prepare_heads and prepare_heads_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "reference/tensor.hpp"

namespace heads {

/// Over which channels the norm's statistics go, and which gain a head has.
enum class Width { head, head_own_weights, all_heads };

struct Case {
  std::size_t tokens = 1, heads = 1, kv_heads = 1, head_dim = 2;
  std::size_t rotary_width = 0;
  bool adjacent = false;
  double amplitude = 1;
  Width width = Width::head;
  bool after = false;            ///< the norm comes after RoPE
  std::size_t shift = 0;         ///< elements from an aligned address
  std::size_t gap = 0;           ///< elements between rows of qkv
  bool to_rows = false;          ///< a kv_row for each token; else row t for token t
  bool gradients_wanted = true;  ///< of gains and biases
  bool far_angles = false;       ///< up to 2^126
  int grid_limit = 0;            ///< blocks of a launch; 0: the device's

  std::size_t q_width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
  std::size_t qkv_width() const { return q_width() + 2 * kv_width(); }
  std::size_t stride() const { return qkv_width() + gap; }
  std::size_t q_gain() const { return width == Width::head ? head_dim : q_width(); }
  std::size_t k_gain() const { return width == Width::head ? head_dim : kv_width(); }
  std::size_t cache_rows() const { return to_rows ? 2 * tokens + 1 : tokens; }
};
struct Inputs {
  reference::Tensor<double> qkv, q_gain, k_gain, q_bias, k_bias, d;  // qkv, d: [tokens, qkv_width]
  reference::Tensor<double> q_before, k_before;                      // of the gradients of gains and biases
  std::vector<float> frequencies;
  std::vector<std::int32_t> position;
  std::vector<std::int64_t> kv_row;
};
struct Results {
  std::vector<double> q, k, v;  // k, v: the whole cache
  std::vector<double> dqkv;     // with the gaps
  std::vector<double> dq_gain, dk_gain, dq_bias, dk_bias;
  bool operator==(const Results&) const = default;
};

/// none, rms, rms_one_plus, rms_plain, layer, layer_plain, tanh (the test's own policy). Adjacent pairs: none, rms,
/// layer and tanh.
Results run(const std::string& kind, support::Number number, const Case& c, const Inputs& in);

/// sin and cos of float(position) * frequency, as q with one pair a head: [tokens, 2] (cos, sin).
std::vector<double> turned_units(const std::vector<std::int32_t>& position, float frequency);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);
void run_nothing();

}  // namespace heads
