/// Running models on the CPU: the device with every operation of the contract, and a model's passes. No dependency.
#pragma once
#include "typeformer/kernel/cpu/attention.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/elementwise.hpp"
#include "typeformer/kernel/cpu/feedforward.hpp"
#include "typeformer/kernel/cpu/heads.hpp"
#include "typeformer/kernel/cpu/matmul.hpp"
#include "typeformer/kernel/cpu/norm.hpp"
#include "typeformer/kernel/cpu/vocabulary.hpp"
#include "typeformer/model/encoder_decoder.hpp"
#include "typeformer/model/sampling.hpp"
#include "typeformer/model/transformer.hpp"
#include "typeformer/typeformer.hpp"
