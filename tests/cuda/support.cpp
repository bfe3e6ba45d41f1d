#include "support.hpp"

#include <cstdio>
#include <cstdlib>

#include "reference/safetensors.hpp"
#include "tolerance.hpp"

namespace support {
namespace {

/// Half a unit in the last place, and the units by which approximate instructions are off on purpose.
double f32_roundoff() {
  const char* ulp = std::getenv("TYPEFORMER_PTX_ULP");
  return tolerance::f32_roundoff * (1 + 2 * (ulp ? std::atof(ulp) : 0));
}

}  // namespace

Tensor<double> draw(Number number, reference::Random& random, std::vector<std::size_t> shape, double deviation,
                    double mean) {
  auto tensor = reference::random_tensor(random, std::move(shape), deviation, mean);
  for (double& value : tensor.data) value = rounded(number, value);
  return tensor;
}

void compare(Number number, const std::string& name, const std::vector<double>& judge, std::vector<double> naive,
             const std::vector<double>& ours, std::size_t roundings, double magnitude) {
  for (double& value : naive) value = rounded(number, value);
  const double roundoff = number == Number::f32 ? f32_roundoff() : tolerance::bf16_roundoff;
  const auto verdict =
      tolerance::compare(name, judge, naive, ours, {number == Number::f32 ? roundings : 1, roundoff, magnitude});
  CHECK_MESSAGE(verdict.ok, verdict.message);
}

Golden golden(const std::string& name) {
  const char* folder = std::getenv("TYPEFORMER_GOLDEN");
  return reference::read_safetensors(std::string(folder ? folder : "tests/golden") + "/ops/" + name + ".safetensors");
}

void compare_with_golden(Number number, const std::string& name, const Golden& golden,
                         const std::vector<double>& ours) {
  const Tensor<double>& expected = golden.at(name);
  REQUIRE(ours.size() == expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference += (ours[i] - expected.data[i]) * (ours[i] - expected.data[i]);
    size += expected.data[i] * expected.data[i];
  }
  const double error = std::sqrt(difference / size);
  std::string key = number == Number::f32 ? "error.f32." : "error.bf16.";
  if (number == Number::bf16 && golden.count("error.sdpa_bf16." + name)) key = "error.sdpa_bf16.";
  const double theirs = golden.at(key + name).data[1];
  const double floor = number == Number::f32 ? f32_roundoff() : 0;
  if (std::getenv("TYPEFORMER_VERBOSE"))
    std::printf("%s %s: error %.3g, PyTorch's %.3g\n", name.c_str(), number == Number::f32 ? "f32" : "bf16", error,
                theirs);
  CHECK_MESSAGE(error <= 2 * theirs + floor, name << ": error " << error << ", PyTorch's " << theirs);
}

}  // namespace support
