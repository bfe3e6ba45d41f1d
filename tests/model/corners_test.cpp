// Corners of passes and states that once went wrong: each case names what must hold.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <new>
#include <vector>

#include "model/consistency.hpp"
#include "model/tiny_models.hpp"
#include "typeformer/cpu.hpp"

namespace tf = typeformer;

TEST_CASE("a second truncation knows what the ring had lost before the first") {
  tf::cpu::Device device(1);
  using M = tiny::Llama::with<tf::SlidingWindow{4}>;
  tf::Model<M, tf::cpu::Device> model(device);
  tf::initialize(model, 1);
  tf::State state(model, {.capacity = 40, .chunk = 5});  // 8 slots
  tf::extend(model, state, consistency::ids_of(20, M::dims.vocab, 1));
  state.truncate(0, 16);
  CHECK_THROWS_AS(state.truncate(0, 12), tf::Error);  // needs position 9; 12 to 19 are held
  CHECK(state.length() == 16);
  state.truncate(0, 15);
  state.reset();
  tf::extend(model, state, consistency::ids_of(8, M::dims.vocab, 1));
  state.truncate(0, 3);  // nothing of it was overwritten since the reset
}

TEST_CASE("kinds of layers may have their own heads: a cache is as wide as its layer") {
  tf::cpu::Device device(1);
  using M = tiny::Llama::with<tf::LocalLayers<tf::GQA{.heads = 6, .kv_heads = 6, .head_dim = 16}, tf::SlidingWindow{4}>{
      .period = 2, .locals = 1}>;
  static_assert(M::Layer<1>::kv_width > M::Layer<0>::kv_width);
  tf::Model<M, tf::cpu::Device> model(device);
  tf::initialize(model, 1);
  const auto ids = consistency::ids_of(12, M::dims.vocab, 1);
  const int length = 12;
  const auto whole = tf::forward(model, tf::Batch{ids, std::span(&length, 1)});
  tf::State state(model, {.sequences = 2, .capacity = 12, .chunk = 5});
  std::vector<float> last = tf::extend(model, state, std::span(ids).first(9));
  CHECK(std::equal(last.begin(), last.end(), whole[8].begin()));
  state.copy(0, 1);
  for (int i = 9; i < 12; ++i)
    last = tf::extend(model, state, std::span(ids).subspan(static_cast<std::size_t>(i), 1), 1);
  CHECK(std::equal(last.begin(), last.end(), whole[11].begin()));
}

TEST_CASE("an observer is called, not a copy of it") {
  struct Counter {
    int seen = 0;
    void operator()(const tf::Observed<float>&) { ++seen; }
  } counter;
  tf::cpu::Device device(1);
  const tf::Model<tiny::Llama, tf::cpu::Device> model(device);
  const std::vector<std::int32_t> ids{1, 2, 3};
  const int length = 3;
  tf::forward(model, tf::Batch{ids, std::span(&length, 1)}, counter);
  CHECK(counter.seen == 3 * tiny::Llama::dims.n_layers + 3);
}

TEST_CASE("errors name the function that was called") {
  tf::cpu::Device device(1);
  const tf::Model<tiny::Llama, tf::cpu::Device> model(device);
  tf::Gradients<tiny::Llama, tf::cpu::Device> gradients(device);
  const std::vector<std::int32_t> ids{1, 1000};
  const int length = 2;
  const tf::Batch batch{ids, std::span(&length, 1)};
  const auto operation = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const tf::Error& error) {
      return error.operation();
    }
    return "";
  };
  CHECK(operation([&] { tf::forward(model, batch); }) == "forward");
  CHECK(operation([&] { tf::hidden_states(model, batch); }) == "hidden_states");
  CHECK(operation([&] { tf::loss(model, batch, std::vector{1, 1}); }) == "loss");
  CHECK(operation([&] { tf::loss_and_gradients(model, batch, std::vector{1, 1}, gradients); }) == "loss_and_gradients");
  CHECK(operation([&] { tf::loss_and_gradients(model, batch, std::vector{1}, gradients); }) == "loss_and_gradients");
}

