// What mutate_logic.py runs for attention's kernels: a choice of attention_test.cpp and attention_decode_test.cpp that
// is fast and that nearly every change of the kernels fails.
#include "attention_judge.hpp"

namespace {

using namespace attention;

Sequence after_cache(int queries, int keys, int ring = 0) {
  return {.queries = queries, .keys = keys, .first_position = keys - queries, .ring = ring};
}
Problem masked(Problem p, const char* mask, int window = 0) {
  p.mask = mask;
  p.window = window;
  if (p.mask == "window") p.cap = 2;
  return p;
}
Problem with_table(std::vector<Sequence> sequences, int heads, int kv_heads, int reach = 20) {
  Problem p = masked(problem(std::move(sequences), heads, kv_heads, 32), "bidirectional");
  p.scale = .2;
  use_table(p, reach);
  return p;
}
void check_gradients(Problem p) {
  p.backward = true;
  check_both(p);
}

TEST_CASE("attend: wrong arguments are named") {
  for (const char* good : {"", "smallest head_dim", "no segments", "nothing to query", "no keys", "disorder",
                           "no keys in between", "longest", "keys alone"})
    CHECK(complaint(good) == "none");
  for (const char* heads : {"heads", "kv_heads", "groups"}) CHECK(complaint(heads) == "attend: heads, kv_heads");
  for (const char* dim : {"head_dim", "large head_dim"}) CHECK(complaint(dim) == "attend: head_dim");
  for (const char* list : {"segments", "host_segments"}) CHECK(complaint(list) == "attend: segments, host_segments");
  CHECK(complaint("segment_count") == "attend: segment_count");
  CHECK(complaint("wide") == "attend: heads, head_dim");
  CHECK(complaint("kv_stride") == "attend: kv_stride");
  for (const char* number : {"queries", "keys", "query_row", "key_row", "first_position"})
    CHECK(complaint(number) == std::string("attend: segment 1, ") + number);
  CHECK(complaint("negative ring") == "attend: segment 1, ring");
  CHECK(complaint("too many keys") == "attend: segment 1, keys");
  CHECK(complaint("too far") == "attend: segment 1, first_position");
  for (const char* array : {"q", "q of the first", "o"}) CHECK(complaint(array) == "attend: q, o");
  for (const char* array : {"k", "v", "k of the first", "k of one key"}) CHECK(complaint(array) == "attend: k, v");
  CHECK(complaint("ring") == "attend_backward: segment 0");
  for (const char* array : {"dq", "d_o", "lse"}) CHECK(complaint(array) == "attend_backward: dq, do, lse");
  for (const char* array : {"dk", "dv"}) CHECK(complaint(array) == "attend_backward: dk, dv");
  for (const char* keys : {"shared keys", "shared keys in disorder"})
    CHECK(complaint(keys) == "attend_backward: segments");
}
TEST_CASE("attend and attend_backward: a few") {
  check_gradients(problem({{3, -1}, {0, 0}, {1, -1}, {40, -1}}, 2, 1, 12));
  check_gradients(with_table({{5, 24}, {3, -1}}, 2, 1));
}
TEST_CASE("attend and attend_backward: lengths around the tiles, groups") {
  for (const int length : {16, 33, 64, 65}) check_gradients(problem({{length, -1}}, 2, 1, 32));
  check_gradients(problem({{35, -1}, {20, -1}}, 6, 2, 31));
}
TEST_CASE("attend and attend_backward: windows and caps") {
  check_gradients(masked(problem({{97, -1}, {10, -1}}, 2, 1, 32), "window", 7));
  check_gradients(masked(problem({{90, -1}}, 1, 1, 32), "window", 40));
}
TEST_CASE("attend and attend_backward: a table, unequal lengths, nothing to see") {
  check_gradients(with_table({{72, -1}, {9, -1}}, 3, 1));
  check_gradients(with_table({{40, -1}}, 2, 1, 7));   // up to where buckets differ
  check_gradients(with_table({{90, -1}}, 2, 1, 70));  // farther than a block has threads
  for (const auto& [queries, keys] : {std::pair{7, 70}, {70, 7}, {33, 0}, {0, 5}})
    check_gradients(with_table({{queries, keys}, {5, 20}}, 2, 1));
}
TEST_CASE("attend and attend_backward: sequences whose rows lie in another order") {
  for (const Number number : {Number::f32, Number::bf16}) {
    Problem p = with_table({{40, -1}, {30, -1}}, 3, 1);
    p.backward = true;
    const Drawn drawn = draw(number, p);
    const Results expected = run(number, p, drawn.rows);
    std::swap(p.sequences[0], p.sequences[1]);
    const Results ours = run(number, p, drawn.rows);
    CHECK((ours.o == expected.o && ours.lse == expected.lse));
    CHECK((ours.dq == expected.dq && ours.dk == expected.dk && ours.dv == expected.dv));
  }
}
TEST_CASE("attend and attend_backward: unaligned arrays, wider rows, grids in pieces") {
  Problem p = problem({{40, -1}}, 2, 1, 32);
  p.shift = 1;
  check_gradients(p);
  p = problem({{70, -1}, {20, -1}}, 3, 1, 24);
  p.grid_limit = 2;
  for (const int stride : {28, 32}) {
    p.kv_stride = stride;
    check_gradients(p);
  }
}
TEST_CASE("attend: few queries behind a cache, rings") {
  for (const int keys : {1, 64, 65, 129, 300}) check_both(problem({after_cache(1, keys)}, 4, 2, 32));
  check_both(problem({after_cache(1, 150)}, 2, 2, 32));
  check_both(problem({after_cache(1, 300), after_cache(3, 140), {0, 50}, after_cache(16, 200)}, 6, 2, 16));
  check_both(problem({after_cache(1, 200)}, 35, 1, 12));
  check_both(problem({after_cache(2, 200)}, 3, 1, 31));
  check_both(problem({after_cache(1, 140)}, 8192, 512, 2));  // all of two splits, and of their rows
  check_both(masked(problem({after_cache(6, 290, 224), after_cache(6, 90, 224)}, 4, 2, 32), "window", 200));
  Problem p = masked(problem({after_cache(20, 90, 64)}, 2, 1, 32), "window", 30);
  check_both(p);
  p = with_table({{3, 270}, {4, 150}}, 6, 2);
  check_both(p);
  p.shift = 1;
  p.grid_limit = 7;
  check_both(p);
  p = problem({after_cache(1, 400), after_cache(3, 150), {2, 0}, after_cache(1, 1)}, 4, 2, 32);
  p.grown = true;
  check_both(p);
}
TEST_CASE("attend and attend_backward: NaN of one sequence does not reach another") {
  for (const Number number : {Number::f32, Number::bf16})
    for (const std::size_t shift : {0u, 1u}) {
      Problem p = problem({{3, -1}, {20, -1}}, 2, 1, 32);
      p.shift = shift;
      p.backward = true;
      Drawn drawn = draw(number, p);
      const Results expected = run(number, p, drawn.rows);
      for (auto* rows : {&drawn.rows.q, &drawn.rows.d_o, &drawn.rows.k, &drawn.rows.v})
        std::fill_n(rows->begin(), rows->size() / 23 * 3, NAN);
      const Results ours = run(number, p, drawn.rows);
      for (const auto member : {&Results::o, &Results::dq, &Results::dk, &Results::dv}) {
        const auto rest = (ours.*member).size() / 23 * 3;
        CHECK(std::equal((ours.*member).begin() + static_cast<std::ptrdiff_t>(rest), (ours.*member).end(),
                         (expected.*member).begin() + static_cast<std::ptrdiff_t>(rest)));
      }
    }
}
TEST_CASE("attend: a null lse is not wanted") {
  for (Problem p : {problem({{40, -1}}, 2, 1, 32), problem({after_cache(1, 200)}, 2, 1, 32)}) {
    p.keeps_lse = false;
    check_both(p);
  }
}
TEST_CASE("attend: large scores") {
  for (const Problem& p : {problem({{80, -1}}, 1, 1, 32), problem({after_cache(4, 400)}, 4, 2, 32)})
    for (const Number number : {Number::f32, Number::bf16}) {
      const Drawn drawn = draw(number, p, 12);
      support::compare(number, "o", judge<double>(p, drawn).o, judge<float>(p, drawn).o, run(number, p, drawn.rows).o,
                       400);
    }
}
TEST_CASE("attend and attend_backward: some queries see keys, others of their tile see none") {
  check_both(masked(problem({{.queries = 2, .keys = 100, .first_position = 248}}, 4, 2, 32), "window", 150));
  check_gradients(masked(problem({{.queries = 40, .keys = 100, .first_position = 230}}, 2, 1, 32), "window", 150));
}
TEST_CASE("attend and attend_backward: queries behind all keys") {
  for (const int queries : {2, 40})
    check_gradients(problem({{.queries = queries, .keys = 50, .first_position = 100}}, 4, 2, 32));
}
TEST_CASE("attend: scores far below zero") {
  for (const Problem& p : {problem({{80, -1}}, 1, 1, 32), problem({after_cache(4, 400)}, 4, 2, 32)})
    for (const Number number : {Number::f32, Number::bf16}) {
      Drawn drawn = draw(number, p, 8);
      for (double& x : drawn.rows.q) x = std::fabs(x);
      for (auto* keys : {&drawn.k, &drawn.rows.k})
        for (double& x : *keys) x = -std::fabs(x);
      const Results expected = judge<double>(p, drawn), ours = run(number, p, drawn.rows);
      support::compare(number, "o", expected.o, judge<float>(p, drawn).o, ours.o, 400);
      check_lse(number, expected.lse, ours.lse);
    }
}
TEST_CASE("attend: keys that no query sees are not read") {
  for (const Number number : {Number::f32, Number::bf16})
    for (const int queries : {2, 40}) {
      Problem p = masked(problem({{.queries = queries, .keys = 300, .first_position = 200}}, 4, 2, 32), "window", 150);
      Drawn drawn = draw(number, p);
      const Results expected = run(number, p, drawn.rows);
      const int first = 51, last = 199 + queries;
      for (int key = 0; key < 300; ++key)
        for (std::size_t i = 0; (key < first || key > last) && i < 64; ++i)
          drawn.rows.k[static_cast<std::size_t>(key) * 64 + i] = drawn.rows.v[static_cast<std::size_t>(key) * 64 + i] =
              NAN;
      const Results ours = run(number, p, drawn.rows);
      CHECK(ours.lse == expected.lse);
      if (queries == 2) CHECK(ours.o == expected.o);
    }
}
TEST_CASE("attend: a null dtable is a gradient that is not wanted") {
  Problem p = with_table({{72, -1}, {9, -1}}, 3, 1);
  p.backward = true;
  const Drawn drawn = draw(Number::bf16, p);
  const Results all = run(Number::bf16, p, drawn.rows);
  p.table_gradient = false;
  const Results others = run(Number::bf16, p, drawn.rows);
  CHECK((others.dq == all.dq && others.dk == all.dk && others.dtable == drawn.rows.dtable_before));
}
}  // namespace
