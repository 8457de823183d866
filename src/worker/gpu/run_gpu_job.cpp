// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/run_gpu_job.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "execute/cuda/cuda_device.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/device_memory.h"
#include "launch/host_facts.h"
#include "worker/run_place.h"

namespace stepcast {
namespace {

void all_reduce(DeviceCommunicator* world, std::span<float> values, Reduction reduction) {
  if (world == nullptr) return;
  const auto count = static_cast<std::int64_t>(values.size());
  const cuda::DeviceArray<float> data(std::vector<float>(values.begin(), values.end()));
  world->start_all_reduce({data.data(), count, DataType::kFp32}, reduction, nullptr)->wait();
  const std::vector<float> result = data.on_host();
  std::copy(result.begin(), result.end(), values.begin());
}

}  // namespace

void run_gpu_job(const Job& job, int rank, DeviceCommunicator* world, const DeviceUse& use,
                 RankReporter& report) {
  if (const auto why = cuda::why_no_gpu()) throw cuda::CudaError(*why);
  const auto add_facts = [&](Device& device, RankFile& result) {
    const std::int64_t peak = static_cast<CudaDevice&>(device).peak_used_bytes();
    result.device_used = use.bytes();
    result.pool_used = peak;
    const auto& kernels = static_cast<cuda::CudaKernels&>(device.kernels());
    for (const std::string& worry : kernels.attention_kernels().worries()) report.warning(worry);
  };
  const RankId own(static_cast<std::int32_t>(job.rank.value_or(rank)));
  run_job({.job = job,
           .report = report,
           .host = host_name(),
           .rank = own,
           .world = job.rank ? nullptr : world,
           .all_reduce = [&](std::span<float> values,
                             Reduction reduction) { all_reduce(world, values, reduction); },
           // Products of fp32 in fp32, as PyTorch has them unless told otherwise.
           .device =
               [&] {
                 return std::make_unique<CudaDevice>(cuda::GemmSettings{.tf32 = false},
                                                     cuda::attention_settings(job.attention));
               },
           // It runs a few steps: a search among algorithms would take longer than they do.
           .reference_device =
               [] {
                 return std::make_unique<CudaDevice>(
                     cuda::GemmSettings{.tf32 = false, .candidates = 1},
                     cuda::attention_settings("own"));
               },
           .marks_apart = true,
           .patience = std::chrono::minutes(10),
           .add_facts = add_facts});
}

}  // namespace stepcast
