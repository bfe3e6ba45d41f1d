// The kernels of prepare_heads, instantiated for the tests.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "arrays.hpp"
#include "heads.hpp"

namespace user {

/// A norm of a user's own: tanh(x / 2), no statistics (Zhu et al. 2025, arXiv:2503.10622, eq. 1).
struct DynamicTanh {
  float slope = 0.5f;
  typeformer::Gain gain = typeformer::Gain::weight;
  bool bias = true;
  static constexpr bool centered = false;
  TYPEFORMER_HD float scale(float) const { return 1.f; }
  TYPEFORMER_HD float normalize(float x, float) const { return tanhf(slope * x); }
  TYPEFORMER_HD float normalize_backward(float d, float x, float, float, float) const {
    const float y = tanhf(slope * x);
    return d * (1.f - y * y) * slope;
  }
};

}  // namespace user

namespace heads {
namespace {

using namespace typeformer;
using support::Array;
using support::Number;

template <class T>
using Device = Buffer<cuda::Device, T>;

/// Arrays of one type in one piece of the device's memory, each at an aligned address plus the shift, with NaN between
/// them: many small arrays take the host layer long.
template <class T>
class Arrays {
 public:
  explicit Arrays(std::size_t shift) : shift_(shift) {}
  std::size_t add(const std::vector<double>& numbers) {
    numbers_.resize((numbers_.size() + 15) / 16 * 16 + 16 + shift_, NAN);
    starts_.push_back(numbers_.size());
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    ends_.push_back(numbers_.size());
    return starts_.size() - 1;
  }
  /// Filled with NaN.
  std::size_t add(std::size_t size) { return add(std::vector<double>(size, NAN)); }
  void upload(cuda::Device& on) {
    numbers_.resize(numbers_.size() + 16, NAN);
    array_.emplace(on, numbers_);
  }
  T* operator[](std::size_t i) { return array_->data() + starts_[i]; }
  /// The arrays as they are now. Throws when something was written between them.
  std::vector<std::vector<double>> download() const {
    auto numbers = array_->download();
    std::vector<std::vector<double>> result;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(starts_[i]),
                 to = numbers.begin() + static_cast<std::ptrdiff_t>(ends_[i]);
      result.emplace_back(from, to);
      std::fill(from, to, NAN);
    }
    for (const double between : numbers)
      if (!std::isnan(between)) throw std::out_of_range("heads: a kernel wrote between the arrays");
    return result;
  }

 private:
  std::size_t shift_;
  std::vector<double> numbers_;
  std::vector<std::size_t> starts_, ends_;
  std::optional<Array<T>> array_;
};

/// The rows of a dense matrix, `stride` apart, NaN between them.
std::vector<double> strided(const reference::Tensor<double>& dense, std::size_t stride) {
  std::vector<double> rows(dense.rows() * stride, NAN);
  for (std::size_t r = 0; r < dense.rows(); ++r)
    std::copy_n(dense.row(r), dense.columns(), rows.begin() + static_cast<std::ptrdiff_t>(r * stride));
  return rows;
}
/// Columns first .. first + count - 1.
std::vector<double> columns(const reference::Tensor<double>& from, std::size_t first, std::size_t count) {
  std::vector<double> result;
  for (std::size_t r = 0; r < from.rows(); ++r)
    result.insert(result.end(), from.row(r) + first, from.row(r) + first + count);
  return result;
}

template <class T, Pairs pairs, class Form>
Results run_form(const Form& form, const Case& c, const Inputs& in) {
  cuda::Device on;
  if (c.grid_limit) on.set_grid_limit(c.grid_limit);
  const std::size_t cache = c.cache_rows() * c.kv_width();
  Arrays<T> rows(c.shift);
  const auto qkv = rows.add(strided(in.qkv, c.stride())), q = rows.add(c.tokens * c.q_width()), k = rows.add(cache),
             v = rows.add(cache), dqkv = rows.add(c.tokens * c.stride()), dq = rows.add(columns(in.d, 0, c.q_width())),
             dk = rows.add(columns(in.d, c.q_width(), c.kv_width())),
             dv = rows.add(columns(in.d, c.q_width() + c.kv_width(), c.kv_width()));
  rows.upload(on);
  Arrays<float> channels(c.shift);
  const auto q_gain = channels.add(in.q_gain.data), k_gain = channels.add(in.k_gain.data),
             q_bias = channels.add(in.q_bias.data), k_bias = channels.add(in.k_bias.data),
             dq_gain = channels.add(in.q_before.data), dk_gain = channels.add(in.k_before.data),
             dq_bias = channels.add(in.q_before.data), dk_bias = channels.add(in.k_before.data);
  channels.upload(on);
  const Device<float> frequencies(on, std::span<const float>(in.frequencies));
  const Device<std::int32_t> position(on, std::span<const std::int32_t>(in.position));
  const Device<std::int64_t> kv_row(on, std::span<const std::int64_t>(in.kv_row));
  const bool normalized = !std::is_same_v<Form, NormForm<NoNorm, Gain::none, false>>;
  HeadsArgs<T> a;
  a.q = rows[q];
  a.k = rows[k];
  a.v = rows[v];
  a.qkv = rows[qkv];
  a.q_gain = Form::has_gain ? channels[q_gain] : nullptr;
  a.k_gain = Form::has_gain ? channels[k_gain] : nullptr;
  a.q_bias = Form::has_bias ? channels[q_bias] : nullptr;
  a.k_bias = Form::has_bias ? channels[k_bias] : nullptr;
  a.position = c.rotary_width ? position.data() : nullptr;
  a.kv_row = c.to_rows ? kv_row.data() : nullptr;
  a.tokens = static_cast<std::int64_t>(c.tokens);
  a.heads = static_cast<int>(c.heads);
  a.kv_heads = static_cast<int>(c.kv_heads);
  a.head_dim = static_cast<int>(c.head_dim);
  a.qkv_stride = c.gap ? static_cast<std::int64_t>(c.stride()) : 0;
  a.per_head_gain = c.width == Width::head_own_weights;
  a.all_heads = c.width == Width::all_heads;
  a.norm_after_rope = c.after;
  const Rotation<pairs> rotation{frequencies.data(), static_cast<int>(c.rotary_width), static_cast<float>(c.amplitude)};
  prepare_heads(on, form, rotation, a);
  HeadsBackwardArgs<T> b;
  b.dqkv = rows[dqkv];
  b.dq = rows[dq];
  b.dk = rows[dk];
  b.dv = rows[dv];
  if (normalized && c.gradients_wanted) {
    b.dq_gain = channels[dq_gain];
    b.dk_gain = channels[dk_gain];
    b.dq_bias = channels[dq_bias];
    b.dk_bias = channels[dk_bias];
  }
  b.forward = a;
  b.forward.q = b.forward.k = b.forward.v = nullptr;  // not read
  prepare_heads_backward(on, form, rotation, b);
  auto of_rows = rows.download(), of_channels = channels.download();
  return {of_rows[q],           of_rows[k],           of_rows[v],           of_rows[dqkv],
          of_channels[dq_gain], of_channels[dk_gain], of_channels[dq_bias], of_channels[dk_bias]};
}

template <auto Policy, Pairs pairs = Pairs::halves>
Results run_policy(Number number, const Case& c, const Inputs& in) {
  constexpr auto form = norm_form(fixed<Policy>);
  return number == Number::f32 ? run_form<float, pairs>(form, c, in) : run_form<bf16, pairs>(form, c, in);
}

inline constexpr RMSNorm rms{.eps = 1e-2f};
inline constexpr LayerNorm layer{.eps = 1e-2f};

}  // namespace

Results run(const std::string& kind, Number number, const Case& c, const Inputs& in) {
  if (c.adjacent) {
    if (kind == "none") return run_policy<NoNorm{}, Pairs::adjacent>(number, c, in);
    if (kind == "rms") return run_policy<rms, Pairs::adjacent>(number, c, in);
    if (kind == "layer") return run_policy<layer, Pairs::adjacent>(number, c, in);
    return run_policy<user::DynamicTanh{}, Pairs::adjacent>(number, c, in);
  }
  if (kind == "none") return run_policy<NoNorm{}>(number, c, in);
  if (kind == "rms") return run_policy<rms>(number, c, in);
  if (kind == "rms_one_plus") return run_policy<RMSNorm{.eps = 1e-2f, .gain = Gain::one_plus}>(number, c, in);
  if (kind == "rms_plain") return run_policy<RMSNorm{.eps = 1e-2f, .gain = Gain::none}>(number, c, in);
  if (kind == "layer") return run_policy<layer>(number, c, in);
  if (kind == "layer_plain")
    return run_policy<LayerNorm{.eps = 1e-2f, .gain = Gain::none, .bias = false}>(number, c, in);
  return run_policy<user::DynamicTanh{}>(number, c, in);
}

std::vector<double> turned_units(const std::vector<std::int32_t>& position, float frequency) {
  cuda::Device on;
  const std::size_t tokens = position.size();
  std::vector<double> units(tokens * 6, 0);
  for (std::size_t t = 0; t < tokens; ++t) units[6 * t] = 1;
  Array<float> qkv(on, units), q(on, tokens * 2), kv(on, tokens * 2), v(on, tokens * 2);
  const Device<float> frequencies(on, std::span<const float>(&frequency, 1));
  const Device<std::int32_t> positions(on, std::span<const std::int32_t>(position));
  HeadsArgs<float> a;
  a.q = q.data();
  a.k = kv.data();
  a.v = v.data();
  a.qkv = qkv.data();
  a.position = positions.data();
  a.tokens = static_cast<std::int64_t>(tokens);
  a.heads = a.kv_heads = 1;
  a.head_dim = 2;
  prepare_heads(on, norm_form(fixed<NoNorm{}>), Rotation<Pairs::halves>{frequencies.data(), 2, 1.f}, a);
  return q.download();
}

std::string complaint(const std::string& what) {
  cuda::Device on;
  Array<float> numbers(on, 64);
  HeadsBackwardArgs<float> b;
  HeadsArgs<float>& a = b.forward;
  a.q = a.k = a.v = numbers.data();
  a.qkv = numbers.data();
  a.q_gain = a.k_gain = numbers.data();
  a.tokens = what == "tokens" ? -1 : 1;
  a.heads = a.kv_heads = 1;
  a.head_dim = what == "head_dim" ? 257 : 4;
  if (what == "no head_dim") a.head_dim = 0;
  if (what == "heads") a.kv_heads = 0;
  if (what == "no heads") a.heads = 0;
  if (what == "stride") a.qkv_stride = 11;
  if (what == "width") a.heads = 1 << 30;
  const int width = what == "odd width" ? 3 : what == "large width" ? 6 : what == "negative width" ? -2 : 0;
  Rotation<Pairs::halves> rotation{nullptr, width, 1.f};
  const auto forward = [&] { prepare_heads(on, norm_form(fixed<RMSNorm{}>), rotation, a); };
  const auto centred = [&] { prepare_heads(on, norm_form(fixed<LayerNorm{}>), rotation, a); };
  const auto backward = [&] { prepare_heads_backward(on, norm_form(fixed<RMSNorm{}>), rotation, b); };
  if (what == "gain") return support::complaint_without(forward, a.q_gain, a.k_gain);
  if (what == "bias") return support::complaint_without(centred, a.q_bias, a.k_bias);
  if (what == "q") return support::complaint_without(forward, a.q, a.k, a.v);
  if (what == "qkv") return support::complaint_without(forward, a.qkv);
  if (what == "dqkv") return support::complaint_without(backward, b.dqkv, b.dq, b.dk, b.dv);
  if (what == "backward tokens") a.tokens = -1;
  if (what == "frequencies") {
    rotation.width = 4;
    return support::complaint_without(forward, rotation.frequencies, a.position);
  }
  return what == "backward tokens" ? support::complaint_of(backward) : support::complaint_of(forward);
}

void run_nothing() {
  cuda::Device on;
  HeadsBackwardArgs<bf16> b;
  b.forward.heads = b.forward.kv_heads = 1;
  b.forward.head_dim = 8;
  prepare_heads(on, norm_form(fixed<layer>), Rotation<Pairs::halves>{nullptr, 8, 1.f}, b.forward);
  prepare_heads_backward(on, norm_form(fixed<layer>), Rotation<Pairs::halves>{nullptr, 8, 1.f}, b);
  on.synchronize();
}

}  // namespace heads
