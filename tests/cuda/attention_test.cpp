// attend and attend_backward against the judge and PyTorch: every mask and score, sizes around the tiles, ragged
// batches, rings, grouped heads, all padded head_dims, unaligned arrays.
#include "attention_judge.hpp"

namespace {

using namespace attention;

// --- cases ----------------------------------------------------------------------------------------------------------

TEST_CASE("attend: lengths around the tiles") {
  // tiles have 64 or 32 queries and 64, 32 or 16 keys
  for (const int length : {1, 15, 16, 17, 31, 33, 63, 64, 65, 130}) check_both(problem({{length, -1}}, 2, 1, 32));
}
TEST_CASE("attend: head_dims, heads in groups, ragged batches") {
  check_both(problem({{20, -1}, {1, -1}, {37, -1}}, 4, 1, 12));
  check_both(problem({{5, -1}, {66, -1}}, 3, 1, 40));
  check_both(problem({{35, -1}, {0, 0}, {3, -1}}, 6, 2, 64));
  check_both(problem({{18, -1}, {40, -1}}, 2, 2, 128));
  check_both(problem({{34, -1}}, 2, 1, 256));
  check_both(problem({{9, -1}}, 1, 1, 33));
  check_both(problem({{9, -1}}, 2, 2, 1));
}
TEST_CASE("attend: masks") {
  for (const char* mask : {"bidirectional", "every_third"}) {
    Problem p = problem({{40, -1}, {70, -1}}, 2, 1, 32);
    p.mask = mask;
    check_both(p);
  }
  for (const int window : {1, 7, 33, 200})
    for (const char* mask : {"window", "chunked"}) {
      Problem p = problem({{97, -1}, {30, -1}}, 2, 1, 32);
      p.mask = mask;
      p.window = window;
      check_both(p);
    }
  for (const int prefix : {0, 5, 50, 90}) {
    Problem p =
        problem({{.queries = 90, .keys = 90, .prefix = prefix}, {.queries = 10, .keys = 10, .prefix = 3}}, 1, 1, 32);
    p.mask = "prefix";
    check_both(p);
  }
}
TEST_CASE("attend: scores") {
  for (const char* mask : {"causal", "window"}) {
    Problem p = problem({{50, -1}}, 2, 1, 40);
    p.mask = mask;
    p.window = 20;
    p.cap = 2;
    check_both(p);
  }
  Problem alibi = problem({{50, -1}}, 3, 1, 32);
  alibi.bias = "alibi";
  check_both(alibi);
  for (const char* mask : {"causal", "bidirectional"}) {
    Problem p = problem({{50, -1}, {9, -1}}, 3, 1, 32);
    p.mask = mask;
    p.scale = 1;
    use_table(p);
    check_both(p);
  }
}
TEST_CASE("attend: across sequences of unequal length, and nothing to see") {
  for (const auto& [queries, keys] : {std::pair{7, 70}, {70, 7}, {33, 0}, {1, 1}}) {
    Problem p = problem({{queries, keys}, {5, 20}}, 2, 1, 32);
    p.mask = "bidirectional";
    check_both(p);
  }
  Problem nothing = problem({}, 2, 1, 32);
  nothing.backward = true;
  CHECK(attention::run(Number::f32, nothing, {}).o.empty());
}
TEST_CASE("attend: after cached keys, in rings, in wider rows") {
  check_both(problem(
      {{.queries = 1, .keys = 70, .first_position = 69}, {.queries = 5, .keys = 40, .first_position = 35}}, 4, 1, 64));
  for (const int queries : {1, 6}) {
    Problem p = problem({{.queries = queries, .keys = 50, .first_position = 50 - queries, .ring = 24},
                         {.queries = queries, .keys = 9, .first_position = 9 - queries, .ring = 24}},
                        2, 1, 32);
    p.mask = "window";
    p.window = 16;
    check_both(p);
    p.kv_stride = 48;
    check_both(p);
  }
}
TEST_CASE("attend: unaligned arrays, grids in pieces") {
  Problem p = problem({{40, -1}}, 2, 1, 64);
  p.shift = 1;
  check_both(p);
  p = problem({{70, -1}, {20, -1}}, 3, 1, 32);
  p.grid_limit = 2;
  check_both(p);
}
TEST_CASE("attend: large scores") {
  const Problem p = problem({{40, -1}}, 1, 1, 64);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p, 8);  // scores of several hundred
    support::compare(number, "o", judge<double>(p, drawn).o, judge<float>(p, drawn).o,
                     attention::run(number, p, drawn.rows).o, 100);
  }
}

// --- backward -------------------------------------------------------------------------------------------------------

void check_gradients(Problem p) {
  p.backward = true;
  check_both(p);
}

