/// More blocks than the y and z of a grid could have, offsets of more than 32 bits, and sizes that kernels refuse.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace limits {

/// norm_rows on rows of four floats.
struct Norm {
  std::vector<double> y, dx;
};
Norm norm(const std::vector<double>& x, std::int64_t rows);
/// The same and its backward for rows that begin `first` rows, more than 2^33 elements, behind the arrays' addresses.
Norm norm_far(const std::vector<double>& x, const std::vector<double>& dy, std::int64_t rows, std::int64_t first);

/// Heads of one channel without norm: q, k and v of a token, and dqkv of their gradients, which are q | k | v again.
struct Heads {
  std::vector<double> q, k, v, dqkv;
};
Heads heads(const std::vector<double>& qkv, int count);

/// Segments of a query and a key or less, with heads of 32 channels that share one head of keys.
struct Attention {
  int heads = 1;
  std::vector<int> queries, keys;  ///< of each segment, 0 or 1; rows are where they would be if all had one
  std::int64_t first_row = 0;      ///< of q, k and v before the first segment's, without memory
  bool backward = false;
};
struct AttentionResults {
  std::vector<double> o, lse, dq, dk, dv;
};
/// v and do: of a row each [segments, 32] and [segments, heads, 32]; q and k are made of them.
AttentionResults attend(const Attention& problem, const std::vector<double>& v, const std::vector<double>& d_o);

/// What a call with the size `what` beyond the limit says.
std::string complaint(const std::string& what);

}  // namespace limits
