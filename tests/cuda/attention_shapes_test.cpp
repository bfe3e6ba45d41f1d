// attend and its backward against the judge with a thousand random shapes each: by tiles, and by splits of the keys.
#include "attention_judge.hpp"

namespace {

using namespace attention;

/// Draws shapes in which the boundaries of tiles, splits, masks and accesses are often met.
struct Shapes {
  explicit Shapes(std::uint64_t seed) : random(seed) {}
  reference::Random random;

  int below(int n) { return static_cast<int>(random.below(static_cast<std::size_t>(n))); }
  bool once_in(int n) { return below(n) == 0; }
  template <class T, std::size_t count>
  T one_of(const T (&all)[count]) {
    return all[random.below(count)];
  }

  /// A mask, and a score for some: those that attention_run.hpp has.
  void draw_policies(Problem& p, int longest, bool rings) {
    const char* masks[] = {"causal", "causal", "causal", "bidirectional", "window", "chunked", "prefix", "every_third"};
    p.mask = rings ? "window" : one_of(masks);
    p.window = once_in(4) ? 1 : 1 + below(longest);
    if ((p.mask == "causal" || p.mask == "window") && once_in(4)) p.cap = 2;
    if (p.mask == "causal" && p.cap == 0 && once_in(4)) p.bias = "alibi";
    if ((p.mask == "causal" || p.mask == "bidirectional") && p.cap == 0 && p.bias == "none" && once_in(4)) {
      p.scale = .2;
      use_table(p);
    }
  }
  /// A head_dim: any for causal masks with nothing beside, fewer where attention_run.hpp has fewer tiles.
  int draw_head_dim(const Problem& p, const std::string& mask) {
    const bool plain = p.cap == 0 && p.bias == "none";
    const bool wide = mask == "bidirectional" ? plain : p.bias != "table" && (mask == "causal" || p.cap > 0);
    const int small[] = {1 + below(32), 8 * (1 + below(4)), 32, 16};
    const int middle[] = {33, 40, 63, 64}, large[] = {80, 96, 100, 128}, largest[] = {130, 160, 255, 256};
    if (mask == "causal" && plain && once_in(12)) return one_of(largest);
    if (mask == "causal" && plain && once_in(6)) return one_of(large);
    return wide && once_in(3) ? one_of(middle) : one_of(small);
  }
  void draw_arrays(Problem& p) {
    p.shift = once_in(3) ? random.below(5) : 0;
    p.kv_stride = once_in(3) ? p.kv_heads * p.head_dim + below(10) : 0;
    p.grid_limit = once_in(6) ? 1 + below(20) : 0;
  }
  /// The problem of drawn sequences, with heads in groups.
  Problem finish(const Problem& policies, const std::vector<Sequence>& sequences, int kv_heads, int heads) {
    Problem p = problem(sequences, heads, kv_heads, draw_head_dim(policies, policies.mask));
    p.mask = policies.mask;
    p.window = policies.window;
    p.cap = policies.cap;
    p.bias = policies.bias;
    p.table_rows = policies.table_rows;
    if (p.bias == "table") p.scale = policies.scale;
    draw_arrays(p);
    return p;
  }
};

/// Of a few dozen queries, so that tiles are whole and in part; a sequence of few queries alone goes by splits.
Problem draw_tiles(Shapes& shapes) {
  Problem policies;
  shapes.draw_policies(policies, 60, false);
  const bool cross = policies.mask == "bidirectional";
  std::vector<Sequence> sequences;
  for (int count = 1 + shapes.once_in(2) + shapes.once_in(4); count > 0; --count) {
    const int lengths[] = {shapes.below(20), 15 + shapes.below(4), 31 + shapes.below(4), 17 + shapes.below(20)};
    Sequence s;
    s.queries = shapes.once_in(10) ? 62 + shapes.below(8) : shapes.one_of(lengths);
    s.keys = s.queries;
    if (cross && shapes.once_in(2)) s.keys = shapes.below(50);
    if (!cross && shapes.once_in(4)) s.first_position = shapes.below(40);  // behind keys that were there before
    s.keys += s.first_position;
    if (shapes.once_in(12)) s.keys = 0;
    s.prefix = shapes.below(s.keys + 1);
    sequences.push_back(s);
  }
  const int kv_heads = 1 + shapes.once_in(4);
  return shapes.finish(policies, sequences, kv_heads, kv_heads * (1 + shapes.below(4 - kv_heads)));
}

TEST_CASE("attend and attend_backward: a thousand shapes") {
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    Shapes shapes(static_cast<std::uint64_t>(i) * 104729 + 5);
    Problem p = draw_tiles(shapes);
    p.backward = !shapes.once_in(8);
    p.keeps_lse = p.backward || shapes.once_in(2);
    check(shapes.once_in(2) ? Number::f32 : Number::bf16, p, i % 8 == 0);
  }
}

TEST_CASE("decode: a thousand shapes") {
  const int cases = support::random_cases(1000);
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    Shapes shapes(static_cast<std::uint64_t>(i) * 104729 + 3);
    const bool rings = shapes.once_in(5);
    Problem policies;
    shapes.draw_policies(policies, rings ? 48 : 200, rings);
    std::vector<Sequence> sequences;
    for (int count = 1 + shapes.below(shapes.once_in(4) ? 8 : 3); count > 0; --count) {
      const int queries = shapes.once_in(8) ? shapes.below(17) : 1 + shapes.below(2);
      const int more[] = {shapes.below(40), shapes.below(40), 125 + shapes.below(6), shapes.below(300)};
      const int keys = queries + shapes.one_of(more);
      Sequence s{.queries = queries, .keys = keys, .first_position = keys - queries, .ring = rings ? 64 : 0};
      if (policies.mask == "bidirectional" && shapes.once_in(3)) s.keys = shapes.below(200);
      s.prefix = shapes.below(s.keys + 1);
      sequences.push_back(s);
    }
    const int kv_heads = 1 + shapes.once_in(3);
    Problem p = shapes.finish(policies, sequences, kv_heads, kv_heads * (1 + shapes.below(shapes.once_in(3) ? 5 : 2)));
    p.grown = shapes.once_in(6);
    p.keeps_lse = !shapes.once_in(5);
    check(shapes.once_in(2) ? Number::f32 : Number::bf16, p);
  }
}

}  // namespace