TEST_CASE("attend_backward: lengths around the tiles") {
  for (const int length : {1, 15, 17, 33, 63, 65, 80}) check_gradients(problem({{length, -1}}, 2, 1, 32));
}
TEST_CASE("attend_backward: head_dims, heads in groups, ragged batches") {
  check_gradients(problem({{20, -1}, {1, -1}, {37, -1}}, 4, 1, 12));
  check_gradients(problem({{5, -1}, {66, -1}}, 3, 1, 40));
  check_gradients(problem({{35, -1}, {0, 0}, {3, -1}}, 6, 2, 64));
  check_gradients(problem({{18, -1}, {36, -1}}, 2, 2, 128));
  check_gradients(problem({{34, -1}}, 2, 1, 256));
  check_gradients(problem({{9, -1}}, 1, 1, 33));
}
TEST_CASE("attend_backward: masks") {
  for (const char* mask : {"bidirectional", "every_third"}) {
    Problem p = problem({{20, -1}, {70, -1}}, 2, 1, 32);
    p.mask = mask;
    check_gradients(p);
  }
  for (const int window : {1, 7, 33})
    for (const char* mask : {"window", "chunked"}) {
      Problem p = problem({{97, -1}, {10, -1}}, 2, 1, 32);
      p.mask = mask;
      p.window = window;
      check_gradients(p);
    }
  Problem p = problem({{.queries = 90, .keys = 90, .prefix = 50}, {.queries = 10, .keys = 10, .prefix = 3}}, 1, 1, 32);
  p.mask = "prefix";
  check_gradients(p);
}
TEST_CASE("attend_backward: scores") {
  for (const char* mask : {"causal", "window"}) {
    Problem p = problem({{50, -1}}, 2, 1, 40);
    p.mask = mask;
    p.window = 20;
    p.cap = 2;
    check_gradients(p);
  }
  Problem alibi = problem({{50, -1}}, 3, 1, 32);
  alibi.bias = "alibi";
  check_gradients(alibi);
  for (const char* mask : {"causal", "bidirectional"}) {
    Problem p = problem({{72, -1}, {9, -1}}, 3, 1, 32);  // near and far of the table's reach of 20
    p.mask = mask;
    p.scale = .2;
    use_table(p);
    check_gradients(p);
  }
}
TEST_CASE("attend_backward: across sequences of unequal length, and nothing to see") {
  for (const auto& [queries, keys] : {std::pair{7, 70}, {70, 7}, {33, 0}, {0, 5}, {1, 1}}) {
    Problem p = problem({{queries, keys}, {5, 20}}, 2, 1, 32);
    p.mask = "bidirectional";
    check_gradients(p);
  }
}
TEST_CASE("attend_backward: tables that reach as far as buckets differ, and farther than a block has threads") {
  for (const int reach : {7, 70}) {
    Problem p = problem({{reach == 7 ? 40 : 90, -1}}, 2, 1, 32);
    p.mask = "bidirectional";
    p.scale = .2;
    use_table(p, reach);
    check_gradients(p);
  }
}
TEST_CASE("attend_backward: sequences whose rows lie in another order") {
  for (const Number number : {Number::f32, Number::bf16}) {
    Problem p = problem({{40, -1}, {30, -1}}, 3, 1, 32);
    p.mask = "bidirectional";
    p.backward = true;
    use_table(p);
    const Drawn drawn = draw(number, p);
    const Results expected = attention::run(number, p, drawn.rows);
    std::swap(p.sequences[0], p.sequences[1]);
    const Results ours = attention::run(number, p, drawn.rows);
    CHECK((ours.o == expected.o && ours.lse == expected.lse));
    CHECK((ours.dq == expected.dq && ours.dk == expected.dk && ours.dv == expected.dv));
  }
}
TEST_CASE("attend_backward: unaligned arrays, wider rows, grids in pieces") {
  Problem p = problem({{40, -1}}, 2, 1, 64);
  p.shift = 1;
  check_gradients(p);
  p = problem({{70, -1}, {20, -1}}, 3, 1, 32);
  p.kv_stride = 40;
  p.grid_limit = 2;
  check_gradients(p);
}

TEST_CASE("attend_backward: a null dtable is a gradient that is not wanted") {
  Problem p = problem({{72, -1}, {9, -1}}, 3, 1, 32);
  p.mask = "bidirectional";
  p.scale = .2;
  p.backward = true;
  use_table(p);
  for (const Number number : {Number::f32, Number::bf16}) {
    const Drawn drawn = draw(number, p);
    p.table_gradient = true;
    const Results all = attention::run(number, p, drawn.rows);
    p.table_gradient = false;
    const Results others = attention::run(number, p, drawn.rows);
    CHECK((others.dq == all.dq && others.dk == all.dk && others.dv == all.dv));
    CHECK((others.dtable == drawn.rows.dtable_before && all.dtable != drawn.rows.dtable_before));
  }
}

