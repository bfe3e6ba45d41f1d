// attend by splits against the judge: few queries, keys in several splits, heads in groups over several tiles of rows,
// every mask and score, rings, ragged batches, NaN, and lengths that only the device knows.
#include "attention_judge.hpp"
#include "typeformer/kernel/cuda/tuning.hpp"

namespace {

using namespace attention;

/// `queries` queries behind the keys that are cached.
Sequence after_cache(int queries, int keys, int ring = 0) {
  return {.queries = queries, .keys = keys, .first_position = keys - queries, .ring = ring};
}

TEST_CASE("decode: one query, keys around the splits") {
  // splits have 128 keys and more, tiles 64, 32, 16 or 8
  for (const int keys : {1, 31, 33, 64, 65, 127, 128, 129, 191, 257, 520})
    check_both(problem({after_cache(1, keys)}, 4, 2, 32));
}
TEST_CASE("decode: so many heads that all of a few splits are used, or one is left") {
  check_both(problem({after_cache(1, 140)}, 8192, 512, 2));   // two splits, all of their rows
  check_both(problem({after_cache(1, 150)}, 1026, 1026, 2));  // one
}
TEST_CASE("decode: head_dims, groups, several tiles of rows, ragged batches") {
  for (const int head_dim : {1, 12, 33, 64, 80, 128, 256}) check_both(problem({after_cache(1, 150)}, 4, 2, head_dim));
  check_both(problem({after_cache(1, 300), after_cache(3, 140), {0, 50}, after_cache(16, 200)}, 6, 2, 16));
  check_both(problem({after_cache(1, 200)}, 35, 1, 16));
  check_both(problem({after_cache(16, 150)}, 7, 1, 24));
  check_both(problem({after_cache(1, 9), after_cache(1, 400), after_cache(1, 1)}, 3, 3, 40));
}
TEST_CASE("decode: masks and scores") {
  for (const char* mask : {"bidirectional", "every_third", "window", "chunked", "prefix"})
    for (const int window : {5, 140}) {
      Problem p = problem({after_cache(1, 300), after_cache(7, 290)}, 4, 2, 32);
      p.sequences[1].prefix = 289;
      p.mask = mask;
      p.window = window;
      check_both(p);
    }
  for (const char* mask : {"causal", "window"}) {
    Problem p = problem({after_cache(2, 300)}, 4, 2, 40);
    p.mask = mask;
    p.window = 200;
    p.cap = 2;
    check_both(p);
  }
  Problem alibi = problem({after_cache(3, 270)}, 6, 2, 32);
  alibi.bias = "alibi";
  check_both(alibi);
  for (const char* mask : {"causal", "bidirectional"}) {
    Problem p = problem({after_cache(3, 270), {4, 150}}, 6, 2, 32);
    p.mask = mask;
    p.scale = .2;
    use_table(p);
    check_both(p);
  }
}
TEST_CASE("decode: rings, wider rows, unaligned arrays, grids in pieces") {
  for (const int queries : {1, 6}) {
    Problem p = problem({after_cache(queries, 500, 224), after_cache(queries, 90, 224)}, 4, 2, 32);
    p.mask = "window";
    p.window = 200;
    check_both(p);
    p.kv_stride = 72;
    p.key_rows = 448;
    check_both(p);
    p.shift = 1;
    p.grid_limit = 7;
    check_both(p);
  }
}
TEST_CASE("decode: across sequences of unequal length, and nothing to see") {
  Problem p = problem({{7, 270}, {1, 0}, {16, 3}}, 2, 1, 32);
  p.mask = "bidirectional";
  check_both(p);
}
TEST_CASE("decode: large scores") {
  const Problem p = problem({after_cache(4, 400)}, 4, 2, 64);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p, 8);  // scores of several hundred
    support::compare(number, "o", judge<double>(p, drawn).o, judge<float>(p, drawn).o, run(number, p, drawn.rows).o,
                     400);
  }
}

