// test: sanitize
// GGUF files that do not fit the type: every metadata key changed, tensors missing, left over, of another shape, cut.
#include <map>

#include "io/load_refusals.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace load_files;

/// Types of GGUF metadata, and a value of each.
std::vector<std::string> other_values(const std::string& value) {
  std::vector<std::string> others{
      u32(0),
      u32(1),
      u32(0x80000000u),
      u32(0xffffffffu),
      f32(0),
      f32(-1),
      f32(1e30),
      text("nonsense"),
      text(""),
      text("llama"),
      text("linear"),
      text("yarn"),
      raw(std::uint32_t{5}) + raw(std::int32_t{-1}),
      raw(std::uint32_t{10}) + raw(std::uint64_t{1} << 60),
      raw(std::uint32_t{11}) + raw(std::int64_t{-1}),
      raw(std::uint32_t{12}) + raw(std::numeric_limits<double>::quiet_NaN()),
      f32(std::numeric_limits<double>::infinity()),
      raw(std::uint32_t{7}) + raw(std::uint8_t{1}),
      raw(std::uint32_t{9}) + raw(std::uint32_t{4}) + raw(std::uint64_t{1}) + raw(std::uint32_t{3})};
  std::uint32_t type = 0, number = 0;
  std::memcpy(&type, value.data(), 4);
  if (type == 4) {
    std::memcpy(&number, value.data() + 4, 4);
    others.insert(others.end(), {u32(number + 1), u32(number - 1), u32(2 * number)});
  } else if (type == 6) {
    float real = 0;
    std::memcpy(&real, value.data() + 4, 4);
    others.insert(others.end(), {f32(std::nextafterf(real, 1e9f)), f32(-real), f32(2 * real)});
  }
  std::erase(others, value);
  return others;
}

/// The words of which an Error for a key must contain one, and whether the network is the same without the key.
struct Key {
  std::vector<std::string> words{};
  bool optional = false;
};
const std::map<std::string, Key> keys{{"attention.head_count", {{"attention.heads", "attention.head_dim"}}},
                                      {"attention.head_count_kv", {{"attention.kv_heads"}}},
                                      {"attention.key_length", {{"attention.head_dim", "attention.value_length"}}},
                                      {"attention.layer_norm_rms_epsilon", {{"norm.eps"}}},
                                      {"attention.sliding_window", {{"local.mask.size"}}},
                                      {"attention.value_length", {{}, true}},
                                      {"block_count", {{"n_layers"}}},
                                      {"context_length", {{"max_seq"}}},
                                      {"embedding_length", {{"d_model"}}},
                                      {"feed_forward_length", {{"d_ff"}}},
                                      {"final_logit_softcapping", {{"final_softcap"}}},
                                      {"rope.dimension_count", {{"position.fraction"}, true}},
                                      {"rope.freq_base", {{"position.theta"}}},
                                      {"rope.freq_base_swa", {{"local.position.theta"}}},
                                      {"rope.scaling.factor", {{"position.scaling.factor"}}},
                                      {"rope.scaling.type", {{"position.scaling", "rope.scaling.factor"}}},
                                      {"vocab_size", {{}, true}}};

template <class M>
struct Case {
  Checkpoint checkpoint;
  GgufCheckpoint gguf;
  Folder folder;
  int loads = 0;
  Case(Checkpoint from) : checkpoint(std::move(from)), gguf(checkpoint, Format::f32) {}
  std::string load(const std::string& bytes) {
    ++loads;
    return outcome<M>(container_files::write(folder / "tiny.gguf", bytes), checkpoint);
  }
  std::string load() { return load(gguf.bytes()); }

