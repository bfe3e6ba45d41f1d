// test: sanitize
// Every key of a config.json changed, one at a time: the load stays right or fails with the key's or the field's name.
#include <functional>
#include <map>
#include <set>

#include "io/load_refusals.hpp"
#include "model/tiny_models.hpp"

namespace {

using namespace load_files;

/// What transformers makes of a key, as far as a change of it is concerned.
struct Key {
  std::vector<std::string> words{};  ///< of which an Error for it must contain one, besides the key itself
  bool optional = false;             ///< removed, or null, the network is the same
  std::vector<Json> same{};          ///< values with which it is the same
};
using Keys = std::map<std::string, Key>;

/// Keys that say nothing about the network, in any value.
const std::set<std::string> told_to_others{
    "architectures",          "attention_dropout", "bos_token_id", "classifier_dropout",
    "decoder_start_token_id", "dropout_rate",      "dtype",        "eos_token_id",
    "initializer_factor",     "initializer_range", "pad_token_id", "torch_dtype",
    "transformers_version",   "use_cache"};

const Keys llama_keys{{"attention_bias", {{"biases.qkv"}}},
                      {"final_logit_softcapping", {{}, true}},
                      {"head_dim", {{"attention.head_dim"}}},
                      {"hidden_act", {{"activation"}, true}},
                      {"hidden_size", {{"d_model", "attention.head_dim"}}},
                      {"intermediate_size", {{"d_ff"}}},
                      {"max_position_embeddings", {{"max_seq"}}},
                      {"mlp_bias", {{"biases.feed_forward"}}},
                      {"model_type", {{"config.json"}}},
                      {"num_attention_heads", {{"attention.heads"}}},
                      {"num_hidden_layers", {{"n_layers", "layer_types"}}},
                      {"num_key_value_heads", {{"attention.kv_heads"}}},
                      {"pretraining_tp", {{}, true}},
                      {"rms_norm_eps", {{"norm.eps"}}},
                      {"rope_parameters", {{"position"}}},
                      {"rope_theta", {{"position.theta"}}},
                      {"rope_scaling", {{"position.scaling", "rope_type"}}},
                      {"rope_type", {{"position.scaling", "factor", "original_max_position_embeddings"}}},
                      {"factor", {{"position.scaling"}}},
                      {"high_freq_factor", {{"position.scaling"}}},
                      {"low_freq_factor", {{"position.scaling"}}},
                      {"original_max_position_embeddings", {{"position.scaling"}}},
                      {"tie_word_embeddings", {{"tied"}, true}},
                      {"vocab_size", {{"vocab"}}}};
const Keys gemma_keys = [] {
  Keys keys = llama_keys;
  keys["attention_bias"].optional = true;  // absent: none
  keys["final_logit_softcapping"] = {{"final_softcap"}};
  keys["_sliding_window_pattern"] = {{"layer_types", "local.period"}, true};
  keys["sliding_window_pattern"] = {{"layer_types", "local.period"}, true};
  keys["attn_logit_softcapping"] = {{}, true};
  keys["hidden_activation"] = {{"activation"}, true};
  keys["layer_types"] = {{"local.period"}, true};
  keys["query_pre_attn_scalar"] = {{"attention.scale"}};
  keys["sliding_window"] = {{"local.mask.size"}};
  keys["rope_theta"] = {{"position.theta", "local.position.theta"}};
  keys["rope_local_base_freq"] = {{"local.position.theta"}};
  keys["full_attention"] = keys["sliding_attention"] = {{"rope_type", "position"}};
  keys["use_bidirectional_attention"] = {{}, true};
  return keys;
}();
const Keys t5_keys{{"d_ff", {}},
                   {"d_kv", {{"attention.head_dim"}}},
                   {"d_model", {}},
                   {"dense_act_fn", {{}, true}},
                   {"feed_forward_proj", {{"activation", "is_gated_act"}, true}},
                   {"final_logit_softcapping", {{}, true}},
                   {"is_decoder", {{}, true}},
                   {"is_encoder_decoder", {{}, true}},
                   {"is_gated_act", {{}, true}},
                   {"layer_norm_epsilon", {{"norm.eps"}}},
                   {"model_type", {{"config.json"}}},
                   {"n_positions", {{}, true}},
                   {"num_decoder_layers", {{"decoder.n_layers"}}},
                   {"num_heads", {{"attention.heads"}}},
                   {"num_layers", {{"encoder.n_layers"}}},
                   {"relative_attention_max_distance", {{"max_distance"}}},
                   {"relative_attention_num_buckets", {{"position.buckets"}}},
                   {"scale_decoder_outputs", {{"logit_scale", "tied"}, true}},
                   {"tie_word_embeddings", {{"tied", "logit_scale"}, true}},
                   {"vocab_size", {{"vocab"}}}};

bool is_int(const Json& value) {
  return value.is_number_integer() && value >= 0 && value.get<std::uint64_t>() < std::uint64_t{1} << 31;
}
/// Values that change nothing although the key counts.
bool means_the_same(const std::string& key, const Json& original, const Json& changed) {
  if (key == "max_position_embeddings") return is_int(changed) && changed > original;
  if (key == "n_positions") return is_int(changed);
  return changed == original;  // 5 and 5.0
}

template <class M>
class Changes {
 public:
  Changes(const std::string& name, const Json& config, const Keys& keys) : original_(name), keys_(keys) {
    original_.config = config;
    original_.write(folder_);
    REQUIRE(outcome<M>(folder_.path(), original_) == "");
  }

