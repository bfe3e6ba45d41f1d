/// The contract between the model and a device: every operation once, forward then backward, as the struct of its
/// arguments.
///
/// An operation is a free function whose first argument is the device, found by argument-dependent lookup:
/// `norm_rows(on, norm_form(fixed<RMSNorm{}>), NormArgs<float>{...})`. All matrices are row-major, "[rows, width]",
/// rows `stride` elements apart (0: width). T is the type of activations, W of weights; sums are in float, gradients
/// are float. Unless said otherwise an output is assigned (=), gradients of parameters are accumulated (+=; null: not
/// wanted), and pointers do not alias. With no rows, tokens or elements nothing happens, and pointers may be null.
///
/// Operations run in the order of the calls and may be asynchronous. What an argument's comment says is in host memory
/// is read before the call returns; arrays are in the device's memory and read when the operation runs.
///
/// Who checks: the caller, which is the model. It sees to it that arrays reach as far as their shapes, that sizes,
/// strides and segments fit together, that indices, labels, positions and rows lie inside, and that what the policies
/// need is there (a norm's gain). A device may refuse with an Error what it can tell from the struct at no cost, as
/// cuda does, because a kernel cannot; nobody may rely on it, and anything else is undefined. An operation throws
/// besides when the device has no memory for its temporaries.
#pragma once
#include <cstddef>
#include <cstdint>

#include "typeformer/core/scalar.hpp"
#include "typeformer/kernel/score.hpp"
#include "typeformer/policy/activation.hpp"
#include "typeformer/policy/mask.hpp"
#include "typeformer/policy/norm.hpp"
#include "typeformer/policy/position.hpp"

