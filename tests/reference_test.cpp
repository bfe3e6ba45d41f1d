// The judge itself: formulas against numbers from PyTorch and transformers, derivatives against differences, the
// reverse mode against dual numbers for networks from all over the design space.
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reference/networks.hpp"
#include "reference/random.hpp"

namespace {

using namespace reference;
using Real = Dual<double>;

bool near(double a, double b, double tolerance = 1e-15) { return std::fabs(a - b) <= tolerance * (1 + std::fabs(b)); }

/// Values at -3, -0.5, 0.75 and 2.5, from torch.nn.functional in f64.
struct ActivationValues {
  Activation activation;
  double values[4];
};
const ActivationValues activation_values[] = {
    {Activation::identity, {-3, -0.5, 0.75, 2.5}},
    {Activation::sigmoid, {0.047425873177566781, 0.37754066879814541, 0.67917869917539297, 0.92414181997875655}},
    {Activation::relu, {0, 0, 0.75, 2.5}},
    {Activation::relu2, {0, 0, 0.5625, 6.25}},
    {Activation::gelu_erf, {-0.0040496940948903104, -0.15426876936299344, 0.58002948571734891, 2.4844758366855597}},
    {Activation::gelu_tanh, {-0.0036373920817729943, -0.15428599017485606, 0.57996055516562028, 2.4849157339100012}},
    {Activation::silu, {-0.14227761953270035, -0.1887703343990727, 0.50938402438154473, 2.3103545499468914}},
    {Activation::elu, {-0.95021293163213605, -0.39346934028736658, 0.75, 2.5}},
    {Activation::selu, {-1.6705687287671118, -0.69175818780287135, 0.78802574051661034, 2.6267524683887009}},
    {Activation::quick_gelu, {-0.018071309707785969, -0.14961156339361989, 0.58639005753463791, 2.4650138349514301}}};
const double activation_points[4] = {-3, -0.5, 0.75, 2.5};

TEST_CASE("activations have PyTorch's values") {
  for (const ActivationValues& row : activation_values) {
    for (std::size_t i = 0; i < 4; ++i) {
      CAPTURE(static_cast<int>(row.activation));
      CAPTURE(activation_points[i]);
      CHECK(near(activate(row.activation, activation_points[i]), row.values[i]));
    }
  }
  CHECK(activate(Activation::silu, -1000.0) == 0);
  CHECK(activate(Activation::silu, Real{-1000, 1}).slope == 0);
  CHECK(activate(Activation::silu, Real{1000, 1}).slope == 1);
}

TEST_CASE("norms have PyTorch's values") {
  const Tensor<double> x({1, 5}, {0.5, -1.25, 2, 0.25, -3}), w({5}, {1.5, 0.5, -0.75, 2, 1});
  const Tensor<double> less({5}, {0.5, -0.5, -1.75, 1, 0}), b({5}, {0.1, -0.2, 0.3, 0, 0.4});
  const double layer[5] = {0.80527251926108001, -0.4791703722075108, -0.71382924643780232, 0.64649980932265672,
                           -1.18686316833743};
  const double rms[5] = {0.43409931012992453, -0.36174942510827041, -0.86819862025984906, 0.28939954008661634,
                         -1.7363972405196981};
  const Tensor<double> l = norm_rows({NormKind::layer, NormWeight::weight, true, 0.01}, x, &w, &b);
  const Tensor<double> r = norm_rows({NormKind::rms, NormWeight::weight, false, 0.01}, x, &w, nullptr);
  const Tensor<double> plus = norm_rows({NormKind::rms, NormWeight::one_plus, false, 0.01}, x, &less, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(near(l.data[i], layer[i]));
    CHECK(near(r.data[i], rms[i]));
    CHECK(near(plus.data[i], rms[i]));
  }
  CHECK(norm_rows({NormKind::identity, NormWeight::none, false, 0}, x, nullptr, nullptr).data == x.data);
}

TEST_CASE("the loss has PyTorch's values") {
  const Tensor<double> logits({2, 4}, {0.3, -1.2, 2.5, 0, 1, 0.5, -0.5, 3});
  CHECK(near(sequence_loss({}, logits, {2, 1}, 2), 1.4590635843114765));
  CHECK(near(sequence_loss({0, 0.1}, logits, {2, ignored_label}, 1), 0.4068913035593499));
  const double z[2] = {2.69689130355935, 3.221235865063603};  // torch.logsumexp
  const double added = 0.5 * (z[0] * z[0] + z[1] * z[1]) / 2;
  CHECK(near(sequence_loss({0.5, 0}, logits, {2, 1}, 2), 1.4590635843114765 + added));
}

void check_frequencies(const Rope& rope, std::size_t width, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(rope_frequency<double>(rope, width, i) / expected[i] - 1) < 5e-7);
  }
}

