// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention_sinks.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/floats.h"

namespace stepcast::cpu {
namespace {

// Calls visit(head, place of the head's sum, token) for every query.
template <typename Visit>
void for_queries(const AttentionShape& shape, const Visit& visit) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t i = 0; i < shape.sequence; ++i) {
        visit(h, (b * shape.heads + h) * shape.sequence + i, b * shape.sequence + i);
      }
    }
  }
}

}  // namespace

void add_sinks(const AttentionSinkArguments& call) {
  const std::int64_t width = call.shape.value_width();
  float *sums = floats(call.log_sum_exp), *context = floats(call.context.array);
  const float* sinks = floats(call.sinks);
  for_queries(call.shape, [&](std::int64_t head, std::int64_t at, std::int64_t token) {
    const float sum = sums[at], sink = sinks[head];
    const float joined = std::max(sum, sink) + std::log1p(std::exp(-std::abs(sum - sink)));
    scale(context + token * call.context.stride + head * width, std::exp(sum - joined), width);
    sums[at] = joined;
  });
}

void sink_gradient(const SinkGradientArguments& call) {
  const std::int64_t width = call.shape.value_width();
  const float *sums = floats(call.log_sum_exp), *sinks = floats(call.sinks);
  const float *context = floats(call.context.array), *flowing = floats(call.context_gradient.array);
  float* out = floats(call.gradient);
  for_queries(call.shape, [&](std::int64_t head, std::int64_t at, std::int64_t token) {
    const float* of_context = context + token * call.context.stride + head * width;
    const float* of_gradient = flowing + token * call.context_gradient.stride + head * width;
    float product = 0;
    for (std::int64_t i = 0; i < width; ++i) product += of_context[i] * of_gradient[i];
    out[head] -= std::exp(sinks[head] - sums[at]) * product;
  });
}

}  // namespace stepcast::cpu
