/// One unit, compiled several times: UNIT names its function; the flags differ.
#include "unit.hpp"

#include <typeformer/cpu.hpp>
#include <typeformer/train.hpp>
#include <typeformer/typeformer.hpp>
#if defined(UNIT_WITH_TEXT)
#include <typeformer/text.hpp>
#endif

#include <typeinfo>

Told UNIT() {
  return {typeid(typeformer::cpu::Device).name(), typeid(typeformer::Error).name(),
          typeformer::to_float(typeformer::from_float<typeformer::bf16>(1.00390625f))};
}