TEST_CASE("RoPE frequencies are those of transformers (f32)") {
  Rope rope;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.original_length = 64;
  rope.beta_fast = 8;
  check_frequencies(rope, 32,
                    {1, 0.477990121, 0.221359432, 0.0978053659, 0.0399999991, 0.0140585322, 0.00790569466,
                     0.00444569858, 0.00249999994, 0.00140585331, 0.000790569466, 0.000444569858});
  rope.original_length = 4096;
  rope.beta_fast = 32;
  check_frequencies(rope, 32,
                    {1, 0.562341332, 0.316227764, 0.177827939, 0.100000001, 0.0562341288, 0.0282346234, 0.0139721958,
                     0.00678571407, 0.00321337907, 0.00146820047, 0.00063509983});
  rope.scaling = RopeScaling::llama3;
  rope.factor = 8;
  rope.original_length = 256;
  check_frequencies(rope, 32,
                    {1, 0.562341332, 0.316227764, 0.177827939, 0.100000001, 0.0282067824, 0.00661310693, 0.00222284929,
                     0.00124999997, 0.000702926656, 0.000395284733, 0.000222284929});
  rope.scaling = RopeScaling::linear;
  check_frequencies(rope, 32, {0.125, 0.0702926671, 0.0395284705});
}

TEST_CASE("YaRN lengthens queries and keys by 0.1 ln(factor) + 1") {
  Rope rope;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 4;
  rope.original_length = 64;
  double x[4] = {1, 2, 3, 4};
  rotate_head(rope, x, 4, 0);
  CHECK(near(x[0], 1.138629436111989));
  CHECK(near(x[3], 4 * 1.138629436111989));
}

TEST_CASE("RoPE turns pairs by position * frequency") {
  Rope rope;
  rope.theta = 100;
  const double c = std::cos(3.0), s = std::sin(3.0), c2 = std::cos(0.3), s2 = std::sin(0.3);
  double halves[5] = {1, 2, 3, 4, 5};
  rotate_head(rope, halves, 4, 3);
  const double expected[5] = {c - 3 * s, 2 * c2 - 4 * s2, 3 * c + s, 4 * c2 + 2 * s2, 5};
  for (std::size_t i = 0; i < 5; ++i) CHECK(near(halves[i], expected[i]));
  rope.pairs = Pairs::adjacent;
  rope.fraction = 0.5;
  double adjacent[4] = {1, 2, 3, 4};
  rotate_head(rope, adjacent, 4, 3);
  const double partial[4] = {c - 2 * s, 2 * c + s, 3, 4};
  for (std::size_t i = 0; i < 4; ++i) CHECK(near(adjacent[i], partial[i]));
}

TEST_CASE("sinusoids: the paper's order, and position 5 of Marian and FSMT in transformers (f32)") {
  const double marian[8] = {-0.958924294, 0.47942555, 0.0499791689, 0.0049999794,
                            0.2836622,    0.87758255, 0.998750269,  0.999987483};
  const double fsmt[8] = {-0.958924294, 0.230001733, 0.0107719656, 0.000499999966,
                          0.2836622,    0.973190248, 0.999942005,  0.999999881};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(std::fabs(sinusoid<double>(AddedPosition::halves, 8, 5, i) - marian[i]) < 1e-7);
    CHECK(std::fabs(sinusoid<double>(AddedPosition::spaced_halves, 8, 5, i) - fsmt[i]) < 1e-7);
    const std::size_t place = i % 2 == 0 ? i / 2 : 4 + i / 2;
    CHECK(std::fabs(sinusoid<double>(AddedPosition::interleaved, 8, 5, i) - marian[place]) < 1e-7);
  }
}

