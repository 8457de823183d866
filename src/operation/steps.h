// SPDX-License-Identifier: Apache-2.0
// Work that a framework without a compiler runs in steps, each a kernel of PyTorch of its own, and
// what the steps move together: they hand each other whole tensors.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "operation/memory_bound.h"

namespace stepcast {

struct Steps {
  double bytes;           // for one element, of activations that take `element` bytes
  std::int64_t launches;  // kernels

  KernelSize of(KernelSize size) const;  // the size of the one kernel, with these steps
};

Steps norm_steps(Norm norm, bool backward, double element);
Steps activation_steps(Mlp mlp, bool backward, double element);
// Experts with a bias: the clamped halves, the activation and the offset of the other, their
// product, and the routing weight in fp32.
Steps clamped_steps(bool backward, double element);
// The bias of an expert times the routing weight in fp32, added to a row of its output.
Steps weighted_bias_steps(bool backward, double element);
Steps rotary_steps(double element);  // of either pass
Steps residual_steps(bool dropout, double element);
Steps adapter_steps(double element);  // forward
Steps loss_steps();                   // of either pass, in fp32

}  // namespace stepcast
