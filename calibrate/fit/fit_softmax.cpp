// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_softmax.h"

#include <algorithm>

#include "core/statistics.h"

namespace stepcast {
namespace {

// Below, copies of queries, keys and values (of order s d beside s s) weigh in the charts.
constexpr std::int64_t kShortest = 4096;

// Forward: scores and context. Backward: two products for each of them.
double product_seconds(const KernelCosts& costs, const AttentionSample& sample) {
  const std::int64_t s = sample.sequence, d = sample.head_dim, batch = sample.batch * sample.heads;
  const auto time = [&](GemmRole role, std::int64_t n, std::int64_t k) {
    return costs.price(Gemm{role, batch, s, n, k, DataType::kBf16, DataType::kBf16, false})
        .time.value();
  };
  const double wide = time(GemmRole::kForward, s, d) + time(GemmRole::kInputGradient, s, d);
  return wide + time(GemmRole::kForward, d, s) + 3 * time(GemmRole::kInputGradient, d, s);
}

// PyTorch's kernels for rows above 1024 elements (ATen/native/cuda/SoftMax.cu, cunn_SoftMaxForward
// and cunn_SoftMaxBackward): forward reads for the maximum, the sum and the result and writes it,
// backward reads both its inputs twice.
double softmax_seconds(const KernelCosts& costs, const AttentionSample& sample) {
  const std::int64_t scores = sample.batch * sample.heads * sample.sequence * sample.sequence;
  const auto time = [&](bool backward) {
    const double bytes = (backward ? 5.0 : 4.0) * 2 * static_cast<double>(scores);
    return costs
        .price(MemoryBound{MemoryBoundKind::kSoftmax, backward, scores, sample.sequence, bytes})
        .time.value();
  };
  return time(false) + time(true);
}

}  // namespace

double fit_softmax_factor(const KernelCosts& costs,
                          const std::vector<AttentionMeasurement>& unfused) {
  std::vector<double> factors;
  for (const AttentionMeasurement& point : unfused) {
    if (point.pass != AttentionPass::kBoth || point.sample.causal) continue;
    if (point.sample.sequence < kShortest) continue;
    const double left = point.seconds - product_seconds(costs, point.sample);
    factors.push_back(std::max(1.0, left / softmax_seconds(costs, point.sample)));
  }
  return factors.empty() ? 1.0 : median(factors);
}

}  // namespace stepcast
