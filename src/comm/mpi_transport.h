// SPDX-License-Identifier: Apache-2.0
// Messages between processes by MPI's point-to-point calls, on one communicator of its own.
//
// A channel's name (64-bit tag, name of the context) does not fit into MPI's tag. So the sender
// numbers its channels and announces each once, before its first message, under a tag kept for
// that: "channel 7 is tag t of context c". The number is the MPI tag of the channel's messages. A
// receiver posts a receive only when it knows the number, and receives of one channel in order, so
// that a message cannot meet a receive of another channel.
#pragma once

#include <memory>

#include "comm/transport.h"

namespace stepcast {

class MpiTransport : public Transport {
 public:
  // Before MPI is finalised; nothing may be started afterwards. False if messages were withdrawn
  // that MPI still holds after some seconds: finalising would wait for ranks that are gone.
  virtual bool close() = 0;
};

// MPI is initialised with MPI_THREAD_MULTIPLE. Called by all processes of the job.
std::shared_ptr<MpiTransport> make_mpi_transport();

// Throws CommunicationError with MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace stepcast
