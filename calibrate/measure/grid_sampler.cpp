// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/grid_sampler.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/gemm.h"

namespace stepcast {
namespace {

using Input = cpu::Matrix<const float>;

// Copies of the operands, in turn, that together are larger than a last-level cache.
class Rotation {
 public:
  explicit Rotation(std::int64_t elements)
      : elements_(elements),
        copies_(std::clamp<std::int64_t>(kCacheElements / std::max<std::int64_t>(elements, 1), 1,
                                         kMostCopies)),
        data_(static_cast<std::size_t>(elements * copies_), 0.5F) {}
  float* next() {
    turn_ = (turn_ + 1) % copies_;
    return data_.data() + turn_ * elements_;
  }

 private:
  static constexpr std::int64_t kCacheElements = (64 << 20) / 4;
  static constexpr std::int64_t kMostCopies = 64;
  std::int64_t elements_, copies_;
  std::vector<float> data_;
  std::int64_t turn_ = 0;
};

Result<Measurement> sample(const Gemm& gemm, const MeasurementProtocol& protocol,
                           MeasuringClock& clock) {
  Rotation a(gemm.m * gemm.k), b(gemm.k * gemm.n), c(gemm.m * gemm.n);
  const bool weight = gemm.role == GemmRole::kWeightGradient;
  const bool forward = gemm.role == GemmRole::kForward;
  return measure(
      [&] {
        const Input left{a.next(), weight ? gemm.m : gemm.k, weight};
        const Input right{b.next(), forward ? gemm.k : gemm.n, forward};
        cpu::gemm<float>(gemm.m, gemm.n, gemm.k, left, right, {c.next(), gemm.n}, gemm.accumulate);
      },
      protocol, clock);
}

Result<Measurement> sample(const Attention& attention, const MeasurementProtocol& protocol,
                           MeasuringClock& clock) {
  const cpu::AttentionShape shape{attention.batch,        attention.heads,    attention.kv_heads,
                                  attention.query_length, attention.head_dim, attention.causal};
  const std::int64_t tokens = shape.batch * shape.sequence;
  const std::int64_t query = shape.heads * shape.head_dim, key = shape.kv_heads * shape.head_dim;
  Rotation q(tokens * query), k(tokens * key), v(tokens * key), context(tokens * query);
  Rotation dq(tokens * query), dk(tokens * key), dv(tokens * key), work(tokens * query);
  std::vector<float> log_sum(static_cast<std::size_t>(tokens * shape.heads), 6.0F);
  return measure(
      [&] {
        if (!attention.backward) {
          cpu::attention<float>(shape, {q.next(), query}, {k.next(), key}, {v.next(), key},
                                {context.next(), query}, log_sum.data());
          return;
        }
        cpu::attention_backward<float>(shape, {q.next(), query}, {k.next(), key}, {v.next(), key},
                                       {context.next(), query}, log_sum.data(),
                                       {context.next(), query}, {dq.next(), query},
                                       {dk.next(), key}, {dv.next(), key}, work.next());
      },
      protocol, clock);
}

}  // namespace

bool can_sample_alone(const Operation& operation) {
  const auto* gemm = std::get_if<Gemm>(&operation.work);
  if (gemm != nullptr) return gemm->batch == 1 && gemm->input == DataType::kFp32;
  const auto* attention = std::get_if<Attention>(&operation.work);
  return attention != nullptr && attention->type == DataType::kFp32 &&
         attention->query_length == attention->key_length;
}

Result<Measurement> sample_alone(const Operation& operation, const MeasurementProtocol& protocol) {
  ThreadClock clock;
  if (const auto* gemm = std::get_if<Gemm>(&operation.work)) return sample(*gemm, protocol, clock);
  return sample(std::get<Attention>(operation.work), protocol, clock);
}

}  // namespace stepcast