TEST_CASE("ALiBi slopes of BLOOM and Press et al.") {
  const double twelve[12] = {0.5,
                             0.25,
                             0.125,
                             0.0625,
                             0.03125,
                             0.015625,
                             0.0078125,
                             0.00390625,
                             0.7071067811865476,
                             0.35355339059327384,
                             0.17677669529663695,
                             0.08838834764831849};
  for (std::size_t h = 0; h < 12; ++h) CHECK(near(alibi_slope(12, h), twelve[h]));
}

void check_buckets(const Buckets& buckets, const std::vector<std::size_t>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(bucket_of(buckets, 40, i) == expected[i]);  // key - query = -40 ...
  }
}

TEST_CASE("T5 buckets of transformers, key - query from -40 to 25") {
  check_buckets({32, 128, true},
                {12, 12, 12, 12, 12, 12, 12, 12, 12, 11, 11, 11, 11, 11, 11, 11, 11, 11, 10, 10, 10, 10,
                 10, 10, 10, 9,  9,  9,  9,  8,  8,  8,  8,  7,  6,  5,  4,  3,  2,  1,  0,  17, 18, 19,
                 20, 21, 22, 23, 24, 24, 24, 24, 25, 25, 25, 25, 26, 26, 26, 26, 26, 26, 26, 27, 27, 27});
  check_buckets({32, 128, false}, {23, 22, 22, 22, 22, 22, 21, 21, 21, 21, 20, 20, 20, 20, 19, 19, 19, 18, 18, 18, 17,
                                   17, 16, 16, 16, 15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0,  0});
  check_buckets({10, 18, false}, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
                                  9, 9, 9, 9, 9, 9, 8, 8, 8, 7, 7, 6, 6, 5, 5, 4, 3, 2, 1, 0, 0});
}

TEST_CASE("masks, query by query") {
  const auto seen = [](const Mask& mask, std::size_t query, std::size_t prefix) {
    std::string text;
    for (std::size_t key = 0; key < 7; ++key) text += sees(mask, query, key, prefix) ? 'x' : '.';
    return text;
  };
  CHECK(seen({MaskKind::causal, 0}, 3, 0) == "xxxx...");
  CHECK(seen({MaskKind::bidirectional, 0}, 3, 0) == "xxxxxxx");
  CHECK(seen({MaskKind::sliding, 2}, 3, 0) == "..xx...");
  CHECK(seen({MaskKind::chunked, 3}, 4, 0) == "...xx..");
  CHECK(seen({MaskKind::chunked, 3}, 3, 0) == "...x...");
  CHECK(seen({MaskKind::prefix, 0}, 1, 4) == "xxxx...");
  CHECK(seen({MaskKind::prefix, 0}, 5, 4) == "xxxxxx.");
}

TEST_CASE("single operations: a query at its position gives the row of the whole") {
  Random random(2);
  Attention a;
  a.heads = 4;
  a.kv_heads = 2;
  a.head_dim = 3;
  const Layer layer{{MaskKind::sliding, 4}, PositionKind::alibi, {}};
  const Tensor<double> q = random_tensor(random, {7, 12}), k = random_tensor(random, {7, 6});
  const Tensor<double> v = random_tensor(random, {7, 6});
  const Tensor<double> whole = attend({a, layer}, q, k, v);
  const Tensor<double> two_rows({2, 12}, {q.row(5), q.row(5) + 24});
  const Tensor<double> two = attend({a, layer, nullptr, nullptr, 0, 5}, two_rows, k, v);
  CHECK(two.data == std::vector<double>(whole.row(5), whole.row(5) + 24));
  const Tensor<double> first({1, 12}, {q.row(0), q.row(0) + 12});
  const Tensor<double> alone = attend({a, layer}, first, k, v);  // sees one key: the value itself
  for (std::size_t i = 0; i < 12; ++i) CHECK(near(alone.data[i], v(0, i / 6 * 3 + i % 3)));
}

