// describe: counts by hand, costs against brute force and against what the passes really ask for, plans against the
// block diagram of each layout, remarks, and JSON that a parser of others reads.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/tiny_models.hpp"
#include "report/alias_cases.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/model/encoder_decoder.hpp"
#include "typeformer/typeformer.hpp"

namespace tf = typeformer;
using tf::PlannedOperation;

namespace {

/// Matrix products of a stack's layers, head or source as its plan has them: elements of all matrices.
struct Elements {
  std::int64_t layers = 0, head = 0, source = 0;
};
Elements products(const std::vector<tf::PlannedStep>& plan, const std::string& stack) {
  Elements e;
  for (const auto& step : plan) {
    if (step.stack != stack) continue;
    for (const auto& o : step.operations) {
      const std::int64_t elements = std::int64_t{o.in} * o.out;
      const bool of_source = !o.does.empty() && o.does.back() == "of the encoder's output, once per source";
      if (step.what == "head")
        e.head += elements;
      else
        (of_source ? e.source : e.layers) += elements * static_cast<std::int64_t>(step.layers.size());
    }
  }
  return e;
}
std::vector<std::string> operations(const tf::PlannedStep& step) {
  std::vector<std::string> names;
  for (const auto& o : step.operations) names.push_back(o.operation);
  return names;
}

}  // namespace

