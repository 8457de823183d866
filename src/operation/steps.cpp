// SPDX-License-Identifier: Apache-2.0
#include "operation/steps.h"

namespace stepcast {

KernelSize Steps::of(KernelSize size) const {
  size.bytes_in_steps = bytes * static_cast<double>(size.elements);
  size.launches = launches;
  return size;
}

// LayerNorm is one kernel (ATen/native/cuda/layer_norm_kernel.cu), whose backward reads both its
// inputs a second time for the sums over rows. RMSNorm as model code has it, in fp32
// (LlamaRMSNorm): widen, square, mean, scale, narrow, weigh. Backward: the gradients of the weight
// (two kernels) and of the narrow tensor, widen, those of both factors of the scale (three), of the
// mean, of the square (three), their sum, narrow.
Steps norm_steps(Norm norm, bool backward, double element) {
  if (norm == Norm::kLayerNorm) return {(backward ? 5 : 2) * element, backward ? 2 : 1};
  constexpr double kWide = 4;
  const bool narrow = element < kWide;
  const double casts = narrow ? 2 * (element + kWide) : 0;
  if (!backward) return {casts + 5 * kWide + 2 * element, narrow ? 8 : 6};
  return {casts + 17 * kWide + 6 * element, narrow ? 14 : 12};
}

// GELU is one kernel. SwiGLU is the activation and a product; backward two products and the
// activation's gradient.
Steps activation_steps(Mlp mlp, bool backward, double element) {
  if (mlp == Mlp::kGelu) return {(backward ? 3 : 2) * element, 1};
  return {(backward ? 9 : 5) * element, backward ? 3 : 2};
}

// Megatron, experts.py and fusions/fused_bias_geglu.py as PyTorch runs them: two clamps, the
// activation in one kernel, an offset, the product, the weight (widens), narrowed. Backward:
// widened, times weight, narrowed; times the activated rows and summed for the weight's gradient;
// two products; the activation; two clamps, each where a mask allows it; both halves put together.
Steps clamped_steps(bool backward, double element) {
  constexpr double kWide = 4;
  if (!backward) return {13 * element + 2 * kWide, 7};
  return {22 * element + 7 * kWide, 13};
}

// _apply_bias: the weighted bias (written), added (both read, written wide), all experts' rows put
// together (read and written), narrowed. Backward: widened; narrowed for the product; times the
// weight and summed; times the bias and summed.
Steps weighted_bias_steps(bool backward, double element) {
  constexpr double kWide = 4;
  if (!backward) return {2 * element + 6 * kWide, 4};
  return {2 * element + 8 * kWide, 6};
}

// A rotation is a product of complex numbers in fp32: copied, widened, turned, narrowed.
Steps rotary_steps(double element) {
  constexpr double kWide = 4;
  return {2 * element + 2 * (element + kWide) + 2 * kWide, 4};
}

// The bias is in the product's epilogue. Dropout writes a tensor and its mask.
Steps residual_steps(bool dropout, double element) {
  if (!dropout) return {3 * element, 1};
  return {5 * element + 1, 2};
}

// It is scaled, then added.
Steps adapter_steps(double element) { return {5 * element, 2}; }

// log_softmax and nll_loss. Rows are long: forward reads them for the maximum, the sum and the
// result; backward writes and reads the gradient, and reads the result
// (ATen/native/cuda/SoftMax.cu).
Steps loss_steps() { return {16, 2}; }

}  // namespace stepcast
