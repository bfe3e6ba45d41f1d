/// Random parameters and inputs for the judge's and the library's tests: the same numbers on every machine.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config.hpp"
#include "tensor.hpp"

namespace reference {

/// splitmix64 (Steele, Lea & Flood 2014); std distributions differ between standard libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }
  /// Standard normal (Box & Muller 1958).
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586477 * uniform()); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }

 private:
  std::uint64_t state_;
};

inline Tensor<double> random_tensor(Random& random, std::vector<std::size_t> shape, double deviation = 1,
                                    double mean = 0) {
  Tensor<double> tensor(std::move(shape));
  for (double& number : tensor.data) number = mean + deviation * random.normal();
  return tensor;
}

/// Parameters at which every feature shows: norm factors vary around 1 (a stored 1 + w around 0), biases are not
/// zero, matrices keep the size of their input, embeddings have the deviation 1.
inline Parameters<double> random_parameters(const Config& config, std::uint64_t seed) {
  Random random(seed);
  Parameters<double> parameters;
  for (const auto& [name, shape] : parameter_shapes(config)) {
    const bool table = name.find("embeddings") != std::string::npos || name.find("relative_bias") != std::string::npos;
    if (shape.size() == 2) {
      parameters[name] = random_tensor(random, shape, table ? 1 : 1 / std::sqrt(static_cast<double>(shape[1])));
    } else if (name.ends_with(".bias")) {
      parameters[name] = random_tensor(random, shape, 0.3);
    } else {
      const bool one_plus = config.stack.norm.weight == NormWeight::one_plus;
      parameters[name] = random_tensor(random, shape, 0.3, one_plus ? 0 : 1);
    }
  }
  return parameters;
}

/// Sequences of the given lengths; about a fifth of the labels is ignored, the first of each sequence never.
inline Batch random_batch(const Config& config, const std::vector<std::size_t>& lengths, std::uint64_t seed) {
  Random random(seed);
  const auto draw = [&](std::size_t n, std::size_t count) {
    std::vector<int> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<int>(random.below(n)));
    return ids;
  };
  Batch batch;
  for (std::size_t length : lengths) {
    Sequence sequence;
    sequence.ids = draw(config.vocab, length);
    sequence.labels = draw(config.vocab, length);
    for (std::size_t t = 1; t < length; ++t) {
      if (random.uniform() < 0.2) sequence.labels[t] = ignored_label;
    }
    if (config.encoder) sequence.encoder_ids = draw(config.vocab, length + 2);
    if (config.token_types > 0) sequence.types = draw(config.token_types, length);
    sequence.prefix = length / 3;
    batch.push_back(sequence);
  }
  return batch;
}

}  // namespace reference
