/// attend and attend_backward on the device, for the tests.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace attention {

struct Sequence {
  int queries = 0, keys = 0, first_position = 0, ring = 0, prefix = 0;
  std::int64_t query_row = 0, key_row = 0;
};

struct Problem {
  std::string mask =
      "causal";    ///< causal, bidirectional, window, chunked, prefix, every_third (the test's own, without span)
  int window = 0;  ///< window, chunked
  double scale = 1, cap = 0;
  std::string bias = "none";  ///< none, alibi, table
  int heads = 1, kv_heads = 1, head_dim = 0;
  std::vector<Sequence> sequences;
  std::int64_t query_rows = 0, key_rows = 0, kv_stride = 0;  ///< of the arrays; kv_stride 0: dense
  std::vector<std::int32_t> table_rows;                      ///< [2 reach + 1]
  std::size_t shift = 0;                                     ///< of all arrays from an aligned address
  int grid_limit = 0;
  bool backward = false;
  bool keeps_lse = true;       ///< for the backward; results.lse is NaN otherwise
  bool grown = false;          ///< sequences grew behind the host's back, as when a graph is launched again
  bool table_gradient = true;  ///< wanted, when there is a table
};

/// Rows as the contract lays them out; k and v kv_stride apart.
struct Inputs {
  std::vector<double> q, k, v, d_o, table, dtable_before;
};
struct Results {
  std::vector<double> o, lse, dq, dk, dv, dtable;
};

Results run(support::Number number, const Problem& problem, const Inputs& in);

/// What a wrong call says; `what` chooses the mistake.
std::string complaint(const std::string& what);

}  // namespace attention
