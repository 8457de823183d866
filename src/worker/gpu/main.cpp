// SPDX-License-Identifier: Apache-2.0
// stepcast-gpu JOB: runs or measures on this machine's GPUs. `stepcast validate` and `stepcast
// calibrate` with `--backend cuda` write the job, start this and read its results.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

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
  return tell_of_failures(report, [&] {
    if (!job) throw JobFailure(job.error());
    const std::int64_t gpus = job->gpus.value_or(1);
    // CUDA blames the machine or the job: an error of the input.
    try {
      if (job->task == "devices") {
        list_gpus(*job);
      } else if (job->is_calibration()) {
        GpuRanks ranks(gpus, processes.world(), processes.local_rank());
        calibrate_gpu_job(*job, ranks, report);
      } else if (job->is_run()) {
        const DeviceUse use;  // before the ranks meet: communicators count
        const GpuRanks ranks(gpus, processes.world(), processes.local_rank());
        run_gpu_job(*job, ranks.rank(), ranks.world(), use, report);
      } else {
        throw JobFailure(RankFailure::kInput, "task: '" + job->task + "' is not known");
      }
    } catch (const cuda::OutOfDeviceMemory& error) {
      throw JobFailure(RankFailure::kOutOfMemory, error.what());
    } catch (const cuda::CudaError& error) {
      throw JobFailure(RankFailure::kInput, error.what());
    }
  });
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
