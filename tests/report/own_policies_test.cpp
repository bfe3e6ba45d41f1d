// The policies of examples/own_policies.hpp: the mask's span against its sees, derivatives on dual numbers, and that
// the library finds nothing slow about them.
#include <doctest/doctest.h>

#include "../../examples/own_policies.hpp"
#include "policy/dual.hpp"

namespace tf = typeformer;
using user::Dual;

TEST_CASE("the strided mask's span leaves out nothing that is seen, and what it calls full is seen by all") {
  for (const mine::Strided mask : {mine::Strided{}, mine::Strided{1, 3}, mine::Strided{5, 2}})
    for (int keys = 1; keys <= 14; ++keys)
      for (int first = 0; first < keys; ++first)
        for (int last = first; last < keys; ++last) {
          const tf::KeySpan span = mask.span(first, last, keys, {});
          for (int key = 0; key < keys; ++key) {
            bool any = false, all = true;
            for (int query = first; query <= last; ++query)
              (mask.sees(query, key, {}) ? any : all) = mask.sees(query, key, {});
            if (any) CHECK((span.begin <= key && key < span.end));
            if (span.full_begin <= key && key < span.full_end) CHECK(all);
          }
          CHECK((span.begin >= 0 && span.end <= keys && span.full_end <= keys));
        }
}

TEST_CASE("derivatives are those of the formulas") {
  for (double x = -30; x <= 30; x += .37) {
    const mine::DynamicTanh norm{.alpha = .8f};
    const Dual y = norm.normalize(Dual(x, 1), norm.scale(Dual(2)));
    CHECK(norm.normalize_backward(3., x, norm.scale(2.), 0., 0.) == doctest::Approx(3 * y.slope).epsilon(1e-9));
    // Dual has no select: the formula on either side of zero is one expression.
    const double softplus = std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
    CHECK(mine::Softplus{}(x) == doctest::Approx(softplus).epsilon(1e-12));
    const double h = 1e-5, slope = (mine::Softplus{}(x + h) - mine::Softplus{}(x - h)) / (2 * h);
    CHECK(mine::Softplus{}.derivative(x) == doctest::Approx(slope).epsilon(1e-8).scale(1));
  }
}

TEST_CASE("they are policies, and nothing about them is slow") {
  using Own = tf::Transformer<tf::Dims{.vocab = 31, .d_model = 24, .n_layers = 2, .d_ff = 48, .max_seq = 64},
                              mine::DynamicTanh{}, mine::Softplus{}, mine::LogDistance{}, tf::MHA(4), tf::PreNorm{},
                              mine::Strided{}>;
  static_assert(tf::Composition<Own> && tf::FormulaBias<mine::LogDistance> && tf::MaskWithSpan<mine::Strided>);
  CHECK(tf::description_of<Own>().remarks.empty());
  CHECK(tf::description_of<Own>().plan[1].operations[3].does[2] == "Strided mask");
}
