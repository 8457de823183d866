// SPDX-License-Identifier: Apache-2.0
// stepcast-gpu JOB: runs or measures on this machine's GPUs. `stepcast validate` and `stepcast
// calibrate` with `--backend cuda` write the job, start this and read its results.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <system_error>

#include "calibrate/measure/gpu/calibrate_gpu_job.h"
#include "calibrate/measure/gpu/gpu_ranks.h"
#include "comm/mpi_communicator.h"
#include "kernels/cuda/cuda_error.h"
#include "shipped/carry_data.h"
#include "worker/gpu/list_gpus.h"
#include "worker/gpu/run_gpu_job.h"
#include "worker/last_words.h"

namespace stepcast {
namespace {

// The processes of a job with several GPUs; one GPU needs no MPI.
class Processes {
 public:
  explicit Processes(const Result<Job>& job) {
    if (!job || job->gpus.value_or(1) == 1) return;
    mpi_.emplace();
    world_ = mpi_->world();
  }
  Communicator* world() const { return world_.get(); }
  int rank() const { return mpi_ ? mpi_->rank() : 0; }
  int local_rank() const { return mpi_ ? mpi_->local_rank() : 0; }

 private:
  std::optional<MpiWorld> mpi_;
  std::unique_ptr<Communicator> world_;
};

int run(const std::string& file) {
  const auto job = load_job(file);
  const Processes processes(job);
  RankReporter report(processes.rank());
  tell_when_memory_ends(report);
  report.started();
  const auto fail = [&](RankFailure kind, const char* what) { report.failed(kind, what); };
  try {
    if (!job) throw JobFailure(job.error());
    if (job->task == "devices") {
      list_gpus(*job);
    } else if (job->task == "calibrate") {
      GpuRanks ranks(job->gpus.value_or(1), processes.world(), processes.local_rank());
      calibrate_gpu_job(*job, ranks, report);
    } else if (job->task == "run") {
      const DeviceUse use;  // before the ranks meet: communicators count
      const GpuRanks ranks(job->gpus.value_or(1), processes.world(), processes.local_rank());
      run_gpu_job(*job, ranks.rank(), ranks.world(), use, report);
    } else {
      throw JobFailure(RankFailure::kInput, "task: '" + job->task + "' is not known");
    }
    report.finished();
    return 0;
  } catch (const JobFailure& error) {
    fail(error.kind(), error.what());
  } catch (const cuda::OutOfDeviceMemory& error) {
    fail(RankFailure::kOutOfMemory, error.what());
  } catch (const CommunicationError& error) {
    fail(RankFailure::kCommunication, error.what());
  } catch (const cuda::CudaError& error) {
    fail(RankFailure::kInput, error.what());
  } catch (const std::bad_alloc&) {
    fail(RankFailure::kOutOfMemory, kNoMemory);
  } catch (const std::system_error& error) {
    fail(RankFailure::kMachine, error.what());
  } catch (const std::exception& error) {
    fail(RankFailure::kInternal, error.what());
  }
  std::_Exit(1);  // without waiting for ranks that will not come
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs(
        "usage: stepcast-gpu JOB   (started by stepcast validate and calibrate --backend cuda)\n",
        stderr);
    return 2;
  }
  stepcast::carry_shipped_data();
  return stepcast::run(argv[1]);
}