namespace typeformer::inline TYPEFORMER_ABI {

// --- rows of a table: embeddings ------------------------------------------------------------------------------------

/// gather_rows: y[t] = scale * table[index[t] + offset] (+ y[t] when `accumulate`). Every index[t] + offset is a row of
/// the table.
template <class T, class W>
struct GatherArgs {
  T* y = nullptr;                       ///< [tokens, width]
  const W* table = nullptr;             ///< [rows, width]
  const std::int32_t* index = nullptr;  ///< [tokens]
  std::int64_t tokens = 0;
  int width = 0;
  int offset = 0;  ///< added to every index (positions that begin with another row than 0)
  float scale = 1.f;
  bool accumulate = false;  ///< y += instead of =
};
/// gather_rows_backward: dtable[index[t] + offset] += scale * dy[t], in the order of t.
template <class T>
struct GatherBackwardArgs {
  float* dtable = nullptr;              ///< [rows, width], +=
  const T* dy = nullptr;                ///< [tokens, width]
  const std::int32_t* index = nullptr;  ///< [tokens]
  std::int64_t tokens = 0;
  int width = 0;
  int offset = 0;
  float scale = 1.f;
};

// --- norms ----------------------------------------------------------------------------------------------------------

/// norm_rows: y = gain * normalize(x - mean, scale) + bias (+ residual), row by row; mean is 0 unless the norm is
/// centred, scale is what it makes of the mean square of x - mean. policy/norm.hpp has the formulas.
template <class T>
struct NormArgs {
  T* y = nullptr;               ///< [rows, width]; may be x or residual
  const T* x = nullptr;         ///< [rows, width]
  const T* residual = nullptr;  ///< [rows, width] added to the result, or null
  const float* gain = nullptr;  ///< [width], when the norm has one
  const float* bias = nullptr;  ///< [width], when the norm has one
  float* mean = nullptr;        ///< [rows] kept for the backward (centred norms), or null
  float* scale = nullptr;       ///< [rows] kept for the backward, or null
  std::int64_t rows = 0;
  int width = 0;
};
/// norm_rows_backward: dx = the policy's normalize_backward of d = gain dy (+ dx), dgain += sum_r dy normalize(x -
/// mean, scale), dbias += sum_r dy. The gradient of `residual` is dy itself.
template <class T>
struct NormBackwardArgs {
  T* dx = nullptr;               ///< [rows, width]; may be dy, unless it accumulates
  const T* dy = nullptr;         ///< [rows, width]
  const T* x = nullptr;          ///< [rows, width], as the forward read it
  const float* gain = nullptr;   ///< [width], when the norm has one
  const float* mean = nullptr;   ///< [rows] as kept; centred norms only
  const float* scale = nullptr;  ///< [rows] as kept
  float* dgain = nullptr;        ///< [width], +=
  float* dbias = nullptr;        ///< [width], +=
  std::int64_t rows = 0;
  int width = 0;
  bool accumulate = false;  ///< dx += instead of =
};

// --- matrix products ------------------------------------------------------------------------------------------------

/// linear: y[r, o] = sum_i x[r, i] w[o, i] + bias[o] (+ residual[r, o]). Y is the type of the result: T, or float for
/// logits. A device whose products take a bias in Y rounds it first.
template <class T, class W, class Y = T>
struct LinearArgs {
  Y* y = nullptr;               ///< [rows, out]; may be residual, then dense
  const T* x = nullptr;         ///< [rows, in]
  const W* w = nullptr;         ///< [out, in]
  const float* bias = nullptr;  ///< [out] or null
  const Y* residual = nullptr;  ///< [rows, out], dense, or null
  std::int64_t rows = 0;
  int in = 0, out = 0;
  std::int64_t x_stride = 0, y_stride = 0;
};
/// linear_backward: dx = dy w (+=: `accumulate`), dw += dy^T x, dbias += sum_r dy. Each output may be null, dx too. The
/// gradient of `residual` is dy itself.
template <class T, class W>
struct LinearBackwardArgs {
  T* dx = nullptr;         ///< [rows, in], dense
  float* dw = nullptr;     ///< [out, in]
  float* dbias = nullptr;  ///< [out]
  const T* dy = nullptr;   ///< [rows, out]
  const T* x = nullptr;    ///< [rows, in]
  const W* w = nullptr;    ///< [out, in]
  std::int64_t rows = 0;
  int in = 0, out = 0;
  std::int64_t x_stride = 0, dy_stride = 0;
  bool accumulate = false;  ///< dx += instead of =
};

// --- query, key and value after their projection --------------------------------------------------------------------

/// How RoPE turns a head: channels a and b of pair i become (a cos - b sin, b cos + a sin) * amplitude of the angle
/// position * frequencies[i]. `pairs` tells which channels are a pair; it selects code, so it is part of the type.
/// Width 0: nothing turns.
template <Pairs kind>
struct Rotation {
  static constexpr Pairs pairs = kind;
  const float* frequencies = nullptr;  ///< [width / 2] radians per position
  int width = 0;                       ///< leading channels of a head that turn
  float amplitude = 1.f;               ///< factor of cos and sin
};

/// prepare_heads(on, norm, rotation, args): splits qkv, normalizes q and k (form `norm`, see QKNorm), rotates them,
/// writes q, and k and v to the rows of the cache given by kv_row. Order: norm, RoPE; or RoPE, norm with
/// `norm_after_rope`. Rows of the cache that no kv_row names are left alone.
template <class T>
struct HeadsArgs {
  T* q = nullptr;                 ///< [tokens, heads * head_dim]
  T* k = nullptr;                 ///< [cache rows, kv_heads * head_dim]
  T* v = nullptr;                 ///< [cache rows, kv_heads * head_dim]
  const T* qkv = nullptr;         ///< [tokens, (heads + 2 kv_heads) * head_dim]: q | k | v
  const float* q_gain = nullptr;  ///< as q_norm's width says: [head_dim], [heads, head_dim] or [heads * head_dim]
  const float* k_gain = nullptr;  ///< likewise, of kv_heads; each of the four null when the norm has none
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const std::int32_t* position = nullptr;  ///< [tokens]; not read when nothing turns
  const std::int64_t* kv_row = nullptr;    ///< [tokens]; null: row t for token t
  std::int64_t tokens = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t qkv_stride = 0;
  bool per_head_gain = false;  ///< QKWidth::head_own_weights
  bool all_heads = false;      ///< QKWidth::all_heads: statistics over all heads together
  bool norm_after_rope = false;
};
/// prepare_heads_backward: dqkv = the rotation turned back and the norm's backward of dq | dk, and dv; gradients of
/// gains and biases +=. Statistics are recomputed from qkv.
template <class T>
struct HeadsBackwardArgs {
  T* dqkv = nullptr;         ///< [tokens, (heads + 2 kv_heads) * head_dim], rows qkv_stride apart
  const T* dq = nullptr;     ///< [tokens, heads * head_dim]
  const T* dk = nullptr;     ///< [tokens, kv_heads * head_dim], row t for token t
  const T* dv = nullptr;     ///< likewise
  float* dq_gain = nullptr;  ///< as q_gain, and so on; +=
  float* dk_gain = nullptr;
  float* dq_bias = nullptr;
  float* dk_bias = nullptr;
  HeadsArgs<T> forward{};  ///< the forward's arguments (q, k, v are not read)
};

// --- attention ------------------------------------------------------------------------------------------------------

/// One sequence of a ragged batch, as attention sees it.
struct Segment {
  std::int64_t query_row = 0;  ///< its first row in q and o
  std::int64_t key_row = 0;    ///< the row of its key 0 (ring: of slot 0) in k and v
  int queries = 0;
  int keys = 0;            ///< keys 0 .. keys - 1 exist (older ones may be overwritten when a ring is shorter)
  int first_position = 0;  ///< position of its first query among the keys
  int ring = 0;            ///< key j lies in slot j % ring; 0: slot j
  MaskData mask{};
};

/// attend: o[q, h] = sum_j softmax_j(score(q.k_j)) v_j over the keys that the mask lets query q see; zeros, and a
/// log-sum-exp of -infinity, when there is none; rows of no segment are left alone. A NaN among a query's scores makes
/// its o and log-sum-exp NaN, and its gradients.
template <class T>
struct AttendArgs {
  T* o = nullptr;                     ///< [tokens, heads * head_dim]
  const T* q = nullptr;               ///< [tokens, heads * head_dim]
  const T* k = nullptr;               ///< [cache rows, kv_heads * head_dim]
  const T* v = nullptr;               ///< likewise
  float* lse = nullptr;               ///< [tokens, heads] log-sum-exp of the scores, kept for the backward, or null
  const Segment* segments = nullptr;  ///< [segment_count]
  const Segment* host_segments = nullptr;  ///< the same in host memory: how much work there is, known before it runs
  int segment_count = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t kv_stride = 0;  ///< elements between rows of k and v; 0: kv_heads * head_dim
};
/// attend_backward: with p_j = exp(score_j - lse) computed again, ds_j = p_j (do.v_j - do.o) and s'_j =
/// dscore_j/d(q.k_j): dq = sum_j ds_j s'_j k_j; summed over the queries of all heads that share k_j, dk_j = sum ds_j
/// s'_j q and dv_j = sum p_j do; dtable[row of key - query] += ds_j. Segments without rings, no two of which share
/// keys.
template <class T>
struct AttendBackwardArgs {
  T* dq = nullptr;          ///< [tokens, heads * head_dim]
  T* dk = nullptr;          ///< [key rows, kv_heads * head_dim], dense; keys of no segment are left alone
  T* dv = nullptr;          ///< likewise
  float* dtable = nullptr;  ///< [rows, heads] of a trained bias, += (null: not wanted)
  const T* d_o = nullptr;   ///< [tokens, heads * head_dim]
  AttendArgs<T> forward{};  ///< the forward's arguments with its o and lse
};
/// The same arguments with a head_dim that the type names too: a device may compile its kernels for it alone. To one
/// that does not, they are AttendArgs and AttendBackwardArgs.
template <class T, int head_dim>
struct AttendArgsOf : AttendArgs<T> {};
template <class T, int head_dim>
struct AttendBackwardArgsOf : AttendBackwardArgs<T> {};

// --- feed-forward ---------------------------------------------------------------------------------------------------

/// activate: y = f(x), or y = f(gate, up) with x = gate | up: f(gate) * up in the gated activations of
/// policy/activation.hpp.
template <class T>
struct ActivateArgs {
  T* y = nullptr;        ///< [rows, width]
  const T* x = nullptr;  ///< [rows, width or 2 width]
  std::int64_t rows = 0;
  int width = 0;
  std::int64_t x_stride = 0;
};
/// activate_backward: dx = dy f'(x), or dgate | dup = dy df/dgate | dy df/dup. dx may be x, with the same stride.
template <class T>
struct ActivateBackwardArgs {
  T* dx = nullptr;        ///< [rows, width or 2 width]
  const T* dy = nullptr;  ///< [rows, width]
  const T* x = nullptr;   ///< [rows, width or 2 width]
  std::int64_t rows = 0;
  int width = 0;
  std::int64_t x_stride = 0, dx_stride = 0;
};

// --- logits and loss ------------------------------------------------------------------------------------------------

/// shape_logits: y = softcap(factor * y), softcap(x) = cap tanh(x / cap) when cap > 0. In place.
struct ShapeLogitsArgs {
  float* y = nullptr;  ///< [count]
  std::int64_t count = 0;
  float factor = 1.f, cap = 0.f;
};

/// cross_entropy: per row, with z = shape(logits) in float: loss[r] = log Z - sum_c target_c z_c + z_loss (log Z)^2,
/// log Z = log sum exp z, target = (1 - smoothing) one_hot(label) + smoothing / vocab; 0 for ignored labels (label <
/// 0). With `gradient` it replaces the raw logits by gradient_scale * dloss[r]/dlogits.
template <class T>
struct CrossEntropyArgs {
  T* logits = nullptr;  ///< [rows, vocab], raw: before factor and cap; overwritten even without `gradient`
  const std::int32_t* labels = nullptr;  ///< [rows]; negative: ignored
  float* loss = nullptr;                 ///< [rows]
  std::int64_t rows = 0;
  int vocab = 0;
  float factor = 1.f, cap = 0.f;  ///< as in shape_logits
  float z_loss = 0.f, smoothing = 0.f;
  float gradient_scale = 1.f;
  bool gradient = false;
};

// --- the next token -------------------------------------------------------------------------------------------------

/// How a token is chosen from a row of logits: from softmax(logits / temperature), of the top_k likeliest tokens (0:
/// all), of the fewest tokens whose probabilities reach top_p (Holtzman et al. 2019, arXiv:1904.09751, section 3.1), in
/// this order. Temperature 0 takes the likeliest token. Of equals the lower id is the likelier one.
struct SampleRule {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   ///< the number of the draw: equal (seed, step), equal tokens from equal rows
  float temperature = 0.f;  ///< finite, 0 or more
  std::int32_t top_k = 0;   ///< 0 or more
  float top_p = 1.f;        ///< above 0, at most 1
};
/// What stands for the id where a row has none.
enum class NoToken : std::int32_t {
  not_a_number = -1,  ///< a logit is NaN
  infinite = -2,      ///< a logit is +infinity
  nothing = -3        ///< all logits are -infinity
};
/// sample_rows: ids[r] = the token that rules[r] chooses from logits[r], or a NoToken. The draw: of the tokens that are
/// kept, in the order of their ids, the first one whose likelihoods up to its own exceed uniform(seed, step) of all.
/// kernel/token_choice.hpp says how likelihoods are rounded; every device gives the same ids.
struct SampleArgs {
  std::int32_t* ids = nullptr;        ///< [rows]
  const float* logits = nullptr;      ///< [rows, vocab]
  const SampleRule* rules = nullptr;  ///< [rows]
  std::int64_t rows = 0;
  int vocab = 0;  ///< up to 2^23
};

// --- elementwise and optimizer --------------------------------------------------------------------------------------

/// add: y = a + b; y may be a or b.
template <class T>
struct AddArgs {
  T* y = nullptr;  ///< [count], and so are a and b
  const T* a = nullptr;
  const T* b = nullptr;
  std::int64_t count = 0;
};

/// adamw: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, w -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay w),
/// with g = gradient_scale * gradient. Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2 (decay as in PyTorch: lr
/// * decay).
struct AdamWArgs {
  float* weight = nullptr;          ///< [count], updated in place, as m and v are
  const float* gradient = nullptr;  ///< [count]
  float* m = nullptr;               ///< [count], zeros before the first step
  float* v = nullptr;               ///< [count], zeros before the first step
  std::int64_t count = 0;
  float learning_rate = 1e-3f, beta1 = .9f, beta2 = .999f, eps = 1e-8f, decay = 0.f;
  float gradient_scale = 1.f;
  int step = 1;  ///< t, from 1
};

/// sum_of_squares(on, x, count) returns sum x^2, accumulated in double, on the host; x: [count]. Waits for the device.
}  // namespace typeformer
