// A real model on the CUDA device: SmolLM2-135M answers as on the CPU, which answers as transformers does.
#include "smollm2.hpp"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "reference/safetensors.hpp"
#include "support.hpp"
#include "tolerance.hpp"

TEST_CASE("smollm2: the CUDA device answers as the CPU does") {
  const char* path = std::getenv("TYPEFORMER_SMOLLM2");
  REQUIRE_MESSAGE(path, "TYPEFORMER_SMOLLM2 names no file");
  const auto golden =
      nlohmann::json::parse(reference::read_file(std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/smollm2.json"));
  const auto prompt = golden.at("chat").at("prompt_ids").get<std::vector<std::int32_t>>();
  const smollm2::Answer expected = smollm2::answer("cpu", path, prompt, 16);
  const smollm2::Answer ours = smollm2::answer("cuda", path, prompt, 16);
  CHECK(ours.ids == expected.ids);
  auto theirs = golden.at("chat").at("new_ids").get<std::vector<std::int32_t>>();
  theirs.resize(16);
  CHECK(ours.ids == theirs);
  REQUIRE(ours.logits.size() == expected.logits.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < ours.logits.size(); ++i) {
    difference += std::pow(double{ours.logits[i]} - double{expected.logits[i]}, 2);
    size += std::pow(double{expected.logits[i]}, 2);
  }
  CHECK(std::sqrt(difference / size) < tolerance::deep_model_ceiling);
}
