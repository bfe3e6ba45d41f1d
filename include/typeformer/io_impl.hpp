/// The bodies of io.hpp. In a program that defines TYPEFORMER_SEPARATE_COMPILATION for all its sources, exactly one of
/// them includes this header, and text_impl.hpp when it uses text.hpp. The CMake option of that name does both.
#pragma once
#include "typeformer/io.hpp"
#include "typeformer/io/load_impl.hpp"
#include "typeformer/io/read_architecture_impl.hpp"
#include "typeformer/io/safetensors_write_impl.hpp"
