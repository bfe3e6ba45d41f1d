/// Training: from a loss to an update.
#pragma once
#include "typeformer/model/encoder_decoder.hpp"
#include "typeformer/model/transformer.hpp"
#include "typeformer/train/adamw.hpp"
#include "typeformer/train/clipping.hpp"
#include "typeformer/train/schedule.hpp"
#include "typeformer/typeformer.hpp"
