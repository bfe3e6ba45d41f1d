/// Architectures as types: policies, compositions, aliases of published models, and what a type knows about itself.
#pragma once
#include "typeformer/core/error.hpp"
#include "typeformer/core/scalar.hpp"
#include "typeformer/model/parameters.hpp"
#include "typeformer/policy/composition.hpp"
#include "typeformer/report/describe.hpp"
