// load: every spelling and container of a checkpoint gives the same weights, bit for bit, and HuggingFace's logits.
#include <set>

#include "io/load_files.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace load_files;

cpu::Device& device() {
  static cpu::Device on(2);
  return on;
}

/// The checkpoint as it is: weights and logits.
template <class M>
void check_golden(const std::string& name) {
  const Checkpoint checkpoint(name);
  LoadReport report;
  const auto model = load<M>(device(), harness::golden_folder(name), {.report = &report});
  CHECK(differing(model, checkpoint) == 0);
  CHECK(report.tensors_used.size() == checkpoint.tensors.size());
  CHECK(report.tensors_ignored.empty());
  CHECK(report.tensor_types == std::vector<std::string>{"F32"});
  CHECK(report.parameters == M::parameter_count);
  CHECK(report.fields_read.size() + report.fields_ignored.size() ==
        static_cast<std::size_t>(std::count_if(checkpoint.config.begin(), checkpoint.config.end(),
                                               [](const Json& value) { return !value.is_null(); })));
  const auto golden = reference::load_golden(harness::golden_folder(name));
  const auto in = harness::inputs_of(golden.batch);
  const auto results = harness::run(model, in);
  for (const auto& [key, expected] : golden.expected)
    if (key.starts_with("logits.")) {
      const auto verdict = tolerance::below_ceiling(key, expected.data, results.at(key));
      CHECK_MESSAGE(verdict.ok, verdict.message);
    }
}

/// The same network spelled as the hub does, in shards, and as one file beside its config.
template <class M>
void check_folders(const std::string& name) {
  Checkpoint checkpoint(name);
  const Folder folder, hub, shards;
  checkpoint.write(folder);
  CHECK(differing(load<M>(device(), folder / "model.safetensors"), checkpoint) == 0);
  checkpoint.write_shards(shards, 3);
  CHECK(differing(load<M>(device(), shards.path()), checkpoint) == 0);
  checkpoint.config = hub_style(checkpoint.config);
  checkpoint.write(hub);
  CHECK(differing(load<M>(device(), hub.path()), checkpoint) == 0);
}

/// Weights stored or kept in fewer bits.
template <class M>
void check_precisions(const std::string& name) {
  Checkpoint checkpoint(name);
  const auto small = load<M, bf16>(device(), harness::golden_folder(name));
  static_assert(std::is_same_v<typename decltype(small)::Architecture, M>);
  CHECK(differing(small, checkpoint) == 0);
  CHECK(differing(load<M, f16>(device(), harness::golden_folder(name)), checkpoint) == 0);
  for (const auto& [dtype, format] : {std::pair{"BF16", Format::bf16}, std::pair{"F16", Format::f16}}) {
    const Folder folder;
    checkpoint.write(folder, dtype);
    Checkpoint rounded(name);
    for (auto& [tensor, numbers] : rounded.tensors) numbers = stored_as(numbers, format);
    CHECK(differing(load<M>(device(), folder.path()), rounded) == 0);
    CHECK(differing(load<M, bf16>(device(), folder.path()), rounded) == 0);
  }
}

/// GGUF against the folder that holds the same numbers.
template <class M>
void check_gguf(const std::string& name, const Json& config) {
  const std::int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  const int length = 11;
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::q8_0}) {
    CAPTURE(static_cast<int>(format));
    Checkpoint checkpoint(name);
    checkpoint.config = config;
    const GgufCheckpoint gguf(checkpoint, format);
    const Folder folder;
    checkpoint.write(folder);
    container_files::write(folder / "tiny.gguf", gguf.bytes());
    LoadReport report;
    const auto from_gguf = load<M>(device(), folder / "tiny.gguf", {.report = &report});
    const auto from_folder = load<M>(device(), folder.path());
    CHECK(differing(from_gguf, checkpoint) == 0);
    CHECK(forward(from_gguf, Batch{ids, std::span(&length, 1)}).values ==
          forward(from_folder, Batch{ids, std::span(&length, 1)}).values);
    std::set<Format> formats;
    for (const auto& [tensor, entry] : gguf.tensors) formats.insert(entry.format);
    CHECK(report.tensor_types.size() == formats.size());
    CHECK(report.fields_ignored ==
          std::vector<std::string>{"general.architecture", "general.name", "tokenizer.ggml.model"});
    CHECK(differing(load<M, bf16>(device(), folder / "tiny.gguf"), checkpoint) == 0);
  }
}

/// Llama without stretched RoPE and without biases, as the GGUF of the architecture can say it.
using PlainLlamaTied = tiny::LlamaTied::with<RoPE{.theta = 1000.f}>;
/// Gemma 3 with what a GGUF leaves to the architecture's name: the local base, and a scale of 1 / sqrt(head_dim).
using UsualGemma3 = tiny::Gemma3::with<GQA{.heads = 4, .kv_heads = 2, .head_dim = 16}>::with<
    LocalLayers<SlidingWindow{5}, RoPE{.theta = 1e4f}>{.period = 6, .locals = 5}>;

}  // namespace

