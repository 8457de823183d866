// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/grid_sampler.h"

#include <memory>
#include <vector>

#include "calibrate/measure/scratch_arrays.h"
#include "kernels/cpu/cpu_kernels.h"

namespace stepcast {
namespace {

constexpr std::int64_t kCacheBytes = 32 << 20;  // of a last level

class HostScratch final : public ScratchMemory {
 public:
  void* allocate(std::int64_t bytes) override {
    // It is made of doubles, for their alignment.
    return memory_.emplace_back(static_cast<std::size_t>(bytes + 7) / 8).data();
  }
  Array integers(const std::vector<std::int64_t>& values) override {
    return {integers_.emplace_back(values).data(), DataType::kInt64};
  }
  Array bytes(const std::vector<std::int8_t>& values) override {
    return {bytes_.emplace_back(values).data(), DataType::kInt8};
  }

 private:
  std::vector<std::vector<double>> memory_;
  std::vector<std::vector<std::int64_t>> integers_;
  std::vector<std::vector<std::int8_t>> bytes_;
};

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
  HostScratch memory;
  const std::unique_ptr<Kernels> kernels = make_cpu_kernels();
  ScratchArrays arrays(operation.work, memory, *kernels, kCacheBytes);
  const auto call = [&] { call_on_scratch(operation.work, arrays, *kernels); };
  call();  // makes its arrays
  return measure(call, protocol, clock);
}

}  // namespace stepcast
