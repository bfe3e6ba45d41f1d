/// The judge: every network of the design space as plain scalar code, written from the papers, independent of the
/// library (nothing of policy/, kernel/ or model/ is included). A run-time `reference::Config` describes the network,
/// parameters go by canonical name.
///
///   forward(config, parameters, batch)    every hidden state and the logits of every sequence
///   loss(config, parameters, batch)       mean cross-entropy, with z-loss and label smoothing
///   gradients(config, parameters, batch)  by every parameter, every hidden state and the logits
///   norm_rows, linear, attend, ...        single operations; pullback() differentiates any of them
///
/// All of it runs on float (the naive result of the same precision), double (the judge), Dual (exact directional
/// derivatives) and Var (exact gradients; there is no backward formula in the judge).
#pragma once
#include "reference/config.hpp"
#include "reference/gradient.hpp"
#include "reference/network.hpp"
#include "reference/number.hpp"
#include "reference/operation.hpp"
#include "reference/tensor.hpp"
