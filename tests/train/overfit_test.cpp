// A training loop as a whole: a tiny Llama and a tiny T5 learn one batch by heart; equal runs are equal bit for bit;
// gradients add up over parts of a batch.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "model/tiny_models.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/train.hpp"

using namespace typeformer;

namespace {

/// Two sequences of random ids, and for each position the id that follows; the last position counts for nothing.
struct Text {
  std::vector<std::int32_t> ids, labels;
  std::vector<int> lengths;
  explicit Text(int vocab, std::vector<int> sizes, std::uint64_t seed = 5) : lengths(std::move(sizes)) {
    for (const int length : lengths)
      for (int i = 0; i < length; ++i) {
        ids.push_back(static_cast<std::int32_t>(detail::random_bits(seed, ids.size()) % static_cast<unsigned>(vocab)));
        labels.push_back(-1);
        if (i > 0) labels[labels.size() - 2] = ids.back();
      }
  }
  operator Batch() const { return {ids, lengths}; }
};

/// A model, the losses and gradient norms of its updates, and at the end those after the last one.
template <class M>
struct Run {
  cpu::Device device;
  Model<M, cpu::Device> model;
  std::vector<float> losses, norms;

  Run(int threads, int steps, const Text& source, const Text& target) : device(threads), model(device) {
    initialize(model, 7);
    AdamW optimizer(model, {.weight_decay = .01f});
    const CosineSchedule schedule{.peak = 1e-2f, .warmup = 10, .total = steps};
    Gradients<M, cpu::Device> gradients(device);
    for (int step = 0; step <= steps; ++step) {
      gradients.zero();
      losses.push_back(loss_of(source, target, gradients));
      norms.push_back(gradient_norm(device, gradients));
      if (step < steps)
        optimizer.step(model, gradients,
                       {.learning_rate = schedule.rate(step), .gradient_scale = clip_scale(norms.back(), 1.f)});
    }
  }
  float loss_of(const Text& source, const Text& target, Gradients<M, cpu::Device>& gradients) {
    if constexpr (EncoderDecoderComposition<M>)
      return loss_and_gradients(model, source, target, target.labels, gradients);
    else
      return loss_and_gradients(model, target, target.labels, gradients);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a tiny model learns one batch by heart, the same way every time", M, tiny::Llama, tiny::Gemma3,
                   tiny::T5) {
  const Text source(80, {7, 4}, 1), target(80, {12, 9}, 2);
  constexpr int steps = EncoderDecoderComposition<M> ? 350 : 150;  // logits times d_model^-1/2 learn more slowly
  const Run<M> first(1, steps, source, target), second(3, steps, source, target);
  std::printf("%s: loss %.3f to %.5f, gradient norm %.3f to %.5f\n", std::string(M::name).c_str(),
              static_cast<double>(first.losses.front()), static_cast<double>(first.losses.back()),
              static_cast<double>(first.norms.front()), static_cast<double>(first.norms.back()));
  CHECK(first.losses.front() > 3.f);
  CHECK(first.losses.back() < .01f * first.losses.front());
  CHECK(first.losses == second.losses);
  CHECK(first.norms == second.norms);
  for (const Parameter& p : parameters<M>) CHECK(first.model.weights().get(p) == second.model.weights().get(p));
}

TEST_CASE("gradients of two half batches, weighted by their labels, are those of the batch") {
  using M = tiny::Llama;
  cpu::Device device(2);
  Model<M, cpu::Device> model(device);
  initialize(model, 11);
  const Text a(101, {9}, 3), b(101, {6}, 4);
  Text both = a;
  both.ids.insert(both.ids.end(), b.ids.begin(), b.ids.end());
  both.labels.insert(both.labels.end(), b.labels.begin(), b.labels.end());
  both.lengths.push_back(b.lengths[0]);

  Gradients<M, cpu::Device> whole(device), parts(device);
  const float loss = loss_and_gradients(model, both, both.labels, whole);
  // The loss is a mean over labels, 8 of a and 5 of b: gradients added 8 and 5 times are 13 times those of the whole.
  for (int i = 0; i < 8; ++i) loss_and_gradients(model, a, a.labels, parts);
  for (int i = 0; i < 5; ++i) loss_and_gradients(model, b, b.labels, parts);
  const float mean = (8 * typeformer::loss(model, a, a.labels) + 5 * typeformer::loss(model, b, b.labels)) / 13;
  CHECK(loss == doctest::Approx(mean).epsilon(1e-6));
  const float norm = gradient_norm(device, whole);
  CHECK(gradient_norm(device, parts) / 13 == doctest::Approx(norm).epsilon(1e-6));
  for (const Parameter& p : parameters<M>) {
    const auto x = whole.get(p), y = parts.get(p);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      difference += std::pow(double{x[i]} - double{y[i]} / 13, 2);
      size += std::pow(double{x[i]}, 2);
    }
    CAPTURE(p.name());
    // Sums of at most 15 tokens in another order: a few units of f32 of their terms, whose sum may cancel.
    CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(size) + 1e-7 * norm);
  }
}