TEST_CASE("SmolLM2-135M by hand") {
  using M = tf::SmolLM2_135M;
  // Per layer: q and output 576 x 576, k and v 192 x 576, gate, up and down 1536 x 576.
  constexpr std::int64_t layer = 2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576;
  const tf::StackCosts c = tf::costs<M>();
  CHECK(c.context == 8192);
  CHECK(c.layer_matrices == 30 * layer);
  CHECK(c.head_matrix == 49152 * 576);
  CHECK(c.weight_bytes == 4 * std::int64_t{134'515'008});
  CHECK(c.kv_bytes_per_token == 30 * 2 * 3 * 64 * 4);
  CHECK(c.kv_bytes_held == 8192 * std::int64_t{46'080});
  CHECK(c.decode_attention == 30. * 4 * 576 * 8192);
  CHECK(c.prefill_attention == 30. * 4 * 576 * (8192. * 8193 / 2));
  CHECK(c.decode_flops() == 2. * 134'479'872 + 566'231'040);
  CHECK(c.decode_intensity() == doctest::Approx(835'190'784. / (538'060'032. + 377'487'360. + 46'080.)));
  CHECK(c.prefill_intensity() ==
        doctest::Approx((2. * 8192 * 30 * layer + 2. * 49152 * 576 + 30. * 4 * 576 * (8192. * 8193 / 2)) /
                        (538'060'032. + 377'487'360.)));
  CHECK(c.training_flops() == doctest::Approx(3. * (2. * 134'479'872 * 8192 + c.prefill_attention)));

  const tf::StackCosts half = tf::costs<M>({.context = 1000, .weight_bytes = 2, .cache_bytes = 1});
  CHECK(half.weight_bytes == 2 * std::int64_t{134'479'872} + 4 * 61 * 576);  // norms stay float
  CHECK(half.kv_bytes_held == 1000 * 30 * 2 * 192);

  // x, h1, q | k | v, q, attended, h2, gate | up, activated: 6 d_model + 2 kv_width + 3 d_ff; x after the final norm
  CHECK(half.pass_tokens == 512);
  CHECK(half.pass_memory == 512 * 4 * (7 * 576 + 2 * 192 + 3 * 1536) + 4 * (576 + 49152));
  CHECK(tf::costs<M>({.context = 1000, .activation_bytes = 2}).pass_memory ==
        512 * 2 * (7 * 576 + 2 * 192 + 3 * 1536) + 2 * 576 + 4 * 49152);

  CHECK_THROWS_WITH(tf::costs<M>({.activation_bytes = 3}), "costs: activation_bytes: expected 2 or 4, got 3");
  CHECK_THROWS_WITH(tf::costs<M>({.context = -5}), "costs: context: expected 0 or more, got -5");
  CHECK_THROWS_WITH(tf::costs<M>({.chunk = 0}), "costs: chunk: expected 1 or more, got 0");
  CHECK_THROWS_WITH(tf::costs<M>({.loss_logits = 0}), "costs: loss_logits: expected 1 or more, got 0");
  CHECK_THROWS_WITH(tf::costs<M>({.weight_bytes = -4}), "costs: weight_bytes: expected 1 or more, got -4");
  CHECK_THROWS_WITH(tf::costs<M>({.cache_bytes = 0}), "costs: cache_bytes: expected 1 or more, got 0");

  const std::string text = tf::describe<M>();
  for (const char* wanted : {"SmolLM2-135M: 134,515,008 parameters", "attn.q_proj.weight", "layers 0..29", "[192, 576]",
                             "46,080 bytes per token", "377,487,360 at full context", "835,190,784 FLOPs per token",
                             "using SmolLM2_135M = Transformer<"})
    CHECK_MESSAGE(text.find(wanted) != std::string::npos, wanted);
  CHECK(text.find("Remarks") == std::string::npos);
}

TEST_CASE("attention's keys are those that the masks let through, and the cache is the one that a state makes") {
  tf::cpu::Device device(1);
  const auto check = [&]<class M>(std::type_identity<M>) {
    for (const int n : {1, 2, 5, 12, 64}) {
      const tf::StackCosts c = tf::costs<M>({.context = n, .chunk = 3});
      double all = 0, last = 0;
      for (int layer = 0; layer < M::dims.n_layers; ++layer)
        tf::detail::with_layer<M>(layer, [&]<class L, int>() {
          for (int query = 0; query < n; ++query)
            for (int key = 0; key < n; ++key) {
              const double flops = L::mask.sees(query, key, {}) ? 4. * L::q_width : 0.;
              all += flops;
              if (query == n - 1) last += flops;
            }
        });
      CHECK(c.prefill_attention == all);
      CHECK(c.decode_attention == last);
      const tf::Model<M, tf::cpu::Device> model(device);
      CHECK(c.kv_bytes_held == static_cast<std::int64_t>(tf::State(model, {.capacity = n, .chunk = 3}).bytes()));
    }
  };
  check(std::type_identity<tiny::Gemma3>{});
  check(std::type_identity<tiny::Llama>{});
  check(std::type_identity<tiny::Llama::with<tf::Chunked{5}>>{});
  check(std::type_identity<tiny::Llama::with<tf::Bidirectional{}>>{});
  CHECK(tf::costs<tiny::Gemma3>().ring_layers == 6);
}

TEST_CASE("matrix elements by formula are those of the products that the passes make") {
  alias_cases::for_each(alias_cases::Few{}, []<class M>(int) {
    CAPTURE(std::string(M::name));
    const auto plan = tf::fusion_plan<M>();
    const auto check = [&](const tf::StackCosts& c, const std::string& stack) {
      const Elements e = products(plan, stack);
      CHECK(c.layer_matrices == e.layers);
      CHECK(c.head_matrix == e.head);
      CHECK(c.source_matrices == e.source);
    };
    if constexpr (tf::EncoderDecoderComposition<M>) {
      check(tf::encoder_costs<M>({.context = 4}), "encoder.");
      check(tf::decoder_costs<M>({.context = 4}), "decoder.");
      // What both stacks and the source's keys and values pass through is every matrix but the embeddings.
      const Elements encoder = products(plan, "encoder."), decoder = products(plan, "decoder.");
      CHECK((encoder.source == 0 && decoder.source > 0));
    } else {
      check(tf::costs<M>({.context = 4}), "");
    }
  });
}

TEST_CASE("an encoder-decoder's costs by hand") {
  using M = tiny::T5;  // d_model 32, heads 4 of 12, d_ff 56, encoder 2 and decoder 3 layers, vocabulary 89
  const auto encoder = tf::encoder_costs<M>({.context = 10}), decoder = tf::decoder_costs<M>({.context = 10});
  CHECK(encoder.layer_matrices == 2 * (4 * 32 * 48 + 2 * 32 * 56));
  CHECK((encoder.head_matrix == 0 && encoder.kv_bytes_per_token == 0));
  CHECK(encoder.prefill_attention == 2. * 4 * 48 * 10 * 10);
  CHECK(decoder.layer_matrices == 3 * (6 * 32 * 48 + 2 * 32 * 56));
  CHECK(decoder.source_matrices == 3 * 2 * 32 * 48);
  CHECK(decoder.prefill_attention == 3. * 4 * 48 * (10 * 11 / 2 + 10 * 10));
  CHECK(decoder.decode_attention == 3. * 4 * 48 * (10 + 10));
  CHECK(decoder.source_kv_bytes_per_token == 3 * 2 * 48 * 4);
  // Every weight but the encoder's and those of the source's keys and values; norms: three per layer and one.
  CHECK(decoder.weight_bytes == 4 * (decoder.layer_matrices + 89 * 32 + 8 * 4 + 10 * 32));
  CHECK(encoder.weight_bytes == 4 * (encoder.layer_matrices + 8 * 4 + 5 * 32));
  CHECK(decoder.kv_bytes_read == 3 * 2 * 48 * 4 * (10 + 10));
}

TEST_CASE("the plan is the block diagram of each layout") {
  using Names = std::vector<std::string>;
  using alias_cases::Base;
  const auto layer_of = []<class M>(std::type_identity<M>) { return tf::fusion_plan<M>().at(1); };
  const auto pre = layer_of(std::type_identity<Base>{});
  CHECK(operations(pre) ==
        Names{"norm_rows", "linear", "prepare_heads", "attend", "linear", "norm_rows", "linear", "activate", "linear"});
  CHECK(pre.operations[4] == PlannedOperation{"linear", {"attn.output_proj.weight"}, {"+ residual"}, 24, 24});
  CHECK(pre.operations[1].reads == Names{"attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight"});

  const auto post = layer_of(std::type_identity<Base::with<tf::PostNorm{}>>{});
  CHECK(operations(post) ==
        Names{"linear", "prepare_heads", "attend", "linear", "norm_rows", "linear", "activate", "linear", "norm_rows"});
  CHECK(post.operations[3].does == Names{"+ residual"});

  const auto both = layer_of(std::type_identity<Base::with<tf::DoubleNorm{}>>{});
  CHECK(operations(both) == Names{"norm_rows", "linear", "prepare_heads", "attend", "linear", "norm_rows", "norm_rows",
                                  "linear", "activate", "linear", "norm_rows"});
  CHECK(both.operations[4].does.empty());
  CHECK(both.operations[5] == PlannedOperation{"norm_rows", {"ln1_post.weight"}, {"RMSNorm, gain w", "+ residual"}});

  const auto one = layer_of(std::type_identity<Base::with<tf::Parallel{}>>{});
  CHECK(operations(one) == Names{"norm_rows", "linear", "prepare_heads", "attend", "linear", "activate", "linear"});
  CHECK(one.operations[1].does == Names{"5 matrices as one"});
  CHECK(one.operations[1].out == 3 * 24 + 2 * 40);
  const auto biased = layer_of(std::type_identity<Base::with<tf::Parallel{}>::with<tf::Biases{}>>{});
  CHECK(operations(biased) == operations(one));
  CHECK(biased.operations[1].does == Names{"5 matrices as one", "+ bias"});
  CHECK(biased.operations[1].reads == Names{"attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight",
                                            "ffn.gate_proj.weight", "ffn.up_proj.weight", "attn.q_proj.bias",
                                            "attn.k_proj.bias", "attn.v_proj.bias", "ffn.gate_proj.bias",
                                            "ffn.up_proj.bias"});
  const auto some = layer_of(std::type_identity<Base::with<tf::Parallel{}>::with<tf::Biases{.qkv = false}>>{});
  CHECK(operations(some) ==
        Names{"norm_rows", "linear", "linear", "prepare_heads", "attend", "linear", "activate", "linear"});
  CHECK(some.operations[2].reads ==
        Names{"ffn.gate_proj.weight", "ffn.up_proj.weight", "ffn.gate_proj.bias", "ffn.up_proj.bias"});

  const auto gemma = tf::fusion_plan<tiny::Gemma3>();
  REQUIRE(gemma.size() == 5);  // embedding, two kinds of layers, final norm, head
  CHECK(gemma[0].operations[0].does == Names{"factor 5.656854"});
  CHECK(gemma[1].layers == std::vector{0, 1, 2, 3, 4, 6});
  CHECK(gemma[2].layers == std::vector{5});
  CHECK(gemma[1].operations[2].does == Names{"splits q, k, v", "RMSNorm, gain 1 + w of q and k",
                                             "RoPE of 16 of 16 channels, pairs halves", "writes k and v to the cache"});
  CHECK(gemma[1].operations[3].does[1] == "SlidingWindow mask of 5 keys");
  CHECK(operations(gemma[4]) == Names{"linear", "shape_logits"});
}

namespace user {

/// Float only, so that no lanes can run it.
struct Softplus {
  static constexpr bool gated = false;
  float operator()(float x) const { return x > 20.f ? x : std::log1p(std::exp(x)); }
  float derivative(float x) const { return 1.f / (1.f + std::exp(-x)); }
};
struct FloatNorm {
  tf::Gain gain = tf::Gain::weight;
  bool bias = false;
  static constexpr bool centered = false;
  float scale(float) const { return 1.f; }
  float normalize(float x, float) const { return x; }
  float normalize_backward(float d, float, float, float, float) const { return d; }
};
struct Odd {
  bool sees(int query, int key, const tf::MaskData&) const { return (query - key) % 2 == 0 && key <= query; }
};

}  // namespace user

TEST_CASE("remarks tell what runs slower than it could, and nothing of the library's own policies") {
  alias_cases::for_each(alias_cases::All{}, []<class M>(int) {
    CAPTURE(std::string(M::name));
    std::vector<std::string> remarks;
    if constexpr (tf::EncoderDecoderComposition<M>) {
      tf::detail::add_remarks<typename M::Encoder>(remarks, *tf::architecture_of<M>().encoder);
      tf::detail::add_remarks<typename M::Decoder>(remarks, tf::architecture_of<M>().stack);
    } else {
      tf::detail::add_remarks<M>(remarks, tf::architecture_of<M>().stack);
    }
    CHECK(remarks.empty());
  });
  using Own =
      alias_cases::With<user::FloatNorm{}, user::Softplus{}, user::Odd{}, tf::LocalLayers<tf::ReLU{}, tf::Causal{}>{}>;
  const std::vector<std::string> expected{
      "FloatNorm takes float only: its formula runs value by value, not in vector lanes.",
      "Softplus takes float only: its formula runs value by value, not in vector lanes.",
      "Odd has no span: it is right, but no key is skipped."};
  const auto remarks = tf::description_of<Own>().remarks;
  for (const std::string& remark : expected)
    CHECK_MESSAGE(std::count(remarks.begin(), remarks.end(), remark) == 1, remark);
  REQUIRE(remarks.size() == 4);
  CHECK(remarks[3].starts_with("the alias above leaves out what LocalLayers<"));
  CHECK(tf::describe<Own>().find("Remarks\n  FloatNorm takes") != std::string::npos);
  // Without a span every key is computed, seen or not.
  CHECK(tf::costs<alias_cases::With<user::Odd{}>>({.context = 10}).prefill_attention == 6. * 4 * 24 * 10 * 10);
}

TEST_CASE("JSON is JSON, and says the same") {
  using Named = alias_cases::With<tf::Name{"a \"name\"\twith \\ and \xC3\xA9"}>;
  const auto named = nlohmann::json::parse(tf::describe_json<Named>());
  CHECK(named["name"].get<std::string>() == "a \"name\"\twith \\ and \xC3\xA9");
  const auto json = nlohmann::json::parse(tf::describe_json<tf::SmolLM2_135M>());
  CHECK(json["parameters"] == 134'515'008);
  std::int64_t sum = 0;
  for (const auto& tensor : json["tensors"]) sum += tensor["count"].get<std::int64_t>();
  CHECK(sum == 134'515'008);
  CHECK(json["costs"][0]["kv_bytes_per_token"] == 46'080);
  CHECK(json["costs"][0]["decode_flops"] == 835'190'784);
  CHECK(json["plan"][1]["layers"].size() == 30);
  CHECK(json["plan"][1]["operations"][1]["out"] == 960);
  CHECK(json["ratios"][0]["value"].get<double>() == doctest::Approx(1536. / 576));
  CHECK(json["ratios"][0]["common"] == true);
  CHECK(json["alias"].get<std::string>().starts_with("using SmolLM2_135M = Transformer<\n"));
  for (const auto& costs : nlohmann::json::parse(tf::describe_json<tiny::T5>())["costs"])
    CHECK((costs["stack"] == "encoder" || costs["stack"] == "decoder"));
}

TEST_CASE("every parameter is in the table once") {
  alias_cases::for_each(alias_cases::All{}, []<class M>(int) {
    std::int64_t sum = 0;
    for (const auto& group : tf::detail::parameter_groups<M>()) sum += group.count();
    CHECK(sum == M::parameter_count);
  });
}

TEST_CASE("any name makes an alias that is an identifier and no keyword") {
  CHECK(tf::alias_name("SmolLM2-135M") == "SmolLM2_135M");
  CHECK(tf::alias_name("7B") == "Model_7B");
  CHECK(tf::alias_name("int") == "Int");
  CHECK(tf::alias_name("char16_t") == "Char16_t");
  CHECK(tf::alias_name("_private") == "Mprivate");
  CHECK(tf::alias_name("") == "MyModel");
  CHECK(tf::alias_name("Model") == "MyModel");
}
