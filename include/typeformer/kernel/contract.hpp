/// The contract between the model and a device: every operation once, forward then backward, as the struct of its
/// arguments.
///
/// An operation is a free function whose first argument is the device, found by argument-dependent lookup:
/// `norm_rows(on, norm_form(fixed<RMSNorm{}>), NormArgs<float>{...})`. All matrices are row-major, "[rows, width]",
/// rows `stride` elements apart (0: width). T is the type of activations, W of weights; sums are in float, gradients
/// are float. Unless said otherwise an output is assigned (=), gradients of parameters are accumulated (+=; null: not
/// wanted), and pointers do not alias. Operations may be asynchronous on the device's stream; their arguments are
/// checked by the model before the first runs.
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

/// gather_rows: y[t] = scale * table[index[t] + offset] (+ y[t] when `accumulate`).
template <class T, class W>
struct GatherArgs {
  T* y = nullptr;                       ///< [tokens, width]
  const W* table = nullptr;             ///< [rows, width]
  const std::int32_t* index = nullptr;  ///< [tokens]
  std::int64_t tokens = 0;
  int width = 0;
  int offset = 0;
  float scale = 1.f;
  bool accumulate = false;
};
/// gather_rows_backward: dtable[index[t] + offset] += scale * dy[t], in the order of t.
template <class T>
struct GatherBackwardArgs {
  float* dtable = nullptr;
  const T* dy = nullptr;
  const std::int32_t* index = nullptr;
  std::int64_t tokens = 0;
  int width = 0;
  int offset = 0;
  float scale = 1.f;
};

// --- norms ----------------------------------------------------------------------------------------------------------

/// norm_rows: y = gain * normalize(x - mean?, scale) + bias (+ residual), row by row. policy/norm.hpp has the formulas.
template <class T>
struct NormArgs {
  T* y = nullptr;               ///< [rows, width]; may be x or residual
  const T* x = nullptr;         ///< [rows, width]
  const T* residual = nullptr;  ///< [rows, width] added to the result, or null
  const float* gain = nullptr;  ///< [width]
  const float* bias = nullptr;  ///< [width]
  float* mean = nullptr;        ///< [rows] kept for the backward (centred norms), or null
  float* scale = nullptr;       ///< [rows] kept for the backward, or null
  std::int64_t rows = 0;
  int width = 0;
};
/// norm_rows_backward: dx from dy. The gradient of `residual` is dy itself.
template <class T>
struct NormBackwardArgs {
  T* dx = nullptr;  ///< [rows, width]; may be dy
  const T* dy = nullptr;
  const T* x = nullptr;
  const float* gain = nullptr;
  const float* mean = nullptr;   ///< as kept
  const float* scale = nullptr;  ///< as kept
  float* dgain = nullptr;        ///< [width], +=
  float* dbias = nullptr;        ///< [width], +=
  std::int64_t rows = 0;
  int width = 0;
  bool accumulate = false;  ///< dx += instead of =
};

// --- matrix products ------------------------------------------------------------------------------------------------

/// linear: y[r, o] = sum_i x[r, i] w[o, i] + bias[o] (+ residual[r, o]).
template <class T, class W>
struct LinearArgs {
  T* y = nullptr;               ///< [rows, out]; may be residual
  const T* x = nullptr;         ///< [rows, in]
  const W* w = nullptr;         ///< [out, in]
  const float* bias = nullptr;  ///< [out] or null
  const T* residual = nullptr;  ///< [rows, out], dense, or null
  std::int64_t rows = 0;
  int in = 0, out = 0;
  std::int64_t x_stride = 0, y_stride = 0;
};
/// linear_backward: dx = dy w (+=: `accumulate`), dw += dy^T x, dbias += sum_r dy. Each output may be null.
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
  bool accumulate = false;
};

// --- query, key and value after their projection --------------------------------------------------------------------

/// How RoPE turns a head; `pairs` selects code, so it is part of the type. Width 0: nothing turns.
template <Pairs kind>
struct Rotation {
  static constexpr Pairs pairs = kind;
  const float* frequencies = nullptr;  ///< [width / 2] radians per position
  int width = 0;                       ///< leading channels of a head that turn
  float amplitude = 1.f;               ///< factor of cos and sin
};

