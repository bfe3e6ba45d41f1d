// What mutate_synchronization.py runs under the race checker for attention by splits: several splits and tiles of keys,
// and two tiles of rows, both number types.
#include <cmath>
#include <cstdio>

#define TYPEFORMER_TEST_FEW_FORMS
#include "attention_run.hpp"

namespace {

bool run_case(support::Number number) {
  attention::Problem p;
  p.heads = 10;
  p.kv_heads = 1;
  p.head_dim = 32;
  p.sequences = {{.queries = 2, .keys = 400, .first_position = 398},
                 {.queries = 1, .keys = 90, .first_position = 89, .query_row = 2, .key_row = 400}};
  p.query_rows = 3;
  p.key_rows = 490;
  attention::Inputs in;
  const auto numbers = [](std::int64_t count) {
    std::vector<double> result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(std::sin(.1 * static_cast<double>(i * i)));
    return result;
  };
  in.q = numbers(p.query_rows * p.heads * p.head_dim);
  in.k = in.v = numbers(p.key_rows * p.kv_heads * p.head_dim);
  const auto results = number == support::Number::f32 ? attention::run_number<float>(p, in)
                                                      : attention::run_number<typeformer::bf16>(p, in);
  for (const double x : results.o)
    if (!std::isfinite(x)) return false;
  return true;
}

}  // namespace

int main() {
  const bool good = run_case(support::Number::f32) && run_case(support::Number::bf16);
  if (!good) std::puts("not finite");
  return good ? 0 : 1;
}
