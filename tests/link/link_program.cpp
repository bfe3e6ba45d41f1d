/// Units compiled for different CPUs in one program: each that this machine can run gives right results, with code of
/// its own.
#include <doctest/doctest.h>

#include <cstdlib>

#include "reference.hpp"
#include "reference/golden.hpp"
#include "reference/random.hpp"
#include "tolerance.hpp"
#include "unit.hpp"

namespace {

using Numbers = reference::Tensor<double>;

/// The unit's inputs, and what the judge and HuggingFace say.
struct Expected {
  UnitInput input;
  Numbers normed, attended, logits;

  Expected() {
    reference::Random random(1);
    Numbers x = reference::random_tensor(random, {21, 37});
    for (double& number : x.data) number = static_cast<double>(static_cast<float>(number));
    input.x.assign(x.data.begin(), x.data.end());
    input.rows = 21;
    input.width = 37;
    input.folder = std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/llama";
    const auto golden = reference::load_golden(input.folder);
    input.ids.assign(golden.batch[0].ids.begin(), golden.batch[0].ids.end());
    logits = golden.expected.at("logits.0");
    const Numbers gain({37}, std::vector<double>(37, 1.5));
    normed = reference::norm_rows({reference::NormKind::layer, reference::NormWeight::weight, true, double{1e-5f}}, x,
                                  &gain, &gain);
    reference::ScoreRule<double> rule;
    rule.attention.heads = rule.attention.kv_heads = 1;
    rule.attention.head_dim = 37;
    rule.attention.scale = .25;
    rule.layer.position = reference::PositionKind::none;
    attended = reference::attend(rule, x, x, x);
  }
};

void check(UnitResult (*unit)(const UnitInput&), const std::string& name) {
  static const Expected expected;
  const UnitResult result = unit(expected.input);
  for (const auto& [what, judge, ours] : {std::tuple{"norm", &expected.normed, &result.normed},
                                          std::tuple{"attention", &expected.attended, &result.attended},
                                          std::tuple{"logits", &expected.logits, &result.logits}}) {
    const auto verdict = tolerance::below_ceiling(name + ", " + what, judge->data, *ours);
    CHECK_MESSAGE(verdict.ok, verdict.message);
  }
}

}  // namespace

TEST_CASE("every unit that this machine can run is right") {
  check(default_unit, "default");
  check(second_default_unit, "second default");
  check(no_avx_unit, "no AVX");
  if (__builtin_cpu_supports("avx2"))
    check(avx2_unit, "AVX2");
  else
    MESSAGE("this machine has no AVX2");
  if (__builtin_cpu_supports("avx512f"))
    check(avx512_unit, "AVX-512");
  else
    MESSAGE("this machine has no AVX-512");
  check(default_unit, "default again");
}
