// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_ranks.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>

#include "calibrate/measure/job_failure.h"
#include "kernels/cuda/cuda_error.h"
#ifdef STEPCAST_HAS_NCCL
#include "comm/nccl/nccl_communicator.h"
#endif

namespace stepcast {

#ifdef STEPCAST_HAS_NCCL
namespace {

// If the launcher shows each rank a GPU of its own, that is the first.
int device_of(int rank, int local_rank) {
  int devices = 0;
  cuda::check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices == 1) return 0;
  if (local_rank < devices) return local_rank;
  throw JobFailure(RankFailure::kInput,
                   fmt::format("rank {} is number {} on its machine, which has {} GPUs", rank,
                               local_rank + 1, devices));
}

}  // namespace
#endif

GpuRanks::GpuRanks(std::int64_t gpus, Communicator* processes, int local_rank) {
  if (gpus == 1) return;
  rank_ = processes == nullptr ? 0 : processes->rank();
  size_ = processes == nullptr ? 1 : processes->size();
  if (size_ != gpus) {
    throw JobFailure(
        RankFailure::kInput,
        fmt::format("mpirun has started {} processes, and the job is for {} GPUs", size_, gpus));
  }
#ifdef STEPCAST_HAS_NCCL
  constexpr std::chrono::minutes kToStart(2);  // ranks come one after the other
  if (const auto why = why_no_nccl()) throw JobFailure(RankFailure::kInput, *why);
  processes->set_time_limit(kToStart);
  world_ =
      make_nccl_world({rank_, size_, device_of(rank_, local_rank)}, share_by(*processes), kToStart);
#else
  static_cast<void>(local_rank);
  throw JobFailure(RankFailure::kInput,
                   "several GPUs communicate by NCCL, which this build does not have");
#endif
}

}  // namespace stepcast
