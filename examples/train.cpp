// Trains a character-level decoder: forward, loss, backward, clip, AdamW under a cosine; then writes text of its own.
//
//   train [steps] [FILE]      without a file: on a text of the program
//
// test: 60
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <typeformer/cpu.hpp>
#include <typeformer/model/sampling.hpp>
#include <typeformer/train.hpp>
#include <vector>

namespace tf = typeformer;

using Decoder = tf::Transformer<tf::Dims{.vocab = 256, .d_model = 64, .n_layers = 2, .d_ff = 172, .max_seq = 256},
                                tf::RMSNorm{}, tf::SwiGLU{}, tf::RoPE{}, tf::GQA{.heads = 4, .kv_heads = 2},
                                tf::PreNorm{}, tf::TiedEmbeddings{}, tf::Name{"characters"}>;

constexpr int sequences = 8, length = 32;
constexpr const char* proverbs =
    "a bird in the hand is worth two in the bush. a stitch in time saves nine. all that glitters is not gold. "
    "the early bird catches the worm. make hay while the sun shines. a rolling stone gathers no moss. "
    "the pen is mightier than the sword. when in rome, do as the romans do. practice makes perfect. "
    "birds of a feather flock together. look before you leap. honesty is the best policy. "
    "actions speak louder than words. better late than never. two wrongs do not make a right. ";

/// Sequences from places of the text that differ from step to step; the label of a character is the next one.
struct Lesson {
  std::vector<std::int32_t> ids, labels;
  std::vector<int> lengths = std::vector<int>(sequences, length);
  Lesson(const std::string& text, std::size_t step) {
    for (std::size_t s = 0; s < sequences; ++s) {
      const std::size_t start = (step * sequences + s) * 7919;
      for (std::size_t i = start; i < start + length; ++i) {
        ids.push_back(static_cast<unsigned char>(text[i % text.size()]));
        labels.push_back(static_cast<unsigned char>(text[(i + 1) % text.size()]));
      }
    }
  }
};

std::string sample(const tf::Model<Decoder, tf::cpu::Device>& model, const std::string& begin, int characters) {
  tf::State state(model);
  std::string text = begin;
  std::vector<std::int32_t> next(begin.begin(), begin.end());
  for (int i = 0; i < characters; ++i) {
    next = {tf::extend_and_sample(model, state, next, {.temperature = .7f, .seed = 1}, static_cast<std::uint64_t>(i))};
    text += static_cast<char>(next[0]);
  }
  return text;
}

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 400;
  if (steps < 1) return std::fputs("usage: train [steps] [FILE]\n", stderr), 2;
  std::string text = proverbs;
  if (argc > 2) {
    std::ostringstream read;
    read << std::ifstream(argv[2], std::ios::binary).rdbuf();
    text = read.str();
    if (text.empty()) return std::fprintf(stderr, "%s: no text\n", argv[2]), 1;
  }
  tf::cpu::Device device;
  tf::Model<Decoder, tf::cpu::Device> model(device);
  tf::initialize(model, 1);
  tf::AdamW optimizer(model, {.weight_decay = .1f});
  tf::Gradients<Decoder, tf::cpu::Device> gradients(device);
  const tf::CosineSchedule schedule{.peak = 4e-3f, .warmup = steps / 10 + 1, .total = steps, .final_share = .1f};
  float first = 0, loss = 0;
  for (int step = 0; step < steps; ++step) {
    const Lesson lesson(text, static_cast<std::size_t>(step));
    gradients.zero();
    loss = tf::loss_and_gradients(model, {lesson.ids, lesson.lengths}, lesson.labels, gradients);
    const float norm = tf::gradient_norm(device, gradients), rate = schedule.rate(step + 1);
    optimizer.step(model, gradients, {.learning_rate = rate, .gradient_scale = tf::clip_scale(norm, 1.f)});
    if (step == 0) first = loss;
    if (step % 20 == 0 || step + 1 == steps)
      std::printf("step %4d  loss %.3f  gradient norm %6.3f  learning rate %.5f\n", step, double{loss}, double{norm},
                  double{rate});
  }
  std::puts(sample(model, "the ", std::min(200, Decoder::dims.max_seq - 4)).c_str());
  return steps < 50 || loss < .8f * first ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
