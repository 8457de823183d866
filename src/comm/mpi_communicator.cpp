// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_communicator.h"

#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <exception>

#include "comm/group_communicator.h"
#include "comm/mpi_transport.h"
#include "comm/progress_driver.h"
#include "comm/rank_group.h"

namespace stepcast {

struct MpiWorld::State {
  std::shared_ptr<MpiTransport> transport;
  std::shared_ptr<ProgressDriver> progress;
  int local_rank = 0, local_size = 0;
  std::string hostname;
  int worlds = 0;
};

namespace {

void initialise() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided >= MPI_THREAD_MULTIPLE) return;
  MPI_Finalize();
  throw CommunicationError(
      fmt::format("this MPI library gives thread level {}, and {} (MPI_THREAD_MULTIPLE) is needed",
                  provided, MPI_THREAD_MULTIPLE));
}

std::string processor_name() {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  return {name, static_cast<std::size_t>(length)};
}

}  // namespace

MpiWorld::MpiWorld() : state_(std::make_unique<State>()) {
  initialise();
  state_->hostname = processor_name();
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_rank(machine, &state_->local_rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(machine, &state_->local_size), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  state_->transport = make_mpi_transport();
  state_->progress = std::make_shared<ProgressDriver>(state_->transport);
}

MpiWorld::~MpiWorld() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    if (state_->transport->close()) MPI_Finalize();
  } catch (const CommunicationError&) {
    // mpirun reports the process that did not finalise.
  }
}

int MpiWorld::rank() const { return state_->transport->process(); }

int MpiWorld::size() const { return state_->transport->processes(); }

int MpiWorld::local_rank() const { return state_->local_rank; }

int MpiWorld::local_size() const { return state_->local_size; }

const std::string& MpiWorld::hostname() const { return state_->hostname; }

std::unique_ptr<Communicator> MpiWorld::world() {
  const int number = state_->worlds++;
  std::string name = number == 0 ? "world" : fmt::format("world#{}", number);
  return std::make_unique<GroupCommunicator>(
      std::make_shared<RankGroup>(state_->progress, std::move(name)));
}

}  // namespace stepcast
