/// Architectures as types: policies, compositions, and what a type knows about itself. Aliases of published models are
/// in family/, a header for each.
#pragma once
#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/model/parameters.hpp"
#include "typeformer/policy/composition.hpp"
#include "typeformer/report/describe.hpp"
