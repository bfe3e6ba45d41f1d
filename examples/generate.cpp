// Chats with SmolLM2-135M-Instruct on the CPU.
//
//   generate MODEL ["prompt"] [--greedy] [--max-tokens N] [--ids "1 2 3"] [--dump FILE.safetensors]
//
// MODEL: a HuggingFace folder or a .gguf file. --ids: token ids instead of a prompt. --dump: every layer's hidden
// states and the logits of the prompt, by HuggingFace's names (hidden_states.0 is the embedding, hidden_states.30 is
// after the final norm).
#include <algorithm>
#include <charconv>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <typeformer/cpu.hpp>
#include <typeformer/family/llama.hpp>
#include <typeformer/text.hpp>

namespace tf = typeformer;

using tf::SmolLM2_135M;

namespace {

/// Keeps the hidden states and logits that a pass shows.
struct Dump {
  std::vector<std::pair<std::string, tf::Observed<float>>> seen;
  std::vector<std::vector<float>> numbers;
  void operator()(const tf::Observed<float>& o) {
    constexpr int last = SmolLM2_135M::dims.n_layers;
    int index = -1;
    if (o.name == "embedding") index = 0;
    if (o.name == "hidden" && o.layer + 1 < last) index = o.layer + 1;
    if (o.name == "final_norm") index = last;
    if (index < 0 && o.name != "logits") return;
    seen.emplace_back(index < 0 ? "logits" : "hidden_states." + std::to_string(index), o);
    numbers.emplace_back(o.data, o.data + o.rows * o.width);
  }
  void write(const std::string& path) const {
    std::vector<tf::io::TensorToWrite> tensors;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto& [name, o] = seen[i];
      const std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(o.rows), static_cast<std::uint64_t>(o.width)};
      tensors.push_back({name, "F32", shape, std::as_bytes(std::span(numbers[i]))});
    }
    tf::io::write_safetensors(path, tensors);
  }
};

struct Arguments {
  std::string model, prompt = "What is gravity?", dump;
  std::vector<std::int32_t> ids;
  tf::GenerateOptions options{.max_tokens = 200, .temperature = 0.7f, .top_p = 0.9f};
};

int number(const std::string& option, const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) throw tf::Error("generate", option, "a number", text);
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  int position = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw tf::Error("generate", word, "a value after it", "the end of the line");
      return argv[++i];
    };
    if (word == "--greedy")
      a.options.temperature = 0;
    else if (word == "--max-tokens")
      a.options.max_tokens = number(word, value());
    else if (word == "--dump")
      a.dump = value();
    else if (word == "--ids") {
      std::istringstream ids(value());
      for (std::string id; ids >> id;) a.ids.push_back(number(word, id));
    } else if (word.starts_with("--"))
      throw tf::Error("generate", word, "--greedy, --max-tokens, --ids or --dump", "an unknown option");
    else if (position++ == 0)
      a.model = word;
    else
      a.prompt = word;
  }
  if (a.model.empty()) throw tf::Error("generate", "MODEL", "a HuggingFace folder or a .gguf file", "nothing");
  return a;
}

void run(const Arguments& a) {
  tf::cpu::Device device;
  const auto model = tf::load<SmolLM2_135M>(device, a.model);
  const tf::Tokenizer text(a.model);
  const auto ids = a.ids.empty() ? tf::prompt_ids(text, a.prompt) : a.ids;
  if (!a.dump.empty()) {
    Dump dump;
    const int length = static_cast<int>(ids.size());
    tf::forward(model, tf::Batch{ids, std::span(&length, 1)}, dump);
    dump.write(a.dump);
  }
  const auto positions = static_cast<std::int64_t>(ids.size()) + std::max(a.options.max_tokens, 1);
  tf::State state(model, {.capacity = static_cast<int>(std::min<std::int64_t>(positions, SmolLM2_135M::dims.max_seq))});
  const auto answer = tf::generate(model, state, text, ids, a.options,
                                   [](std::string_view piece) { std::cout << piece << std::flush; });
  std::cout << std::endl;
  std::cerr << "prefill " << answer.prefill_tokens_per_second() << " tokens/s (" << answer.prompt_ids.size()
            << "), decode " << answer.decode_tokens_per_second() << " tokens/s (" << answer.ids.size() << ")\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
