// SPDX-License-Identifier: Apache-2.0
#include "cost/attention_cost.h"

#include <algorithm>
#include <cmath>

#include "cost/gemm_cost.h"
#include "operation/attention_parts.h"
#include "operation/optional_count.h"

namespace stepcast {
namespace {

constexpr double kRowsPerBlock = 128;  // query rows forward, key rows backward

// Kernels are built for multiples of 32 (FlashAttention-2 csrc/flash_attn, headdim 32..256).
double padded_head_dim(std::int64_t head_dim) {
  return 32.0 * static_cast<double>((head_dim + 31) / 32);
}

// Efficiency relative to that at 128. It was measured at 64, 128 and 256, and is linear in log d
// between them.
double head_dim_factor(const AttentionFit& fit, double head_dim) {
  const double octaves = std::clamp(std::log2(head_dim / 64), 0.0, 2.0);
  const auto low = std::min<std::size_t>(1, static_cast<std::size_t>(octaves));
  const double part = octaves - static_cast<double>(low);
  return fit.head_dim_factor[low] * (1 - part) + fit.head_dim_factor[low + 1] * part;
}

double saturation(double value, double half) { return value / (value + half); }

// The keys that a query meets at most: short windows pay for partly masked tiles as short
// sequences do.
double longest_span(const Attention& attention) {
  std::int64_t span = attention.key_length;
  for (const OptionalCount limit : {attention.window, attention.chunk}) {
    if (limit) span = std::min(span, limit.value);
  }
  return static_cast<double>(span);
}

double efficiency(const AttentionFit& fit, double sms, const Attention& attention) {
  const double length = longest_span(attention);
  const double rows =
      static_cast<double>(attention.backward ? attention.key_length : attention.query_length);
  const double blocks = static_cast<double>(attention.batch * attention.heads) *
                        std::ceil(rows / kRowsPerBlock) / sms;
  double out = attention.backward ? fit.backward_efficiency : fit.forward_efficiency;
  out *= head_dim_factor(fit, padded_head_dim(mean_head_dim(attention)));
  out *= saturation(length, attention.backward ? fit.backward_length_half : fit.length_half);
  out *= saturation(blocks, attention.backward ? fit.backward_blocks_half : fit.blocks_half);
  if (attention.causal) out *= fit.causal_efficiency * saturation(length, fit.causal_half_length);
  return out;
}

}  // namespace

std::int64_t mean_head_dim(const Attention& attention) {
  if (!attention.value_dim) return attention.head_dim;
  return (attention.head_dim + attention.value_dim.value) / 2;
}

Bytes traffic_of(const Attention& attention) {
  const double rows_of_queries =
      static_cast<double>(attention.batch * attention.heads * attention.query_length);
  const double rows_of_keys =
      static_cast<double>(attention.batch * attention.kv_heads * attention.key_length);
  const double row = static_cast<double>(mean_head_dim(attention) * size_of(attention.type));
  // Forward: q, k, v, output. Backward: those and their gradients, and dq in fp32 written and read.
  if (!attention.backward) return Bytes(row * (2 * rows_of_queries + 2 * rows_of_keys));
  return Bytes(row * (4 * rows_of_queries + 4 * rows_of_keys) +
               8.0 * rows_of_queries * static_cast<double>(attention.head_dim));
}

Seconds attention_form_time(const AttentionFit& fit, const Accelerator& accelerator,
                            const Attention& attention, Pace pace) {
  const double padding =
      padded_head_dim(mean_head_dim(attention)) / static_cast<double>(mean_head_dim(attention));
  const bool throttled = pace == Pace::kBackToBack && fit.back_to_back > 0;
  const double compute = flops_of(attention) * padding * (throttled ? fit.back_to_back : 1) /
                         (matrix_peak(accelerator, attention.type).value() *
                          efficiency(fit, static_cast<double>(accelerator.sm_count), attention));
  const double memory = traffic_of(attention).value() / accelerator.memory_bandwidth.value();
  return Seconds(fit.overhead_s + std::max(compute, memory));
}

}  // namespace stepcast
