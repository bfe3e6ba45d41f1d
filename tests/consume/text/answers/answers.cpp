#include <typeformer/cpu.hpp>
#include <typeformer/text.hpp>

#include <string>

namespace tf = typeformer;
using Tiny = tf::Transformer<tf::Dims{.vocab = 11, .d_model = 8, .n_layers = 2, .d_ff = 12, .max_seq = 16},
                             tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::MHA(2), tf::PreNorm{}>;

std::string chat() {
  return tf::ChatTemplate("{{ messages[0].content }}, {{ tools[0] }}")
      .render_json(R"([{"content": "hello"}])", {.variables = R"({"tools": [7]})"});
}

std::string refusal(const char* path) {
  tf::cpu::Device device(1);
  try {
    const auto model = tf::load<Tiny>(device, path);
    tf::generate(model, tf::Tokenizer(path), "hello", {}, [](std::string_view) {});
  } catch (const tf::Error& error) {
    return error.operation();
  }
  return "";
}
