/// One unit, compiled several times: UNIT names its function.
#include "unit.hpp"

#include <span>
#include <typeinfo>

#include "model/tiny_models.hpp"
#include "typeformer/cpu.hpp"
#include "typeformer/io.hpp"
#include "typeformer/model/encoder_decoder.hpp"

UnitResult UNIT(const UnitInput& input) {
  namespace tf = typeformer;
  UnitResult result{
      typeid(tf::cpu::Device).name(), std::vector<float>(input.x.size()), std::vector<float>(input.x.size()), {}};
  tf::cpu::Device on(2);
  const std::vector<float> gain(static_cast<std::size_t>(input.width), 1.5f), bias = gain;
  norm_rows(on, tf::norm_form(tf::fixed<tf::LayerNorm{}>),
            tf::NormArgs<float>{.y = result.normed.data(),
                                .x = input.x.data(),
                                .gain = gain.data(),
                                .bias = bias.data(),
                                .rows = input.rows,
                                .width = input.width});
  const tf::Segment segment{.queries = input.rows, .keys = input.rows};
  attend(on, tf::Causal{}, tf::ScoreForm<false, tf::NoBias>{.scale = .25f},
         tf::AttendArgs<float>{.o = result.attended.data(),
                               .q = input.x.data(),
                               .k = input.x.data(),
                               .v = input.x.data(),
                               .segments = &segment,
                               .segment_count = 1,
                               .heads = 1,
                               .kv_heads = 1,
                               .head_dim = input.width});
  const auto model = tf::load<tiny::Llama>(on, input.folder);
  const int length = static_cast<int>(input.ids.size());
  result.logits = forward(model, tf::Batch{input.ids, std::span(&length, 1)}).values;
  return result;
}