/// f and its derivative by dual numbers, by the tape, and by differences agree.
void check_derivative(const std::string& name, const std::function<Real(const Real&)>& dual,
                      const std::function<Var<double>(const Var<double>&)>& var, double x) {
  CAPTURE(name);
  CAPTURE(x);
  const double h = 1e-5;
  const Real y = dual(Real{x, 1});
  const double difference = (dual(Real{x + h}).value - dual(Real{x - h}).value) / (2 * h);
  CHECK(near(y.slope, difference, 1e-8));
  const auto f = [&](const std::vector<Tensor<Var<double>>>& in) {
    return Tensor<Var<double>>({1}, {var(in[0].data[0])});
  };
  const auto gradient = pullback<double>(f, {Tensor<double>({1}, {x})}, Tensor<double>({1}, {1}));
  CHECK(near(gradient[0].data[0], y.slope, 1e-15));
}

TEST_CASE("derivatives of the number types' functions") {
#define CHECK_FUNCTION(expression) \
  check_derivative(                \
      #expression, [](const Real& x) { return Real(expression); }, [](const Var<double>& x) { return expression; }, v)
  for (double v : {0.3, 1.7, 2.4}) {
    CHECK_FUNCTION(exp(x));
    CHECK_FUNCTION(log(x));
    CHECK_FUNCTION(tanh(x));
    CHECK_FUNCTION(erf(x));
    CHECK_FUNCTION(sqrt(x));
    CHECK_FUNCTION(sin(x));
    CHECK_FUNCTION(cos(x));
    CHECK_FUNCTION(pow(x, x));
    CHECK_FUNCTION(x / (x * x - x));
    CHECK_FUNCTION(-x * (x + x));
  }
#undef CHECK_FUNCTION
  for (const ActivationValues& row : activation_values) {
    for (double x : activation_points) {
      check_derivative(
          "activation", [&](const Real& v) { return activate(row.activation, v); },
          [&](const Var<double>& v) { return activate(row.activation, v); }, x);
    }
  }
}

Parameters<Real> along(const Parameters<double>& at, const Parameters<double>& direction) {
  Parameters<Real> result;
  for (const auto& [name, tensor] : at) {
    Tensor<Real> duals(tensor.shape);
    const auto found = direction.find(name);
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      duals.data[i] = {tensor.data[i], found == direction.end() ? 0 : found->second.data[i]};
    }
    result[name] = duals;
  }
  return result;
}

double inner(const Tensor<double>& a, const Tensor<double>& b) { return dot(a.data.data(), b.data.data(), a.size()); }
double norm(const Tensor<double>& a) { return std::sqrt(inner(a, a)); }

/// Gradient of each parameter against the dual slope along a random direction in that parameter alone.
void check_parameter_gradients(const Network& n, const Parameters<double>& at, const Gradients<double>& gradient) {
  Random random(11);
  double largest = 0;
  for (const auto& entry : gradient.parameters) largest = std::fmax(largest, norm(entry.second));
  for (const auto& entry : at) {
    const std::string& name = entry.first;
    CAPTURE(name);
    const Parameters<double> direction = {{name, random_tensor(random, entry.second.shape)}};
    const Real slope = loss(n.config, along(at, direction), n.batch, n.options);
    CHECK(near(slope.value, gradient.loss, 1e-14));
    const double by_tape = inner(gradient.parameters.at(name), direction.at(name));
    CHECK(std::fabs(slope.slope - by_tape) < 1e-12 * norm(direction.at(name)) * largest);
    CHECK(norm(gradient.parameters.at(name)) < 1e3);
  }
}

/// The loss of sequence b from the hidden state at `layer` of the main stack, or of the encoder, on.
Real loss_from(const Network& n, const Lookup<Real>& p, std::size_t b, bool encoder, std::size_t layer, Tensor<Real> x,
               Tensor<Real> source) {
  const Sequence& sequence = n.batch[b];
  if (encoder) {
    const Part part = encoder_part(n.config);
    for (std::size_t i = layer; i < part.stack.layers.size(); ++i) x = block<Real>(part, i, p, x, nullptr, 0);
    source = final_norm(part, p, x);
    layer = 0;
    x = embed(main_part(n.config), p, sequence.ids, sequence.types);
  }
  const Part part = main_part(n.config);
  for (std::size_t i = layer; i < part.stack.layers.size(); ++i) {
    x = block(part, i, p, x, n.config.encoder ? &source : nullptr, sequence.prefix);
  }
  const Tensor<Real> logits = head(n.config, p, final_norm(part, p, x));
  return sequence_loss(n.options, logits, sequence.labels, valid_labels(n.batch));
}

