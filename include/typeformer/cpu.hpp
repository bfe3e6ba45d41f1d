/// The CPU device: every operation of the contract, without any dependency.
#pragma once
#include "typeformer/kernel/cpu/attention.hpp"
#include "typeformer/kernel/cpu/device.hpp"
#include "typeformer/kernel/cpu/elementwise.hpp"
#include "typeformer/kernel/cpu/feedforward.hpp"
#include "typeformer/kernel/cpu/heads.hpp"
#include "typeformer/kernel/cpu/matmul.hpp"
#include "typeformer/kernel/cpu/norm.hpp"
#include "typeformer/kernel/cpu/vocabulary.hpp"