TEST_CASE("decode: keys that no query sees are not read") {
  for (const Number number : {Number::f32, Number::bf16}) {
    Problem p = problem({{.queries = 2, .keys = 300, .first_position = 200}}, 4, 2, 32);
    p.mask = "window";
    p.window = 150;  // keys 51 to 201
    Drawn drawn = draw(number, p);
    const Results expected = run(number, p, drawn.rows);
    for (int key = 0; key < 300; ++key)
      for (std::size_t i = 0; (key < 51 || key > 201) && i < 64; ++i)
        drawn.rows.k[static_cast<std::size_t>(key) * 64 + i] = drawn.rows.v[static_cast<std::size_t>(key) * 64 + i] =
            NAN;
    const Results ours = run(number, p, drawn.rows);
    CHECK((ours.o == expected.o && ours.lse == expected.lse));
  }
}
TEST_CASE("decode: NaN and infinity in a query or in a key that it sees are not hidden") {
  constexpr std::size_t heads = 4;
  for (const Number number : {Number::f32, Number::bf16})
    for (const std::size_t bad : {3u, 200u, 296u}) {
      Problem p = problem({after_cache(4, 300)}, 4, 2, 32);  // queries 296 to 299
      Drawn drawn = draw(number, p);
      drawn.rows.k[bad * 64 + 3] = NAN;  // of the first kv head
      p.sequences[0].first_position = 295;
      const Results ours = run(number, p, drawn.rows);
      for (std::size_t row = 0; row < 4; ++row)
        for (std::size_t head = 0; head < heads; ++head) {
          const bool sees_it = head < 2 && bad <= 295 + row;
          CHECK(std::isnan(ours.lse[row * heads + head]) == sees_it);
          CHECK(all_nan(ours.o, row * heads + head, 32) == sees_it);
        }
    }
  Problem p = problem({after_cache(2, 200)}, 1, 1, 32);
  for (const Number number : {Number::f32, Number::bf16}) {
    Drawn drawn = draw(number, p);
    drawn.rows.q[0] = infinity;  // softmax of an infinite score, in the second split
    drawn.rows.k[150 * 32] = 1;
    for (std::size_t key = 0; key < 128; ++key) drawn.rows.k[key * 32] = -1;
    const Results ours = run(number, p, drawn.rows);
    CHECK((std::isnan(ours.lse[0]) && std::isnan(ours.o[0]) && std::isfinite(ours.lse[1])));
  }
}

TEST_CASE("decode: sequences that grew since the launch was made") {
  Problem p = problem({after_cache(1, 400), after_cache(3, 150), {2, 0}, after_cache(1, 1)}, 4, 2, 32);
  p.grown = true;
  check_both(p);
}

TEST_CASE("decode: two runs are equal") {
  const Problem p = problem({after_cache(1, 400), after_cache(5, 300)}, 4, 2, 64);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p);
    const Results first = run(number, p, drawn.rows), second = run(number, p, drawn.rows);
    CHECK((first.o == second.o && first.lse == second.lse));
  }
}

TEST_CASE("tuning: splits cover the keys, and blocks stay in bounds") {
  using namespace typeformer::cuda::detail;
  CHECK((decode_shape(1, 8, 8, 0).splits == 0 && decode_shape(1, 8, 8, 1).splits == 64));
  CHECK((decode_shape(1, 8, 8, decode_most_queries + 1).splits == 0 && decode_shape(1025, 8, 8, 1).splits == 0));
  for (const int splits : {1, 3, 64})
    for (int keys = 0; keys < 20000; keys += keys < 600 ? 1 : 371) {
      const int length = split_length(keys, splits);
      CHECK((length % 64 == 0 && length >= 128 && length * std::int64_t{splits} >= keys));
    }
  for (const int segments : {1, 7, 100, 3000})
    for (const int kv_heads : {1, 8, 96})
      for (const int group : {1, 5, 71}) {
        const DecodeShape shape = decode_shape(segments, kv_heads * group, kv_heads, 3);
        const std::int64_t blocks = std::int64_t{segments} * kv_heads * shape.row_tiles;
        if (shape.splits == 0) continue;
        CHECK((shape.splits <= 64 && blocks <= 8192 && shape.row_tiles * decode_rows >= 3 * group));
        CHECK((shape.splits == 1 || blocks * shape.splits <= 1024));
      }
  for (int head_dim = 1; head_dim <= 256; ++head_dim)
    for (const AttentionTile& tile :
         {tensor_core_decode_tile(attention_depth(head_dim)), float_decode_tile(attention_depth(head_dim))})
      CHECK((tile.rows == decode_rows && tile.depth >= head_dim && tile.threads() >= 32));
}

}  // namespace
