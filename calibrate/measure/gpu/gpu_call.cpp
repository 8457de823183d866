// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_call.h"

#include <memory>
#include <vector>

#include "calibrate/measure/scratch_arrays.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_memory.h"

namespace stepcast {
namespace {

class DeviceScratch final : public ScratchMemory {
 public:
  void* allocate(std::int64_t bytes) override {
    return memory_.emplace_back(static_cast<std::size_t>(bytes)).data();
  }
  Array integers(const std::vector<std::int64_t>& values) override {
    return {integers_.emplace_back(values).data(), DataType::kInt64};
  }
  Array bytes(const std::vector<std::int8_t>& values) override {
    return {bytes_.emplace_back(values).data(), DataType::kInt8};
  }

 private:
  std::vector<cuda::DeviceMemory> memory_;
  std::vector<cuda::DeviceArray<std::int64_t>> integers_;
  std::vector<cuda::DeviceArray<std::int8_t>> bytes_;
};

struct Scratch {
  Scratch(const Operation::Work& own, const GpuContext& context)
      : work(own), arrays(work, memory, *context.kernels, context.cache_bytes) {}
  Operation::Work work;
  DeviceScratch memory;
  ScratchArrays arrays;
};

// Bytes that the own kernels move, when the program's framework would move others; else 0.
double moved_by(const Operation::Work& work) {
  const auto kernel = memory_bound(work);
  if (!kernel) return 0;
  const auto elements = static_cast<double>(kernel->elements);
  // One pass over the logits, and one that also writes them.
  if (const auto* loss = std::get_if<CrossEntropy>(&work)) {
    return elements * static_cast<double>(size_of(loss->type)) * (loss->backward ? 2 : 1);
  }
  // The rows of the table stay in the cache.
  const auto* positions = std::get_if<PositionEmbedding>(&work);
  if (positions != nullptr && positions->backward) {
    return elements * static_cast<double>(size_of(positions->type));
  }
  return kernel->bytes;
}

}  // namespace

GpuCall gpu_call(const Operation::Work& work, const GpuContext& context) {
  const auto* gemm = std::get_if<Gemm>(&work);
  if (gemm != nullptr && is_scaled(gemm->input)) return fp8_gemm_call(*gemm, context);
  if (gemm != nullptr && gemm->batch > 1) return batched_gemm_call(*gemm, context);
  const auto* grouped = std::get_if<GroupedGemm>(&work);
  if (grouped != nullptr && is_scaled(grouped->input)) {
    return fp8_gemm_call(mean_gemm_of(*grouped), context);
  }
  const auto* cast = std::get_if<Cast>(&work);
  if (cast != nullptr && cast->subject >= CastSubject::kScale && !is_scaled(cast->from)) {
    return fp8_cast_call(*cast, context);
  }
  const auto* attention = std::get_if<Attention>(&work);
  if (attention != nullptr &&
      (attention->head_dim > cuda::kLargestHead || !attention->is_plain())) {
    return {};
  }
  const auto scratch = std::make_shared<Scratch>(work, context);
  cuda::CudaKernels& kernels = *context.kernels;
  // The first call makes its arrays, outside of any recording.
  kernels.use(nullptr);
  if (!call_on_scratch(scratch->work, scratch->arrays, kernels)) return {};
  return {[scratch, &kernels](cuda::Stream stream) {
            kernels.use(stream);
            call_on_scratch(scratch->work, scratch->arrays, kernels);
          },
          moved_by(work)};
}

}  // namespace stepcast