TEST_CASE("the golden folders: weights bit for bit, HuggingFace's logits, a full report") {
  check_golden<tiny::Llama>("llama");
  check_golden<tiny::LlamaTied>("llama_tied");
  check_golden<tiny::Gemma3>("gemma3");
  check_golden<tiny::T5>("t5");
  check_golden<tiny::T5Gated>("t5_gated");
}
TEST_CASE("one file, shards, and the hub's spelling of the config") {
  check_folders<tiny::Llama>("llama");
  check_folders<tiny::LlamaTied>("llama_tied");
  check_folders<tiny::Gemma3>("gemma3");
  check_folders<tiny::T5>("t5");
  check_folders<tiny::T5Gated>("t5_gated");
}
TEST_CASE("weights in fewer bits, in the file or in memory") {
  check_precisions<tiny::Llama>("llama");
  check_precisions<tiny::T5>("t5");
}
TEST_CASE("GGUF: permuted rows, 1 + w, biases, own and tied head, every format") {
  check_gguf<tiny::Llama>("llama", Checkpoint("llama").config);
  Json tied = Checkpoint("llama_tied").config;
  tied["rope_parameters"] = {{"rope_theta", 1000.}, {"rope_type", "default"}};
  check_gguf<PlainLlamaTied>("llama_tied", tied);
  Json gemma = Checkpoint("gemma3").config;
  gemma["query_pre_attn_scalar"] = 16;
  gemma["rope_parameters"]["sliding_attention"]["rope_theta"] = 1e4;
  check_gguf<UsualGemma3>("gemma3", gemma);
}
TEST_CASE("GGUF: a local base that the file tells, and RoPE stretched linearly") {
  Checkpoint checkpoint("gemma3");
  checkpoint.config["query_pre_attn_scalar"] = 16;
  GgufCheckpoint gguf(checkpoint, Format::f32);
  gguf.metadata.emplace_back("gemma3.rope.freq_base_swa", f32(100));
  const Folder folder;
  container_files::write(folder / "tiny.gguf", gguf.bytes());
  using M = tiny::Gemma3::with<GQA{.heads = 4, .kv_heads = 2, .head_dim = 16}>;
  CHECK(differing(load<M>(device(), folder / "tiny.gguf"), checkpoint) == 0);
}
TEST_CASE("a tied table under any of its names, copies of it, constants of old writers") {
  struct Case {
    std::string name, model;
  };
  for (const Case& c : {Case{"lm_head.weight", "llama_tied"}, Case{"lm_head.weight", "t5"},
                        Case{"encoder.embed_tokens.weight", "t5"}}) {
    const std::string &name = c.name, &model = c.model;
    const Checkpoint original(model);
    for (const bool keep : {true, false}) {
      CAPTURE(name);
      CAPTURE(keep);
      Checkpoint changed = original;
      const std::string table = model == "t5" ? "shared.weight" : "model.embed_tokens.weight";
      changed.tensors[name] = changed.tensors.at(table);
      if (!keep) changed.tensors.erase(table);
      const Folder folder;
      changed.write(folder);
      LoadReport report;
      if (model == "t5")
        CHECK(differing(load<tiny::T5>(device(), folder.path(), {.report = &report}), original) == 0);
      else
        CHECK(differing(load<tiny::LlamaTied>(device(), folder.path(), {.report = &report}), original) == 0);
      CHECK(report.tensors_ignored == (keep ? std::vector<std::string>{name} : std::vector<std::string>{}));
    }
  }
  Checkpoint old("llama");
  const Checkpoint original = old;
  old.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = Numbers({8});
  const Folder folder;
  old.write(folder);
  CHECK(differing(load<tiny::Llama>(device(), folder.path()), original) == 0);
  Checkpoint first("t5");
  first.tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = Numbers({8, 4});
  first.write(folder);
  CHECK(differing(load<tiny::T5>(device(), folder.path()), Checkpoint("t5")) == 0);
}
TEST_CASE("what may differ: fields that an ablation changes, and a longer context than the file's") {
  const std::string folder = harness::golden_folder("llama");
  using OtherEps = tiny::Llama::with<RMSNorm{.eps = .01f}>;
  CHECK_THROWS_WITH_AS(load<OtherEps>(device(), folder), doctest::Contains("load: norm.eps: expected 0.01f"), Error);
  CHECK(differing(load<OtherEps>(device(), folder, {.may_differ = {"norm.eps"}}), Checkpoint("llama")) == 0);
  using Longer = tiny::Llama::with<Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 56, .max_seq = 65}>;
  CHECK_THROWS_WITH_AS(load<Longer>(device(), folder),
                       "load: max_seq: expected 65, as the type llama has, or more, got 64 in the file", Error);
  CHECK(differing(load<Longer>(device(), folder, {.may_differ = {"max_seq"}}), Checkpoint("llama")) == 0);
  using Shorter = tiny::Llama::with<Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 56, .max_seq = 16}>;
  CHECK(differing(load<Shorter>(device(), folder), Checkpoint("llama")) == 0);
}