  /// Every key of the object at `at`, and of the objects in it.
  void change_all(const Json::json_pointer& at = Json::json_pointer()) {
    for (const auto& [key, value] : original_.config.at(at).items()) {
      change(at, key, value);
      if (value.is_object()) change_all(at / key);
    }
    Json config = original_.config;
    config.at(at)["something_new"] = 1;
    CHECK(names_one_of(load(config), {"something_new"}));
    config.at(at)["something_new"] = nullptr;
    CHECK(load(config) == "");
  }
  int loads() const { return loads_; }

 private:
  void change(const Json::json_pointer& at, const std::string& key, const Json& value) {
    CAPTURE((at / key).to_string());
    const bool others = at.empty() && told_to_others.count(key) > 0;
    REQUIRE_MESSAGE((others || keys_.count(key)), "the test does not know the key");
    Json config = original_.config;
    config.at(at).erase(key);
    judge(config, key, others || value.is_null() || keys_.at(key).optional, "removed");
    config.at(at)[key] = nullptr;
    judge(config, key, others || value.is_null() || keys_.at(key).optional, "null");
    for (const Json& other : other_values(value)) {
      config.at(at)[key] = other;
      const bool unread = key.ends_with("sliding_window_pattern") && original_.config.contains("layer_types") &&
                          is_int(other) && other > 0;
      const bool same = others || unread || means_the_same(key, value, other) ||
                        std::count(keys_.at(key).same.begin(), keys_.at(key).same.end(), other) > 0;
      judge(config, key, same, other.dump());
    }
  }
  void judge(const Json& config, const std::string& key, bool right, const std::string& how) {
    const std::string text = load(config);
    if (right) {
      CHECK_MESSAGE(text == "", key, " ", how, ": ", text);
    } else {
      std::vector<std::string> words = keys_.at(key).words;
      words.push_back(key);
      CHECK_MESSAGE(text != "", key, " ", how, " loads");
      CHECK_MESSAGE(names_one_of(text, words), key, " ", how, ": ", text);
      CHECK(text.size() < 600);
    }
  }
  std::string load(const Json& config) {
    ++loads_;
    container_files::write(folder_ / "config.json", config.dump());
    return outcome<M>(folder_.path(), original_);
  }

  Checkpoint original_;
  const Keys& keys_;
  Folder folder_;
  int loads_ = 0;
};

template <class M>
void check_spelling(const std::string& name, const Json& config, const Keys& keys) {
  Changes<M> changes(name, config, keys);
  changes.change_all();
  MESSAGE(name, ": ", changes.loads(), " configs");
}
/// As transformers 5 writes it, and as the hub does.
template <class M>
void check(const std::string& name, const Keys& keys) {
  const Json config = Checkpoint(name).config;
  check_spelling<M>(name, config, keys);
  check_spelling<M>(name, hub_style(config), keys);
}

}  // namespace

TEST_CASE("llama") { check<tiny::Llama>("llama", llama_keys); }
TEST_CASE("llama with a tied head and stretched RoPE") {
  Keys keys = llama_keys;
  keys["attention_bias"].optional = keys["mlp_bias"].optional = true;
  keys["tie_word_embeddings"].optional = false;
  check<tiny::LlamaTied>("llama_tied", keys);
}
TEST_CASE("gemma3") { check<tiny::Gemma3>("gemma3", gemma_keys); }
TEST_CASE("t5") { check<tiny::T5>("t5", t5_keys); }
TEST_CASE("t5 with gates and an own head") {
  Keys keys = t5_keys;
  keys["feed_forward_proj"].optional = false;
  keys["scale_decoder_outputs"].optional = false;  // absent: a tied model scales
  keys["tie_word_embeddings"].same = {false};
  const Json config = Checkpoint("t5_gated").config;
  check_spelling<tiny::T5Gated>("t5_gated", config, keys);
  keys["tie_word_embeddings"] = {{"tied", "logit_scale"}};
  check_spelling<tiny::T5Gated>("t5_gated", hub_style(config), keys);
}

