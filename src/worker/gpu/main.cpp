// SPDX-License-Identifier: Apache-2.0
// stepcast-gpu JOB: runs or measures on this machine's GPUs. `stepcast validate` and `stepcast
// calibrate` with `--backend cuda` write the job, start this and read its results.
#include <fmt/format.h>

#include <new>

#include "kernels/cuda/cuda_error.h"
#include "worker/gpu/calibrate_gpu_job.h"
#include "worker/gpu/list_gpus.h"
#include "worker/gpu/run_gpu_job.h"

namespace stepcast {
namespace {

int run(const std::string& file) {
  RankReporter report(0);
  report.started();
  const auto fail = [&](RankFailure kind, const char* what) {
    report.failed(kind, what);
    return 1;
  };
  try {
    const auto job = read_job(file);
    if (!job) throw JobFailure(RankFailure::kInput, to_string(job.error()));
    if (job->task == "devices") {
      list_gpus(*job);
    } else if (job->task == "calibrate") {
      calibrate_gpu_job(*job, report);
    } else if (job->task == "run") {
      run_gpu_job(*job, 0, nullptr, report);
    } else {
      throw JobFailure(RankFailure::kInput, "task: '" + job->task + "' is not known");
    }
    report.finished();
    return 0;
  } catch (const JobFailure& error) {
    return fail(error.kind(), error.what());
  } catch (const cuda::OutOfDeviceMemory& error) {
    return fail(RankFailure::kOutOfMemory, error.what());
  } catch (const cuda::CudaError& error) {
    return fail(RankFailure::kInput, error.what());
  } catch (const std::bad_alloc&) {
    return fail(RankFailure::kOutOfMemory, "no memory left for another buffer");
  } catch (const std::exception& error) {
    return fail(RankFailure::kInternal, error.what());
  }
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(
        stderr,
        "usage: stepcast-gpu JOB   (started by stepcast validate and calibrate --backend cuda)\n");
    return 2;
  }
  return stepcast::run(argv[1]);
}
