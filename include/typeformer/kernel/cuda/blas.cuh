#pragma once
#include "typeformer/core/annotate.hpp"
namespace typeformer::inline TYPEFORMER_ABI::cuda::detail {
class Blas {};
}
