/// Checkpoints: HuggingFace folders and GGUF files become models.
#pragma once
#include "typeformer/io/load.hpp"
#include "typeformer/typeformer.hpp"
