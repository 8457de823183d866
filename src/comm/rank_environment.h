// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, as its launcher says in the environment: torchrun (RANK, WORLD_SIZE,
// LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI's mpirun (OMPI_COMM_WORLD_RANK and so on) or srun
// (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID; with the last two the user has to give MASTER_ADDR
// and MASTER_PORT).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"

namespace stepcast {

struct RankEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;   // on its machine: the GPU that it takes
  std::string address;  // of rank 0's machine
  std::uint16_t port = 0;
};

// The value of a variable, or nothing; main passes std::getenv.
using ReadVariable = std::function<std::optional<std::string>(const std::string& name)>;

// torchrun's variables where RANK or WORLD_SIZE is set, else Open MPI's, else Slurm's. Every
// variable that is missing or wrong is listed.
Result<RankEnvironment> read_rank_environment(const ReadVariable& read);

}  // namespace stepcast
