// The passes of the tiny models of this family, instantiated for the tests.
#include "model_run.hpp"

namespace models {

std::map<std::string, std::vector<double>> run(const std::string& model, support::Number number,
                                               const reference::Parameters<double>& parameters,
                                               const reference::Batch& batch) {
  return detail::run<tiny::Llama, tiny::LlamaTied>(model, number, parameters, batch);
}
Steps decode(const std::string& model, support::Number number, const reference::Parameters<double>& parameters,
             const reference::Sequence& sequence, std::size_t steps, const std::vector<std::int32_t>& given) {
  return detail::decode<tiny::Llama, tiny::LlamaTied>(model, number, parameters, sequence, steps, given);
}

}  // namespace models
