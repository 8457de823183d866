// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/scratch_experts.h"

#include <cmath>
#include <vector>

#include "execute/call_kernel.h"

namespace stepcast {

void call_of_experts(const RouterScores& scores, ScratchArrays& arrays, Kernels& kernels) {
  const RouterShape shape{scores.size.rows(), scores.size.width, scores.top_k};
  const std::int64_t all = scores.size.elements;
  const ArraySpec numbers{all, DataType::kFp32};
  if (scores.backward) {
    const ArraySpec weights{shape.tokens * shape.top_k, DataType::kFp32};
    kernels.variants().route_backward({.shape = shape,
                                       .probabilities = arrays.read(1, numbers),
                                       .chosen = arrays.chosen(shape),
                                       .weight_gradient = arrays.read(3, weights),
                                       .logits_gradient = arrays.write(0, numbers)});
    return;
  }
  kernels.variants().route({.shape = shape,
                            .logits = arrays.read(0, numbers),
                            .probabilities = arrays.write(0, numbers),
                            .chosen = arrays.write(1, {all, DataType::kInt8})});
}

void call_of_experts(const TokenPermutation& moved, ScratchArrays& arrays, Kernels& kernels) {
  const std::int64_t width = moved.size.width, written = moved.size.rows();
  // The traffic tells how many rows there are on the other side.
  const double row_bytes = static_cast<double>(width * size_of(moved.type));
  const std::int64_t read = std::llround(moved.size.bytes / row_bytes) - written;
  const Array from = arrays.read(0, {read * width, moved.type});
  const Array to = arrays.write(0, {written * width, moved.type});
  const bool adds_up = (moved.move == TokenMove::kPermute) == moved.backward;
  if (moved.move != TokenMove::kSort && adds_up) {
    kernels.variants().add_rows({.from = from,
                                 .index = arrays.tokens(read, written, 0),
                                 .to = to,
                                 .rows = read,
                                 .targets = written,
                                 .width = width});
    return;
  }
  kernels.variants().take_rows({.from = from,
                                .index = arrays.tokens(written, read, 0),
                                .to = to,
                                .rows = written,
                                .width = width,
                                .sources = moved.move == TokenMove::kSort ? 0 : read});
}

void call_of_experts(const GroupedGemm& grouped, ScratchArrays& arrays, Kernels& kernels) {
  std::vector<std::int64_t> begins;
  for (std::int64_t expert = 0; expert <= grouped.experts; ++expert) {
    begins.push_back(expert * grouped.rows / grouped.experts);
  }
  call(grouped, begins, arrays, kernels);
}

void call_of_experts(const ExpertActivation& activation, ScratchArrays& arrays, Kernels& kernels) {
  const bool gated = activation.mlp == Mlp::kSwiglu;
  const auto kind = gated ? ActivationKind::kSwiglu : ActivationKind::kGelu;
  const std::int64_t rows = activation.size.rows(), width = activation.size.width;
  const ArraySpec out{rows * width, activation.type};
  const ArraySpec ups{(gated ? 2 : 1) * out.elements, activation.type};
  const ArraySpec weights{rows, DataType::kFp32};
  if (activation.backward) {
    kernels.variants().expert_activation_backward({.kind = kind,
                                                   .up = arrays.read(0, ups),
                                                   .weights = arrays.read(1, weights),
                                                   .gradient = arrays.read(2, out),
                                                   .up_gradient = arrays.write(0, ups),
                                                   .weight_gradient = arrays.write(1, weights),
                                                   .rows = rows,
                                                   .width = width});
    return;
  }
  kernels.variants().expert_activation({.kind = kind,
                                        .up = arrays.read(0, ups),
                                        .weights = arrays.read(1, weights),
                                        .out = arrays.write(0, out),
                                        .rows = rows,
                                        .width = width});
}

}  // namespace stepcast
