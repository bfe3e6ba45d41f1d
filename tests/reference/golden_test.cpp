// The judge against HuggingFace: every hidden state, logit, loss and gradient of the tiny models of tests/golden.
//
// HuggingFace ran in f32; the golden files also say how far f32 is from the same network in f64 (noise.*). The judge
// runs in double, so its distance from the f32 values must be that noise to many digits: a check as sharp as a
// comparison in f64.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "reference.hpp"
#include "reference/golden.hpp"

namespace {

using reference::Golden;
using reference::Tensor;
using reference::Trace;

std::string golden_folder() {
  if (const char* folder = std::getenv("TYPEFORMER_GOLDEN")) return folder;
  return (std::filesystem::path(__FILE__).parent_path().parent_path() / "golden").string();
}

/// Largest difference, and norm of the difference over the judge's norm.
struct Distance {
  double largest = 0, relative = 0;
};

Distance distance(const Tensor<double>& hf, const Tensor<double>& judge) {
  REQUIRE(hf.shape == judge.shape);
  Distance result;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < hf.size(); ++i) {
    const double d = hf.data[i] - judge.data[i];
    result.largest = std::fmax(result.largest, std::fabs(d));
    difference += d * d;
    norm += judge.data[i] * judge.data[i];
  }
  result.relative = std::sqrt(difference / norm);
  return result;
}

/// The f32 value lies as far from the judge as it lies from HuggingFace's own f64 value.
void check(const Golden& golden, const std::string& name, const Tensor<double>& judge) {
  CAPTURE(name);
  const Tensor<double>& hf = golden.expected.at(name);
  const Tensor<double>& noise = golden.expected.at("noise." + name);
  const Distance d = distance(hf, judge);
  CHECK(d.relative < 2e-5);
  CHECK(std::fabs(d.relative - noise.data[1]) < 1e-13);
  double size = 0;
  for (double x : judge.data) size = std::fmax(size, std::fabs(x));
  CHECK(std::fabs(d.largest - noise.data[0]) < 1e-13 * size);
}

void check_trace(const Golden& golden, const std::string& stack, std::size_t b, const Trace<double>& trace) {
  const std::string number = "." + std::to_string(b);
  const std::size_t n = trace.hidden.size() - 1;
  for (std::size_t l = 0; l < n; ++l) {
    check(golden, stack + "hidden" + number + "." + std::to_string(l), trace.hidden[l]);
  }
  check(golden, stack + "hidden_before_norm" + number, trace.hidden[n]);
  check(golden, stack + "hidden" + number + "." + std::to_string(n), trace.last);
}

void check_model(const std::string& name) {
  CAPTURE(name);
  const Golden golden = reference::load_golden(golden_folder() + "/" + name);
  REQUIRE(golden.batch.size() == 3);
  const auto judged = gradients(golden.config, golden.parameters, golden.batch);
  const bool encoder = golden.config.encoder.has_value();
  for (std::size_t b = 0; b < golden.batch.size(); ++b) {
    check_trace(golden, encoder ? "decoder." : "", b, judged.activations[b].stack);
    if (encoder) check_trace(golden, "encoder.", b, judged.activations[b].encoder);
    check(golden, "logits." + std::to_string(b), judged.activations[b].logits);
  }
  check(golden, "loss", Tensor<double>({1}, {judged.loss}));
  std::size_t seen = 0;
  for (const auto& [canonical, hf] : golden.hf_names) {
    check(golden, "grad." + hf, judged.parameters.at(canonical));
    ++seen;
  }
  for (const auto& entry : golden.expected) seen -= entry.first.starts_with("grad.") ? 1 : 0;
  CHECK(seen == 0);  // no gradient of the file is left over
}

TEST_CASE("llama: grouped queries, every bias, own head") { check_model("llama"); }
TEST_CASE("llama_tied: llama3 scaling, one key/value head, tied head") { check_model("llama_tied"); }
TEST_CASE("gemma3: double norm, 1 + w, QK-norm, windows, two RoPEs, soft-cap") { check_model("gemma3"); }
TEST_CASE("t5: encoder-decoder, buckets, ReLU, scaled tied head") { check_model("t5"); }
TEST_CASE("t5_gated: gated GELU, own head") { check_model("t5_gated"); }

}  // namespace
