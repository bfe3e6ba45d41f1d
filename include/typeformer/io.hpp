/// Checkpoints: HuggingFace folders and GGUF files become models.
#pragma once
#include "typeformer/io/file_architecture.hpp"
#include "typeformer/io/load.hpp"
#include "typeformer/io/safetensors_write.hpp"
#include "typeformer/typeformer.hpp"