TEST_CASE("RoPE told twice, or by half") {
  Checkpoint checkpoint("llama_tied");
  const Folder folder;
  checkpoint.write(folder);
  const Json config = checkpoint.config, hub = hub_style(config);
  const auto load_with = [&](const Json& base, const std::function<void(Json&)>& change) {
    Json changed = base;
    change(changed);
    container_files::write(folder / "config.json", changed.dump());
    return outcome<tiny::LlamaTied>(folder.path(), checkpoint);
  };
  CHECK(load_with(config, [](Json& c) { c["rope_theta"] = 1000.; }) == "");
  CHECK(names_one_of(load_with(config, [](Json& c) { c["rope_theta"] = 500.; }), {"rope_theta"}));
  CHECK(names_one_of(load_with(config, [](Json& c) { c["rope_scaling"] = Json::object(); }), {"rope_scaling"}));
  CHECK(load_with(config, [](Json& c) { c["partial_rotary_factor"] = 1; }) == "");
  CHECK(names_one_of(load_with(config, [](Json& c) { c["partial_rotary_factor"] = .5; }), {"partial_rotary_factor"}));
  CHECK(load_with(hub, [](Json& c) { c["rope_scaling"]["type"] = "llama3"; }) == "");
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_scaling"]["type"] = "linear"; }), {"type"}));
  const auto spelled = [](Json& c) {
    c["rope_scaling"]["type"] = c["rope_scaling"]["rope_type"];
    c["rope_scaling"].erase("rope_type");
  };
  CHECK(load_with(hub, spelled) == "");
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_scaling"].erase("rope_type"); }), {"rope_type"}));
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_scaling"]["factor"] = .5; }), {"factor"}));
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_scaling"]["mscale"] = 1; }), {"mscale"}));
  CHECK(load_with(hub, [](Json& c) { c["rope_interleaved"] = false; }) == "");
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_interleaved"] = true; }), {"rope_interleaved"}));
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rms_norm_eps"] = -.006; }), {"norm.eps"}));
  CHECK(names_one_of(load_with(hub, [](Json& c) { c["rope_theta"] = 0; }), {"position.theta"}));
}

TEST_CASE("layer_types counts, whatever length of a pattern stands beside it") {
  Checkpoint checkpoint("gemma3");
  const Folder folder;
  checkpoint.write(folder);
  const auto local_of = [&](const Json& types, const Json& pattern) {
    Json config = checkpoint.config;
    config["num_hidden_layers"] = types.size();
    config["layer_types"] = types;
    config["_sliding_window_pattern"] = pattern;
    container_files::write(folder / "config.json", config.dump());
    const auto local = io::read_architecture(folder.path()).architecture.stack.local;
    return local ? std::pair(local->period, local->locals) : std::pair(0, 0);
  };
  const std::string s = "sliding_attention", f = "full_attention";
  CHECK(local_of({s, f}, 6) == std::pair(2, 1));
  CHECK(local_of({s, f, s, f}, 6) == std::pair(2, 1));
  CHECK(local_of({s, s, s, s}, 6) == std::pair(6, 5));
  CHECK(local_of({s, s, s, s}, 4) == std::pair(6, 5));
  CHECK(local_of({s, s, s, s, s, s, s, s}, 6) == std::pair(1, 1));
  CHECK(local_of({f, f}, 6) == std::pair(1, 0));
  CHECK_THROWS_AS(local_of({f, s, s}, 6), Error);
}

TEST_CASE("a key twice in one object is refused: which one counts would be a guess") {
  Checkpoint checkpoint("llama");
  const Folder folder;
  checkpoint.write(folder);
  const std::string config = checkpoint.config.dump();
  const auto load_text = [&](const std::string& text) {
    container_files::write(folder / "config.json", text);
    return outcome<tiny::Llama>(folder.path(), checkpoint);
  };
  CHECK(load_text(config) == "");
  CHECK(names_one_of(load_text("{\"rms_norm_eps\": 0.5, " + config.substr(1)), {"'rms_norm_eps' twice"}));
  CHECK(
      names_one_of(load_text("{\"a\": [{\"b\": 1, \"c\": {\"b\": 2}, \"b\": 1}], " + config.substr(1)), {"'b' twice"}));
}