TEST_CASE("a state of another device is refused, and stays usable") {
  tf::cpu::Device device(1), other(1);
  tf::Model<tiny::Llama, tf::cpu::Device> model(device), elsewhere(other);
  tf::State state(model, {.capacity = 8});
  const std::vector<std::int32_t> ids{1, 2, 3};
  CHECK_THROWS_WITH_AS(tf::extend(elsewhere, state, ids),
                       "extend: state: expected a state made for a model on this device, got one of another device",
                       tf::Error);
  CHECK(state.length() == 0);
  CHECK(tf::extend(model, state, ids).size() == 101);
  tf::Model<tiny::T5, tf::cpu::Device> pair(device), pair_elsewhere(other);
  tf::EncoderDecoderState both(pair, {.capacity = 8});
  const int length = 3;
  const tf::Batch batch{ids, std::span(&length, 1)};
  CHECK_THROWS_AS(tf::encode(pair_elsewhere, both, batch), tf::Error);
  tf::encode(pair, both, batch);
  CHECK_THROWS_AS(tf::extend(pair_elsewhere, both, batch), tf::Error);
  tf::extend(pair, both, batch);
}
TEST_CASE("gradients of another device are refused") {
  tf::cpu::Device device(1), other(1);
  const tf::Model<tiny::Llama, tf::cpu::Device> model(device);
  const tf::Model<tiny::T5, tf::cpu::Device> pair(device);
  tf::Gradients<tiny::Llama, tf::cpu::Device> elsewhere(other);
  tf::Gradients<tiny::T5, tf::cpu::Device> pair_elsewhere(other);
  const std::vector<std::int32_t> ids{1, 2, 3};
  const int length = 3;
  const tf::Batch batch{ids, std::span(&length, 1)};
  const char* said =
      "loss_and_gradients: gradients: expected gradients made on the model's device, got those of another device";
  CHECK_THROWS_WITH_AS(tf::loss_and_gradients(model, batch, ids, elsewhere), said, tf::Error);
  CHECK_THROWS_WITH_AS(tf::loss_and_gradients(pair, batch, batch, ids, pair_elsewhere), said, tf::Error);
}
TEST_CASE("sizes that no machine can count are refused") {
  tf::cpu::Device device(1);
  constexpr std::size_t many = (std::size_t{1} << 61) + 1;
  CHECK_THROWS_WITH_AS((tf::Buffer<tf::cpu::Device, double>(device, many)),
                       "Buffer: size: expected bytes that can be counted, got 2305843009213693953 elements", tf::Error);
  const tf::Model<tiny::Llama, tf::cpu::Device> model(device);
  CHECK_THROWS_AS((tf::State(model, {.sequences = 1 << 30, .capacity = 1 << 30})), tf::Error);
}

namespace {

struct DoubleParallel {
  static constexpr bool norm_input = true, norm_output = true, norm_sum = false, parallel = true, final_norm = true;
};

/// The derivative of the loss along a random direction of one parameter, by differences and by the gradient.
template <class M>
void check_gradient(const char* name) {
  tf::cpu::Device device(1);
  tf::Model<M, tf::cpu::Device> model(device);
  tf::initialize(model, 3);
  for (const tf::Parameter& p : tf::parameters<M>) {
    auto values = model.weights().get(p);
    for (float& value : values) value *= p.matrix ? 8.f : 1.f;
    model.weights().set(p, values);
  }
  const auto ids = consistency::ids_of(11, M::dims.vocab, 1), labels = consistency::ids_of(11, M::dims.vocab, 2);
  const int length = 11;
  const tf::Batch batch{ids, std::span(&length, 1)};
  tf::Gradients<M, tf::cpu::Device> gradients(device);
  tf::loss_and_gradients(model, batch, labels, gradients);
  const tf::Parameter& p = model.weights().find(name);
  const auto values = model.weights().get(p), gradient = gradients.get(p);
  std::vector<float> direction(values.size());
  double along = 0, size = 0;
  for (std::size_t i = 0; i < direction.size(); ++i) {
    direction[i] = static_cast<float>(i % 7) - 3.f;
    along += double{direction[i]} * double{gradient[i]};
    size += double{direction[i]} * double{direction[i]};
  }
  const auto loss_at = [&](float step) {
    auto moved = values;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    model.weights().set(p, moved);
    return double{tf::loss(model, batch, labels)};
  };
  const auto step = static_cast<float>(.02 / std::sqrt(size));
  const double difference = (loss_at(step) - loss_at(-step)) / (2 * double{step});
  CAPTURE(name);
  CHECK(difference == doctest::Approx(along).epsilon(.02));
}

}  // namespace

TEST_CASE("a parallel block with norms on its branches too has the gradients of its loss") {
  using M = tiny::Llama::with<DoubleParallel{}>::with<tf::Dims{
      .vocab = 31, .d_model = 24, .n_layers = 2, .d_ff = 40, .max_seq = 32}>;
  check_gradient<M>("layers.0.ln2.weight");
  check_gradient<M>("layers.0.ln1.weight");
  check_gradient<M>("layers.0.ffn.up_proj.weight");
  check_gradient<M>("token_embeddings.weight");
}