TEST_CASE("attend: NaN and infinity in a query or in a key that it sees are not hidden") {
  const std::size_t heads = 2, width = heads * 32, bad = 20;  // a row of the first tile, and keys of several
  for (const Number number : {Number::f32, Number::bf16})
    for (const double cap : {0., 2.})
      for (const bool of_query : {true, false}) {
        CAPTURE(cap);
        CAPTURE(of_query);
        Problem p = problem({{100, -1}}, 2, 1, 32);
        p.cap = cap;
        p.backward = true;
        Drawn drawn = draw(number, p);
        (of_query ? drawn.rows.q[bad * width + 3] : drawn.rows.k[bad * 32 + 3]) = NAN;
        if (of_query) drawn.rows.q[bad * width + 32 + 3] = NAN;  // of the other head
        const Results ours = attention::run(number, p, drawn.rows);
        for (std::size_t row = 0; row < 100; ++row) {
          const bool sees_it = of_query ? row == bad : row >= bad;
          CHECK(all_nan(ours.lse, row, heads) == sees_it);
          CHECK(all_nan(ours.o, row, width) == sees_it);
          if (sees_it) CHECK(all_nan(ours.dq, row, width));
        }
        for (std::size_t key = 0; of_query && key <= bad; ++key) {
          CHECK(all_nan(ours.dk, key, 32));
          CHECK(all_nan(ours.dv, key, 32));
        }
      }
  Problem p = problem({{3, -1}}, 1, 1, 32);
  Drawn drawn = draw(Number::f32, p);
  drawn.rows.q[0] = infinity;  // softmax of an infinite score
  drawn.rows.k[0] = 1;
  for (const Number number : {Number::f32, Number::bf16}) {
    const Results ours = attention::run(number, p, drawn.rows);
    CHECK((std::isnan(ours.lse[0]) && std::isnan(ours.o[0]) && std::isfinite(ours.lse[1])));
  }
}

TEST_CASE("attend: wrong arguments are named") {
  CHECK(attention::complaint("heads") ==
        "attend: heads, kv_heads: expected heads to be a multiple of kv_heads, got 3 and 2");
  CHECK(attention::complaint("head_dim") == "attend: head_dim: expected 1 to 256, got 257");
  CHECK(attention::complaint("head_dim of the type") ==
        "attend: head_dim: expected 9, as the type of the arguments says, got 8");
  CHECK(attention::complaint("head_dim of the type, backward") ==
        "attend_backward: head_dim: expected 9, as the type of the arguments says, got 8");
  CHECK(attention::complaint("ring") == "attend_backward: segment 0: expected no ring, got 4 slots");
  CHECK(attention::complaint("shared keys") ==
        "attend_backward: segments: expected keys of their own for each, got two that share key row 3");
  CHECK(attention::complaint("null") == "attend: q, o: expected arrays, got null");
}

TEST_CASE("attend: as PyTorch") {
  for (const char* file : {"alibi_32", "alibi_64", "bidirectional_40", "causal_32", "causal_40", "causal_64",
                           "cross_32", "cross_64", "softcap_40", "table_32", "window_32", "window_softcap_64"})
    for (const Number number : {Number::f32, Number::bf16}) {
      CAPTURE(file);
      const auto golden = support::golden(std::string("attention_") + file);
      const auto extent = [&](const char* name, std::size_t i) {
        return static_cast<int>(golden.at(name).shape.at(i));
      };
      Problem p = problem({{extent("q", 0), extent("k", 0)}}, extent("q", 1), extent("k", 1), extent("q", 2));
      p.window = static_cast<int>(golden.at("window").data[0]);
      p.mask = golden.at("causal").data[0] == 0 ? "bidirectional" : p.window > 0 ? "window" : "causal";
      p.scale = golden.at("scale").data[0];
      p.cap = golden.at("cap").data[0];
      p.bias = golden.count("slopes") ? "alibi" : "none";
      p.backward = true;
      Inputs in{golden.at("q").data, golden.at("k").data, golden.at("v").data, golden.at("do").data, {}, {}};
      if (golden.count("table")) {
        use_table(p);
        in.table = golden.at("table").data;
        in.dtable_before.assign(in.table.size(), 0);
      }
      const Results ours = attention::run(number, p, in);
      support::compare_with_golden(number, "o", golden, ours.o);
      check_lse(number, golden.at("lse").data, ours.lse);
      if (!p.backward) continue;
      support::compare_with_golden(number, "dq", golden, ours.dq);
      support::compare_with_golden(number, "dk", golden, ours.dk);
      support::compare_with_golden(number, "dv", golden, ours.dv);
      if (golden.count("table")) support::compare_with_golden(number, "dtable", golden, ours.dtable);
    }
}

}  // namespace
