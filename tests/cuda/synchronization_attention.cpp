// What mutate_synchronization.py runs under the race checker for attention's kernels: several tiles of queries and
// keys, one and two tiles of heads in a group, a trained bias, both number types.
#include <cmath>
#include <cstdio>

#define TYPEFORMER_TEST_FEW_FORMS
#include "attention_run.hpp"

namespace {

bool finite(const std::vector<double>& numbers) {
  for (const double x : numbers)
    if (!std::isfinite(x)) return false;
  return true;
}

bool run_case(const char* bias, support::Number number) {
  attention::Problem p;
  p.bias = bias;
  p.mask = p.bias == "table" ? "bidirectional" : "causal";
  p.heads = 2;
  p.kv_heads = 1;
  p.head_dim = 32;
  p.backward = true;
  p.sequences = {{.queries = 150, .keys = 150}, {.queries = 3, .keys = 3, .query_row = 150, .key_row = 150}};
  p.query_rows = p.key_rows = 153;
  for (int i = 0; i <= 40; ++i) p.table_rows.push_back(i % 8);
  attention::Inputs in;
  const auto numbers = [](std::int64_t count) {
    std::vector<double> result;
    for (std::int64_t i = 0; i < count; ++i) result.push_back(std::sin(.1 * static_cast<double>(i * i)));
    return result;
  };
  in.q = in.d_o = numbers(p.query_rows * p.heads * p.head_dim);
  in.k = in.v = numbers(p.key_rows * p.kv_heads * p.head_dim);
  in.table = in.dtable_before = numbers(8 * p.heads);
  const auto results = number == support::Number::f32 ? attention::run_number<float>(p, in)
                                                      : attention::run_number<typeformer::bf16>(p, in);
  return finite(results.o) && finite(results.dq) && finite(results.dk) && finite(results.dv) && finite(results.dtable);
}

}  // namespace

int main() {
  const bool good = run_case("none", support::Number::f32) && run_case("none", support::Number::bf16) &&
                    run_case("table", support::Number::f32);
  if (!good) std::puts("not finite");
  return good ? 0 : 1;
}