namespace {

/// Makes the logits of a loss two rows at a time.
struct FewLogits : tf::cpu::Device {
  using tf::cpu::Device::Device;
  static constexpr std::int64_t loss_logits = 2 * tiny::Llama::dims.vocab;
};

/// The loss of eleven labels, three of them ignored, and all its gradients.
template <class Device>
std::vector<float> loss_and_all_gradients() {
  using M = tiny::Llama;
  Device device(1);
  tf::Model<M, Device> model(device);
  tf::initialize(model, 3);
  const auto ids = consistency::ids_of(11, M::dims.vocab, 1);
  auto labels = consistency::ids_of(11, M::dims.vocab, 2);
  labels[2] = labels[3] = labels[10] = -1;
  const int length = 11;
  tf::Gradients<M, Device> gradients(device);
  std::vector<float> result{tf::loss_and_gradients(model, {ids, std::span(&length, 1)}, labels, gradients)};
  for (const tf::Parameter& p : tf::parameters<M>)
    for (const float number : gradients.get(p)) result.push_back(number);
  return result;
}

}  // namespace

TEST_CASE("a loss whose logits are made in pieces is the same, and so are its gradients") {
  const auto whole = loss_and_all_gradients<tf::cpu::Device>(), pieces = loss_and_all_gradients<FewLogits>();
  CHECK(pieces[0] == doctest::Approx(whole[0]).epsilon(1e-6));
  double difference = 0, size = 0;
  for (std::size_t i = 1; i < whole.size(); ++i) {
    difference += std::pow(double{whole[i]} - double{pieces[i]}, 2);
    size += std::pow(double{whole[i]}, 2);
  }
  CHECK(std::sqrt(difference / size) < 1e-6);  // sums of other pieces
}

TEST_CASE("a source without a target takes no part in the gradients") {
  tf::cpu::Device device(1);
  using M = tiny::T5;
  tf::Model<M, tf::cpu::Device> model(device);
  tf::initialize(model, 1);
  const auto source = consistency::ids_of(12, M::Decoder::dims.vocab, 1),
             target = consistency::ids_of(6, M::Decoder::dims.vocab, 2);
  const int first_lengths[] = {5, 7}, target_lengths[] = {6, 0}, alone_source[] = {5}, alone_target[] = {6};
  const auto gradients_of = [&](const tf::Batch& from, const tf::Batch& to) {
    tf::Gradients<M, tf::cpu::Device> gradients(device);
    tf::loss_and_gradients(model, from, to, target, gradients);
    return gradients.get(model.weights().find("encoder.layers.0.attn.q_proj.weight"));
  };
  const auto both = gradients_of({source, first_lengths}, {target, target_lengths});
  const auto alone = gradients_of({std::span(source).first(5), alone_source}, {target, alone_target});
  CHECK(both == alone);
}

TEST_CASE("weights are stored within their own parameter, and those of another model nowhere") {
  tf::cpu::Device device(1);
  using M = tiny::Llama;
  using Other = M::with<tf::Dims{.vocab = 31, .d_model = 24, .n_layers = 9, .d_ff = 40, .max_seq = 32}>;
  tf::Model<M, tf::cpu::Device> model(device);
  const tf::Parameter& p = tf::parameters<M>[2];
  const std::vector<float> two{7, 8};
  for (const std::int64_t first : {p.size() - 1, p.size() + 1, std::numeric_limits<std::int64_t>::max()})
    CHECK_THROWS_WITH_AS(model.weights().set(p, two, first), doctest::Contains(" elements, got 2 from "), tf::Error);
  const tf::Parameter& foreign = tf::parameters<Other>.back();
  CHECK_THROWS_WITH_AS(model.weights().set(foreign, two), doctest::Contains("a parameter of this model"), tf::Error);
  CHECK_THROWS_WITH_AS(model.weights().get(foreign), doctest::Contains("a parameter of this model"), tf::Error);
}

TEST_CASE("a state holds no more positions than a decoder's position table") {
  tf::cpu::Device device(1);
  using Decoder = tiny::T5Decoder::with<tf::LearnedPositions{}>;
  using Encoder = tiny::T5Encoder::with<tf::LearnedPositions{}>;
  tf::Model<tf::EncoderDecoder<Encoder, Decoder>, tf::cpu::Device> model(device);
  CHECK_THROWS_WITH_AS(tf::EncoderDecoderState(model, {.capacity = 65}), doctest::Contains("at most 64"), tf::Error);
}

TEST_CASE("what an operation throws on any thread arrives at the caller, and the team goes on") {
  tf::cpu::Device device(3);
  for (int failing = 0; failing < 3; ++failing)
    CHECK_THROWS_AS(device.parallel(3, 1,
                                    [&](std::int64_t first, std::int64_t) {
                                      if (first == failing) throw std::bad_alloc();
                                    }),
                    tf::Error);
  std::atomic<int> sum = 0;
  device.parallel(100, 1, [&](std::int64_t first, std::int64_t last) {
    for (auto i = first; i < last; ++i) sum += static_cast<int>(i);
    device.parallel(2, 1, [&](std::int64_t, std::int64_t) {});  // inside another: runs alone
  });
  CHECK(sum == 4950);
}