void check_hidden_gradients(const Network& n, const Parameters<double>& at, const Gradients<double>& gradient,
                            bool encoder) {
  Random random(12);
  const Parameters<Real> parameters = along(at, {});
  const Lookup<Real> p = lookup_in(parameters);
  for (std::size_t b = 0; b < n.batch.size(); ++b) {
    const Output<double>& values = gradient.activations[b];
    const Output<double>& by = gradient.by_activation[b];
    const Tensor<Real> source = convert<Real>(values.encoder.last);
    const Trace<double>& trace = encoder ? values.encoder : values.stack;
    for (std::size_t layer = 0; layer < trace.hidden.size(); ++layer) {
      CAPTURE(layer);
      Tensor<Real> x = convert<Real>(trace.hidden[layer]);
      const Tensor<double> direction = random_tensor(random, trace.hidden[layer].shape);
      for (std::size_t i = 0; i < x.size(); ++i) x.data[i].slope = direction.data[i];
      const Tensor<double>& by_tape = (encoder ? by.encoder : by.stack).hidden[layer];
      const double slope = loss_from(n, p, b, encoder, layer, x, source).slope;
      CHECK(std::fabs(slope - inner(by_tape, direction)) < 1e-12 * norm(direction) * norm(by_tape));
    }
  }
}

/// The dual slope along one direction in all parameters against a central difference of the loss.
void check_against_differences(const Network& n, const Parameters<double>& at) {
  Random random(13);
  Parameters<double> direction, forwards = at, backwards = at;
  const double h = 1e-6;
  for (const auto& [name, tensor] : at) {
    direction[name] = random_tensor(random, tensor.shape);
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      forwards[name].data[i] += h * direction[name].data[i];
      backwards[name].data[i] -= h * direction[name].data[i];
    }
  }
  const double slope = loss(n.config, along(at, direction), n.batch, n.options).slope;
  const double ahead = loss(n.config, forwards, n.batch, n.options);
  const double behind = loss(n.config, backwards, n.batch, n.options);
  CHECK(near((ahead - behind) / (2 * h), slope, 2e-7));
}

TEST_CASE("gradients of networks from all over the design space") {
  for (const Network& n : networks()) {
    CAPTURE(n.name);
    const Parameters<double> at = random_parameters(n.config, 5);
    const Gradients<double> gradient = gradients(n.config, at, n.batch, n.options);
    CHECK(gradient.loss == loss(n.config, at, n.batch, n.options));
    check_parameter_gradients(n, at, gradient);
    check_hidden_gradients(n, at, gradient, false);
    if (n.config.encoder) check_hidden_gradients(n, at, gradient, true);
    check_against_differences(n, at);
  }
}

TEST_CASE("every sequence is alone, and float is the same network") {
  for (const Network& n : networks()) {
    CAPTURE(n.name);
    const Parameters<double> at = random_parameters(n.config, 5);
    const auto together = forward(n.config, at, n.batch);
    const auto naive = forward(n.config, convert<float>(at), n.batch);
    for (std::size_t b = 0; b < n.batch.size(); ++b) {
      CHECK(forward(n.config, at, {n.batch[b]})[0].logits.data == together[b].logits.data);
      for (std::size_t i = 0; i < together[b].logits.size(); ++i) {
        CHECK(near(double{naive[b].logits.data[i]}, together[b].logits.data[i], 1e-4));
      }
    }
  }
}

TEST_CASE("what the network does not have is refused") {
  const Network n = networks()[0];
  Parameters<double> parameters = random_parameters(n.config, 5);
  Parameters<double> more = parameters;
  more["layers.9.ln1.weight"] = Tensor<double>({8});
  CHECK_THROWS_AS(forward(n.config, more, n.batch), std::invalid_argument);
  parameters.erase("ln_final.weight");
  CHECK_THROWS_AS(forward(n.config, parameters, n.batch), std::out_of_range);
  parameters["ln_final.weight"] = Tensor<double>({7});
  CHECK_THROWS_AS(forward(n.config, parameters, n.batch), std::invalid_argument);
}

}  // namespace
