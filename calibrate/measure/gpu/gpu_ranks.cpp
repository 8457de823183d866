// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/gpu/gpu_ranks.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>

#include "calibrate/measure/job.h"
#include "kernels/cuda/cuda_error.h"
#ifdef STEPCAST_HAS_NCCL
#include "comm/nccl/nccl_communicator.h"
#endif

namespace stepcast {

#ifdef STEPCAST_HAS_NCCL
namespace {

// Where the launcher shows each rank a GPU of its own, that is the first.
int device_of(const RankEnvironment& rank) {
  int devices = 0;
  cuda::check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices == 1) return 0;
  if (rank.local_rank < devices) return rank.local_rank;
  throw JobFailure(RankFailure::kInput,
                   fmt::format("rank {} is number {} on its machine, which has {} GPUs", rank.rank,
                               rank.local_rank + 1, devices));
}

}  // namespace
#endif

GpuRanks::GpuRanks(std::int64_t gpus, const ReadVariable& read) {
  if (gpus == 1) return;
  const auto told = read_rank_environment(read);
  if (!told) throw JobFailure(told.error());
  own_ = *told;
  if (own_.size != gpus) {
    throw JobFailure(
        RankFailure::kInput,
        fmt::format("the launcher has started {} processes, and the job is for {} GPUs", own_.size,
                    gpus));
  }
#ifdef STEPCAST_HAS_NCCL
  constexpr std::chrono::minutes kToStart(2);  // ranks come one after the other
  if (const auto why = why_no_nccl()) throw JobFailure(RankFailure::kInput, *why);
  if (own_.rank == 0) server_ = std::make_unique<TcpStoreServer>(own_.port);
  store_ = std::make_unique<TcpStore>(own_.address, own_.port, kToStart);
  world_ = make_nccl_world({own_.rank, own_.size, device_of(own_)},
                           share_by(*store_, "nccl-id", own_.rank), kToStart);
#else
  throw JobFailure(RankFailure::kInput,
                   "several GPUs communicate by NCCL, which this build does not have");
#endif
}

}  // namespace stepcast
