/// Checkpoints: HuggingFace folders and GGUF files become models (load), say what they are (read_architecture), and
/// tensors are written (write_safetensors). For the tensors of a file by themselves include io/tensor_source.hpp.
#pragma once
#include "typeformer/io/load.hpp"
#include "typeformer/io/read_architecture.hpp"
#include "typeformer/io/safetensors_write.hpp"
#include "typeformer/typeformer.hpp"