  void change_metadata() {
    const Metadata original = gguf.metadata;
    for (std::size_t i = 0; i < original.size(); ++i) {
      const std::string &name = original[i].first, &value = original[i].second;
      CAPTURE(name);
      const auto dot = name.find('.');
      const bool network = name.starts_with("llama.") || name.starts_with("gemma3.");
      const Key key = network ? keys.at(name.substr(dot + 1)) : Key{{"'llama."}};  // another's keys are missing
      const bool unread = !network && name != "general.architecture";
      gguf.metadata = original;
      gguf.metadata.erase(gguf.metadata.begin() + static_cast<std::ptrdiff_t>(i));
      judge(name, key, unread || key.optional);
      for (const std::string& other : other_values(value)) {
        gguf.metadata = original;
        gguf.metadata[i].second = other;
        judge(name, key, unread || (name.ends_with("context_length") && longer(other)));
      }
    }
    gguf.metadata = original;
    gguf.metadata.emplace_back(original.back().first.substr(0, original.back().first.find('.')) + ".expert_count",
                               u32(8));
    CHECK(names_one_of(load(), {"expert_count"}));
    gguf.metadata.back().first = "elsewhere.key";
    CHECK(names_one_of(load(), {"elsewhere.key"}));
    gguf.metadata = original;
    CHECK(load() == "");
  }
  void change_tensors() {
    const auto original = gguf.tensors;
    for (const auto& part : original) {
      const std::string& name = part.first;
      const GgufCheckpoint::Entry& entry = part.second;
      CAPTURE(name);
      gguf.tensors = original;
      gguf.tensors.erase(name);
      // without its own head a file means a tied one, without a bias none
      const bool architecture = name == "output.weight" || name.ends_with(".bias");
      CHECK(names_one_of(load(), {"'" + name + "'", architecture ? "tied" : name, architecture ? "biases" : name}));
      gguf.tensors[name] = {Numbers({entry.numbers.rows() + 1, entry.numbers.columns()}), Format::f32};
      CHECK(names_one_of(load(), {name}));
      if (entry.numbers.shape.size() == 2 && entry.numbers.rows() != entry.numbers.columns()) {
        gguf.tensors[name] = {Numbers({entry.numbers.columns(), entry.numbers.rows()}), Format::f32};
        CHECK(names_one_of(load(), {name}));
      }
    }
    for (const std::string more : {"one.too.many", "rope_freqs.weight", "blk.0.attn_sinks.weight"}) {
      gguf.tensors = original;
      gguf.tensors[more] = {Numbers({4}), Format::f32};
      CHECK(names_one_of(load(), {more}));
    }
    gguf.tensors = original;
  }
  void truncate() {
    const std::string bytes = gguf.bytes();
    for (std::size_t size = 0; size < bytes.size(); size += size < 2000 ? 13 : 1999)
      CHECK(names_one_of(load(bytes.substr(0, size)), {"tiny.gguf"}));
  }

 private:
  void judge(const std::string& name, const Key& key, bool right) {
    const std::string told = load();
    if (right) {
      CHECK_MESSAGE(told == "", name, ": ", told);
      return;
    }
    std::vector<std::string> words = key.words;
    words.push_back(name);
    CHECK_MESSAGE(told != "", name, " changed, and loads");
    CHECK_MESSAGE(names_one_of(told, words), name, ": ", told);
  }
  bool longer(const std::string& value) const {
    std::uint32_t type = 0, number = 0;
    std::memcpy(&type, value.data(), 4);
    if (type != 4) return false;
    std::memcpy(&number, value.data() + 4, 4);
    return number >= checkpoint.config.at("max_position_embeddings").get<std::uint32_t>() && number < 0x80000000u;
  }
};

using UsualGemma3 = tiny::Gemma3::with<GQA{.heads = 4, .kv_heads = 2, .head_dim = 16}>;

}  // namespace

TEST_CASE("llama") {
  Case<tiny::Llama> c(Checkpoint("llama"));
  REQUIRE(c.load() == "");
  c.change_metadata();
  c.change_tensors();
  c.truncate();
  MESSAGE(c.loads, " files");
}
TEST_CASE("gemma3") {
  Checkpoint checkpoint("gemma3");
  checkpoint.config["query_pre_attn_scalar"] = 16;
  Case<UsualGemma3> c(checkpoint);
  c.gguf.metadata.emplace_back("gemma3.rope.freq_base_swa", f32(100));
  REQUIRE(c.load() == "");
  c.change_metadata();
  c.change_tensors();
  MESSAGE(c.loads, " files");
}
TEST_CASE("a type that GGUF's names cannot serve") {
  const Checkpoint t5("t5");
  Checkpoint llama("llama");
  const GgufCheckpoint gguf(llama, Format::f32);
  const Folder folder;
  container_files::write(folder / "tiny.gguf", gguf.bytes());
  CHECK(names_one_of(outcome<tiny::T5>(folder / "tiny.gguf", t5), {"load: encoder.vocab"}));
  CHECK(names_one_of(outcome<tiny::LlamaTied>(folder / "tiny.gguf", Checkpoint("llama_tied")), {"load: vocab"}));
}
