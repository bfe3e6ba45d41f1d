// Policies of one's own (own_policies.hpp): composed, run forward and backward, and every gradient checked against
// finite differences of the loss.
//
// test:
#include "own_policies.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <typeformer/cpu.hpp>
#include <vector>

namespace tf = typeformer;

using Own = tf::Transformer<tf::Dims{.vocab = 31, .d_model = 24, .n_layers = 2, .d_ff = 48, .max_seq = 64},
                            mine::DynamicTanh{.alpha = .8f}, mine::Softplus{}, mine::LogDistance{}, tf::MHA(4),
                            tf::PreNorm{}, mine::Strided{.window = 3, .stride = 5}, tf::Name{"own policies"}>;

using Model = tf::Model<Own, tf::cpu::Device>;

int main() {
  tf::cpu::Device device;
  Model model(device);
  tf::initialize(model, 1);
  for (const tf::Parameter& p : tf::parameters<Own>) {  // far from the start, so that every gradient is large
    auto values = model.weights().get(p);
    for (float& value : values) value *= p.matrix ? 16.f : 1.2f;
    model.weights().set(p, values);
  }
  std::vector<std::int32_t> ids, labels;
  for (int i = 0; i < 40; ++i) ids.push_back(i * i % 31), labels.push_back((i + 1) * (i + 1) % 31);
  const std::vector<int> lengths{23, 17};
  const tf::Batch batch{ids, lengths};
  tf::Gradients<Own, tf::cpu::Device> gradients(device);
  std::printf("%s\nloss %.4f\n", tf::describe<Own>({.context = 64}).c_str(),
              double{tf::loss_and_gradients(model, batch, labels, gradients)});

  double worst = 0;
  for (const tf::Parameter& p : tf::parameters<Own>) {
    const auto weight = model.weights().get(p), gradient = gradients.get(p);
    double length = 0;
    for (const float g : gradient) length += double{g} * double{g};
    length = std::sqrt(length);
    // Along its gradient the loss rises by the gradient's length per unit; a step that changes it by 1e-3.
    const auto loss_after = [&](double step) {
      auto moved = weight;
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(step * gradient[i] / length);
      model.weights().set(p, moved);
      return double{tf::loss(model, batch, labels)};
    };
    const double step = 1e-3 / length, slope = (loss_after(step) - loss_after(-step)) / (2 * step);
    model.weights().set(p, weight);
    worst = std::fmax(worst, std::fabs(slope / length - 1));
    std::printf("%-32s gradient %.6f, by differences %.6f\n", p.name().c_str(), length, slope);
  }
  std::printf("largest relative difference %.1e\n", worst);
  return worst < 5e-3 ? 0 : 1;
}
