// SPDX-License-Identifier: Apache-2.0
// A world whose ranks are processes of an MPI job.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"

namespace stepcast {

// MPI from its initialisation to its end: one per process, made and destroyed by the thread that
// runs main. Throws CommunicationError if the library does not let all threads call it.
//
// Communicators must not be used after it is gone. When it is destroyed by an exception, or after
// operations that failed with messages under way, it leaves MPI as it is: finalising would wait for
// ranks that will not come, while mpirun ends a job one of whose processes left like that.
class MpiWorld {
 public:
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;  // among the processes of this machine
  int local_size() const;
  const std::string& hostname() const;

  // All processes of the job; called equally often by all. Worlds do not mix.
  std::unique_ptr<Communicator> world();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast
