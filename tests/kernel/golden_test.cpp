// The CPU's operations against f64 goldens from PyTorch: an error of at most twice PyTorch's own in f32, plus a floor.
#include <filesystem>
#include <map>
#include <string>

#include "kernel/attention.hpp"
#include "reference/safetensors.hpp"

namespace {

using namespace kernel_test;
using Tensors = std::map<std::string, Numbers<double>>;

std::string folder() { return std::string(std::getenv("TYPEFORMER_GOLDEN")) + "/ops"; }

/// error.f32.NAME holds PyTorch's f32 error: largest, and norm over norm.
void check_golden(const Tensors& golden, const std::string& file, const std::string& name,
                  const std::vector<float>& ours, std::size_t terms) {
  const auto& exact = golden.at(name);
  double size = 0, error = 0;
  REQUIRE(ours.size() == exact.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    size += exact.data[i] * exact.data[i];
    error += (double{ours[i]} - exact.data[i]) * (double{ours[i]} - exact.data[i]);
  }
  const double of_torch = golden.at("error.f32." + name).data[1] * std::sqrt(size);
  const double floor = tolerance::f32_roundoff *
                       std::sqrt(static_cast<double>(terms) * static_cast<double>(ours.size())) * largest(exact);
  // written as F32: its rounding is in the golden values of attention
  CHECK_MESSAGE(std::sqrt(error) <= 2 * of_torch + floor, file, " ", name, ": error ", std::sqrt(error),
                ", PyTorch's in f32 ", of_torch, ", floor ", floor);
}

template <auto Norm>
void check_norm(const std::string& file) {
  const auto golden = reference::read_safetensors(folder() + "/" + file + ".safetensors");
  REQUIRE(golden.at("eps").data[0] == double{Norm.eps});
  const auto x = floats(golden.at("x")), dy = floats(golden.at("dy")), gain = floats(golden.at("weight"));
  const std::size_t rows = golden.at("x").rows(), width = golden.at("x").columns();
  const auto bias = Norm.bias ? floats(golden.at("bias")) : std::vector<float>(width);
  std::vector<float> y(x.size()), mean(rows), scale(rows), dx(x.size()), dgain(width), dbias(width);
  cpu::Device on(2);
  const auto form = norm_form(fixed<Norm>);
  const auto n = static_cast<std::int64_t>(rows);
  const int w = static_cast<int>(width);
  norm_rows(on, form,
            NormArgs<float>{.y = y.data(),
                            .x = x.data(),
                            .gain = gain.data(),
                            .bias = bias.data(),
                            .mean = mean.data(),
                            .scale = scale.data(),
                            .rows = n,
                            .width = w});
  norm_rows_backward(on, form,
                     NormBackwardArgs<float>{.dx = dx.data(),
                                             .dy = dy.data(),
                                             .x = x.data(),
                                             .gain = gain.data(),
                                             .mean = mean.data(),
                                             .scale = scale.data(),
                                             .dgain = dgain.data(),
                                             .dbias = dbias.data(),
                                             .rows = n,
                                             .width = w});
  check_golden(golden, file, "y", y, width);
  check_golden(golden, file, "dx", dx, width);
  check_golden(golden, file, "dweight", dgain, rows);
  if (Norm.bias) check_golden(golden, file, "dbias", dbias, rows);
}

void check_linear(const std::string& file) {
  const auto golden = reference::read_safetensors(folder() + "/" + file + ".safetensors");
  const auto x = floats(golden.at("x")), w = floats(golden.at("w")), dy = floats(golden.at("dy"));
  const bool biased = golden.count("bias") > 0;
  const auto bias = biased ? floats(golden.at("bias")) : std::vector<float>{};
  const std::size_t rows = golden.at("x").rows(), in = golden.at("x").columns(), out = golden.at("w").rows();
  std::vector<float> y(rows * out), dx(rows * in), dw(out * in), dbias(out);
  cpu::Device on(2);
  const auto n = static_cast<std::int64_t>(rows);
  linear(on, LinearArgs<float, float>{.y = y.data(),
                                      .x = x.data(),
                                      .w = w.data(),
                                      .bias = biased ? bias.data() : nullptr,
                                      .rows = n,
                                      .in = static_cast<int>(in),
                                      .out = static_cast<int>(out)});
  linear_backward(on, LinearBackwardArgs<float, float>{.dx = dx.data(),
                                                       .dw = dw.data(),
                                                       .dbias = dbias.data(),
                                                       .dy = dy.data(),
                                                       .x = x.data(),
                                                       .w = w.data(),
                                                       .rows = n,
                                                       .in = static_cast<int>(in),
                                                       .out = static_cast<int>(out)});
  check_golden(golden, file, "y", y, in);
  check_golden(golden, file, "dx", dx, out);
  check_golden(golden, file, "dw", dw, rows);
  if (biased) check_golden(golden, file, "dbias", dbias, rows);
}

/// q, k, v, do [rows, heads, head_dim] of a file as a case of one sequence.
struct GoldenAttention {
  std::string file;
  Tensors golden;
  AttentionCase c;

  explicit GoldenAttention(const std::string& name)
      : file(name), golden(reference::read_safetensors(folder() + "/" + name + ".safetensors")) {
    const auto& q = golden.at("q").shape;
    const auto& k = golden.at("k").shape;
    c.heads = q[1];
    c.kv_heads = k[1];
    c.head_dim = q[2];
    c.scale = golden.at("scale").data[0];
    if (golden.at("cap").data[0] > 0) c.cap = golden.at("cap").data[0];
    c.mask.window = static_cast<std::size_t>(golden.at("window").data[0]);
    c.mask.kind = c.mask.window                       ? reference::MaskKind::sliding
                  : golden.at("causal").data[0] == 1. ? reference::MaskKind::causal
                                                      : reference::MaskKind::bidirectional;
    c.pieces = {{.queries = q[0], .keys = k[0]}};
  }

  template <class Bias>
  void check(const Bias& bias) const {
    if (c.cap)
      check_score(ScoreForm<true, Bias>{static_cast<float>(c.scale), static_cast<float>(*c.cap), bias});
    else
      check_score(ScoreForm<false, Bias>{static_cast<float>(c.scale), 0.f, bias});
  }

 private:
  template <class Score>
  void check_score(const Score& score) const {
    if (c.mask.kind == reference::MaskKind::sliding)
      run(SlidingWindow{static_cast<int>(c.mask.window)}, score);
    else if (c.mask.kind == reference::MaskKind::causal)
      run(Causal{}, score);
    else
      run(Bidirectional{}, score);
  }
  template <class Mask, class Score>
  void run(const Mask& mask, const Score& score) const {
    AttentionData data(c, 1);
    data.flat_q = floats(golden.at("q"));
    data.flat_k = floats(golden.at("k"));
    data.flat_v = floats(golden.at("v"));
    data.flat_do = floats(golden.at("do"));
    if (golden.count("table")) data.flat_table = floats(golden.at("table"));
    cpu::Device on(2);
    const auto r = run_attention(on, mask, score, data, true);
    const std::size_t keys = c.pieces[0].keys, queries = c.pieces[0].queries, group = c.heads / c.kv_heads;
    check_golden(golden, file, "o", r.o, keys);
    check_golden(golden, file, "dq", r.dq, keys);
    check_golden(golden, file, "dk", r.dk, queries * group);
    check_golden(golden, file, "dv", r.dv, queries * group);
    if (golden.count("table")) check_golden(golden, file, "dtable", r.dtable, queries * keys);
    const auto& lse = golden.at("lse").data;
    for (std::size_t i = 0; i < lse.size(); ++i)
      CHECK(std::fabs(double{r.lse[i]} - lse[i]) <= 64 * tolerance::f32_roundoff * (1 + std::fabs(lse[i])));
  }
};

}  // namespace

TEST_CASE("norms") {
  check_norm<RMSNorm{.eps = .01f}>("norm_rms");
  check_norm<RMSNorm{.eps = .01f, .gain = Gain::one_plus}>("norm_rms_one");
  check_norm<LayerNorm{.eps = .01f}>("norm_layer");
}
TEST_CASE("linear") {
  for (const std::string file : {"linear", "linear_no_bias", "linear_odd"}) check_linear(file);
}
TEST_CASE("attention: every file of the folder") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().stem();
    if (!name.starts_with("attention_")) continue;
    ++files;
    GoldenAttention a(name);
    if (a.golden.count("slopes")) {
      a.check(FormulaBiasForm<ALiBi>{});
    } else if (a.golden.count("table")) {
      a.c.buckets = {8, 20, true};
      const auto rows = bucket_rows(a.c, 20);
      const auto table = floats(a.golden.at("table"));
      a.check(TableBiasForm{table.data(), rows.data(), 20});
    } else {
      a.check(NoBias{});
    }
  }
  CHECK(files == 12);
}
