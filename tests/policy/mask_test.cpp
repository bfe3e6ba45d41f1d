// Masks: sees() against the definitions, span() and reach() against sees(), exhaustively on small sizes.
#include "typeformer/policy/mask.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace tf = typeformer;

namespace {

constexpr int longest = 13;

/// Every tile of queries against every number of keys. `tight`: begin, end and full range are the best there are.
template <class Mask>
void check_span(const Mask& mask, const tf::MaskData& data, bool tight) {
  for (int keys = 0; keys <= longest; ++keys) {
    for (int first = 0; first < longest; ++first) {
      for (int last = first; last < longest; ++last) {
        const tf::KeySpan span = tf::key_span(mask, first, last, keys, data);
        CAPTURE(keys);
        CAPTURE(first);
        CAPTURE(last);
        CHECK(span.begin >= 0);
        CHECK(span.end <= keys);
        CHECK(span.full_begin >= 0);
        CHECK(span.full_end <= keys);
        int seen_by_all = 0, full = 0, lowest = keys, highest = -1;
        for (int key = 0; key < keys; ++key) {
          bool any = false, all = true;
          for (int query = first; query <= last; ++query) {
            any = any || mask.sees(query, key, data);
            all = all && mask.sees(query, key, data);
          }
          if (key < span.begin || key >= span.end) CHECK_FALSE(any);
          if (key >= span.full_begin && key < span.full_end) {
            CHECK(all);
            ++full;
          }
          seen_by_all += all ? 1 : 0;
          if (any) {
            lowest = std::min(lowest, key);
            highest = key;
          }
        }
        if (!tight) continue;
        CHECK(full == seen_by_all);
        if (highest < 0) {
          CHECK(span.begin >= span.end);
        } else {
          CHECK(span.begin == lowest);
          CHECK(span.end == highest + 1);
        }
      }
    }
  }
}

/// Exactly the newest reach() keys may be seen, and the oldest of them is by some query.
template <class Mask>
void check_reach(const Mask& mask) {
  const int reach = tf::reach(mask);
  REQUIRE(reach > 0);
  bool oldest_seen = false;
  for (int query = 0; query < 40; ++query) {
    for (int key = 0; key <= query - reach; ++key) CHECK_FALSE(mask.sees(query, key, {}));
    if (query - reach + 1 >= 0) oldest_seen = oldest_seen || mask.sees(query, query - reach + 1, {});
  }
  CHECK(oldest_seen);
}

template <class Mask, class Expected>
void check_sees(const Mask& mask, const tf::MaskData& data, Expected&& expected) {
  for (int query = 0; query < 20; ++query)
    for (int key = 0; key < 20; ++key) CHECK(mask.sees(query, key, data) == expected(query, key));
}

}  // namespace

TEST_CASE("who sees whom") {
  check_sees(tf::Causal{}, {}, [](int i, int j) { return j <= i; });
  check_sees(tf::Bidirectional{}, {}, [](int, int) { return true; });
  for (const int window : {1, 2, 5, 30})
    check_sees(tf::SlidingWindow{window}, {}, [&](int i, int j) { return i - j >= 0 && i - j <= window - 1; });
  for (const int chunk : {1, 3, 8, 30}) {
    check_sees(tf::Chunked{chunk}, {}, [&](int i, int j) {
      int start = 0;  // of the query's chunk
      while (start + chunk <= i) start += chunk;
      return j >= start && j <= i;
    });
  }
  for (const int prefix : {0, 1, 6, 20})
    check_sees(tf::PrefixCausal{}, {.prefix = prefix}, [&](int i, int j) { return j < prefix || j <= i; });
}

TEST_CASE("a window counts the query itself; the first token of a chunk sees only itself") {
  const auto seen = [](auto mask, int query) {
    int count = 0;
    for (int key = 0; key < 50; ++key) count += mask.sees(query, key, {}) ? 1 : 0;
    return count;
  };
  CHECK(seen(tf::SlidingWindow{5}, 20) == 5);
  CHECK(seen(tf::SlidingWindow{5}, 2) == 3);
  CHECK(seen(tf::Chunked{8}, 16) == 1);
  CHECK(seen(tf::Chunked{8}, 23) == 8);
}

TEST_CASE("span says exactly what a tile of queries sees") {
  check_span(tf::Causal{}, {}, true);
  check_span(tf::Bidirectional{}, {}, true);
  for (const int window : {1, 2, 3, 7, 13, 50}) check_span(tf::SlidingWindow{window}, {}, true);
  for (const int chunk : {1, 2, 3, 5, 13, 50}) check_span(tf::Chunked{chunk}, {}, true);
  for (const int prefix : {0, 1, 4, 9, 13, 50}) check_span(tf::PrefixCausal{}, {.prefix = prefix}, true);
}

TEST_CASE("reach: a cache may forget what is further back") {
  for (const int window : {1, 2, 7}) check_reach(tf::SlidingWindow{window});
  for (const int chunk : {1, 2, 7}) check_reach(tf::Chunked{chunk});
  CHECK(tf::reach(tf::Causal{}) == 0);
  CHECK(tf::reach(tf::Bidirectional{}) == 0);
  CHECK(tf::reach(tf::PrefixCausal{}) == 0);
}

namespace user {
/// Every second key and the query's own, without a span.
struct Strided {
  int window = 3;  // a field of that name alone promises nothing
  bool sees(int query, int key, const tf::MaskData&) const { return key == query || (key < query && key % 2 == 0); }
};
}  // namespace user

TEST_CASE("a mask without span or reach is right, and nothing is skipped") {
  static_assert(tf::MaskPolicy<user::Strided> && !tf::MaskWithSpan<user::Strided> && tf::MaskWithSpan<tf::Causal>);
  check_span(user::Strided{}, {}, false);
  const tf::KeySpan span = tf::key_span(user::Strided{}, 3, 4, 9, {});
  CHECK(span.begin == 0);
  CHECK(span.end == 9);
  CHECK(span.full_begin >= span.full_end);
  CHECK(tf::reach(user::Strided{}) == 0);
}
