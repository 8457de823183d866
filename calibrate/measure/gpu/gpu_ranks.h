// SPDX-License-Identifier: Apache-2.0
// The processes of a job with one GPU each, as torchrun, mpirun or srun has started them.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/device_communicator.h"
#include "comm/rank_environment.h"
#include "comm/tcp_store.h"

namespace stepcast {

class GpuRanks {
 public:
  // `gpus` of the job. Where there are several, the environment tells which one this is, and it
  // becomes the current one. Throws JobFailure: the environment is wrong or this build has no NCCL;
  // CommunicationError.
  GpuRanks(std::int64_t gpus, const ReadVariable& read);

  int rank() const { return own_.rank; }
  int size() const { return own_.size; }
  DeviceCommunicator* world() const { return world_.get(); }  // null: alone
  // Ends the world, on all ranks at the same place: NCCL waits for those of a node there.
  void part() { world_.reset(); }

 private:
  RankEnvironment own_;
  std::unique_ptr<TcpStoreServer> server_;  // on rank 0
  std::unique_ptr<TcpStore> store_;
  std::unique_ptr<DeviceCommunicator> world_;
};

}  // namespace stepcast
