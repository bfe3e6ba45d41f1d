/// One forward pass of a published model on the CPU: a unit of the table of compile times, and nothing more.
#include <typeformer/cpu.hpp>
#include <typeformer/family/llama.hpp>
#include <typeformer/model/transformer.hpp>

namespace tf = typeformer;

tf::Logits logits(const tf::Model<tf::SmolLM2_135M, tf::cpu::Device>& model, const tf::Batch& batch) {
  return tf::forward(model, batch);
}
