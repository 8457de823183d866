// SPDX-License-Identifier: Apache-2.0
// The processes of a job with one GPU each, as mpirun has started them.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "comm/device_communicator.h"

namespace stepcast {

class GpuRanks {
 public:
  // `gpus` of the job. Where there are several, `processes` has one for each, over which they agree
  // on how to communicate; this one takes the GPU number `local_rank` of its machine, which becomes
  // the current one. Throws JobFailure: processes and GPUs do not match or this build has no NCCL;
  // CommunicationError.
  GpuRanks(std::int64_t gpus, Communicator* processes, int local_rank);

  int rank() const { return rank_; }
  int size() const { return size_; }
  DeviceCommunicator* world() const { return world_.get(); }  // null: alone
  // Ends the world, on all ranks at the same place: NCCL waits for those of a node there.
  void part() { world_.reset(); }

 private:
  int rank_ = 0;
  int size_ = 1;
  std::unique_ptr<DeviceCommunicator> world_;
};

}  // namespace stepcast
