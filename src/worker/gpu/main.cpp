// SPDX-License-Identifier: Apache-2.0
// stepcast-gpu JOB: runs or measures on this machine's GPUs. `stepcast validate` and `stepcast
// calibrate` with `--backend cuda` write the job, start this and read its results.
#include <fmt/format.h>

#include <cstdlib>
#include <new>
#include <optional>
#include <system_error>

#include "calibrate/measure/gpu/calibrate_gpu_job.h"
#include "calibrate/measure/gpu/gpu_ranks.h"
#include "kernels/cuda/cuda_error.h"
#include "worker/gpu/list_gpus.h"
#include "worker/gpu/run_gpu_job.h"
#include "worker/last_words.h"

namespace stepcast {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

// As who this process reports: its launcher knows ranks where that is mpirun, and each rank's own
// launcher knows that one alone under torchrun and srun.
int reported_rank(const Result<Job>& job) {
  if (!job || job->gpus == 1 || variable("RANK") || !variable("OMPI_COMM_WORLD_RANK")) return 0;
  const auto told = read_rank_environment(variable);
  return told ? told->rank : 0;
}

int run(const std::string& file) {
  const auto job = load_job(file);
  RankReporter report(reported_rank(job));
  tell_when_memory_ends(report);
  report.started();
  const auto fail = [&](RankFailure kind, const char* what) {
    report.failed(kind, what);
    return 1;
  };
  try {
    if (!job) throw JobFailure(job.error());
    if (job->task == "devices") {
      list_gpus(*job);
    } else if (job->task == "calibrate") {
      GpuRanks ranks(job->gpus, variable);
      calibrate_gpu_job(*job, ranks, report);
    } else if (job->task == "run") {
      const DeviceUse use;  // before the ranks meet: communicators count
      const GpuRanks ranks(job->gpus, variable);
      run_gpu_job(*job, ranks.rank(), ranks.world(), use, report);
    } else {
      throw JobFailure(RankFailure::kInput, "task: '" + job->task + "' is not known");
    }
    report.finished();
    return 0;
  } catch (const JobFailure& error) {
    return fail(error.kind(), error.what());
  } catch (const cuda::OutOfDeviceMemory& error) {
    return fail(RankFailure::kOutOfMemory, error.what());
  } catch (const CommunicationError& error) {
    report.failed(RankFailure::kCommunication, error.what());
    std::_Exit(1);  // without waiting for ranks that will not come
  } catch (const cuda::CudaError& error) {
    return fail(RankFailure::kInput, error.what());
  } catch (const std::bad_alloc&) {
    return fail(RankFailure::kOutOfMemory, kNoMemory);
  } catch (const std::system_error& error) {
    return fail(RankFailure::kMachine, error.what());
  } catch (const std::exception& error) {
    return fail(RankFailure::kInternal, error.what());
  }
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
  return stepcast::run(argv[1]);
}