/// prepare_heads: splits qkv, normalises q and k (form `norm`, see QKNorm), rotates them, writes q, and k and v to the
/// rows of the cache given by kv_row. Order: norm, RoPE; or RoPE, norm with `norm_after_rope`.
template <class T>
struct HeadsArgs {
  T* q = nullptr;                 ///< [tokens, heads * head_dim]
  T* k = nullptr;                 ///< [cache rows, kv_heads * head_dim]
  T* v = nullptr;                 ///< [cache rows, kv_heads * head_dim]
  const T* qkv = nullptr;         ///< [tokens, (heads + 2 kv_heads) * head_dim]: q | k | v
  const float* q_gain = nullptr;  ///< as q_norm's width says: [head_dim], [heads, head_dim] or [heads * head_dim]
  const float* k_gain = nullptr;
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const std::int32_t* position = nullptr;  ///< [tokens]
  const std::int64_t* kv_row = nullptr;    ///< [tokens]; null: row t for token t
  std::int64_t tokens = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t qkv_stride = 0;
  bool per_head_gain = false;  ///< QKWidth::head_own_weights
  bool all_heads = false;      ///< QKWidth::all_heads: statistics over all heads together
  bool norm_after_rope = false;
};
/// prepare_heads_backward: dqkv from dq, dk, dv; statistics are recomputed from qkv.
template <class T>
struct HeadsBackwardArgs {
  T* dqkv = nullptr;      ///< [tokens, qkv_stride]
  const T* dq = nullptr;  ///< [tokens, heads * head_dim]
  const T* dk = nullptr;  ///< [tokens, kv_heads * head_dim]
  const T* dv = nullptr;
  float* dq_gain = nullptr;
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
/// log-sum-exp of -infinity, when there is none. A NaN among a query's scores makes its o and log-sum-exp NaN, and its
/// gradients.
template <class T>
struct AttendArgs {
  T* o = nullptr;        ///< [tokens, heads * head_dim]
  const T* q = nullptr;  ///< [tokens, heads * head_dim]
  const T* k = nullptr;  ///< [cache rows, kv_heads * head_dim]
  const T* v = nullptr;
  float* lse = nullptr;               ///< [tokens, heads] log-sum-exp of the scores, kept for the backward, or null
  const Segment* segments = nullptr;  ///< [segment_count], in host memory
  int segment_count = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t kv_stride = 0;  ///< elements between rows of k and v; 0: kv_heads * head_dim
};
/// attend_backward: dq, dk, dv from do by recomputing the scores; segments without rings, no two of which share keys.
template <class T>
struct AttendBackwardArgs {
  T* dq = nullptr;  ///< [tokens, heads * head_dim]
  T* dk = nullptr;  ///< [key rows, kv_heads * head_dim], dense; keys of no segment are left alone
  T* dv = nullptr;
  float* dtable = nullptr;  ///< [rows, heads] of a trained bias, += (null: not wanted)
  const T* d_o = nullptr;   ///< [tokens, heads * head_dim]
  AttendArgs<T> forward{};  ///< the forward's arguments with its o and lse
};

// --- feed-forward ---------------------------------------------------------------------------------------------------

/// activate: y = f(up), or y = f(gate) * up with x = gate | up.
template <class T>
struct ActivateArgs {
  T* y = nullptr;        ///< [rows, width]
  const T* x = nullptr;  ///< [rows, width or 2 width]
  std::int64_t rows = 0;
  int width = 0;
  std::int64_t x_stride = 0;
};
/// activate_backward: dx from dy; dx may be x.
template <class T>
struct ActivateBackwardArgs {
  T* dx = nullptr;        ///< [rows, width or 2 width]
  const T* dy = nullptr;  ///< [rows, width]
  const T* x = nullptr;
  std::int64_t rows = 0;
  int width = 0;
  std::int64_t x_stride = 0, dx_stride = 0;
};

// --- logits and loss ------------------------------------------------------------------------------------------------

/// shape_logits: y = softcap(factor * y), softcap(x) = cap tanh(x / cap) when cap > 0. In place.
struct ShapeLogitsArgs {
  float* y = nullptr;
  std::int64_t count = 0;
  float factor = 1.f, cap = 0.f;
};

/// cross_entropy: per row, with z = shape(logits): loss[r] = log Z - sum_c target_c z_c + z_loss (log Z)^2, log Z = log
/// sum exp z, target = (1 - smoothing) one_hot(label) + smoothing / vocab; 0 for ignored labels (label < 0). With
/// `gradient` it replaces the raw logits by gradient_scale * dloss[r]/dlogits.
struct CrossEntropyArgs {
  float* logits = nullptr;               ///< [rows, vocab], raw: before factor and cap
  const std::int32_t* labels = nullptr;  ///< [rows]; negative: ignored
  float* loss = nullptr;                 ///< [rows]
  std::int64_t rows = 0;
  int vocab = 0;
  float factor = 1.f, cap = 0.f;  ///< as in shape_logits
  float z_loss = 0.f, smoothing = 0.f;
  float gradient_scale = 1.f;
  bool gradient = false;
};

// --- elementwise and optimiser --------------------------------------------------------------------------------------

/// add: y = a + b; y may be a or b.
template <class T>
struct AddArgs {
  T* y = nullptr;
  const T* a = nullptr;
  const T* b = nullptr;
  std::int64_t count = 0;
};

/// adamw: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, w -= lr (m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay w),
/// with g = gradient_scale * gradient. Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2 (decay as in PyTorch: lr
/// * decay).
struct AdamWArgs {
  float* weight = nullptr;
  const float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  std::int64_t count = 0;
  float learning_rate = 1e-3f, beta1 = .9f, beta2 = .999f, eps = 1e-8f, decay = 0.f;
  float gradient_scale = 1.f;
  int step = 1;  ///< t, from 1
};

/// sum_of_squares(on, x, count) returns sum x^2, accumulated in double, on the host.
}  // namespace typeformer
