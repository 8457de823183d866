// SPDX-License-Identifier: Apache-2.0
// stepcast-rank JOB: one rank of a real run, started by mpirun. `stepcast validate` and `stepcast
// calibrate` write the job, launch the ranks and read their results.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstdio>

#include "calibrate/measure/rank_context.h"
#include "comm/host_group.h"
#include "comm/mpi_communicator.h"
#include "execute/host_device.h"
#include "shipped/carry_data.h"
#include "worker/last_words.h"
#include "worker/run_place.h"

namespace stepcast {
namespace {

int run(const std::string& file) {
  // Naps between polls last tens of microseconds; by default the kernel would stretch them by fifty
  // more.
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  MpiWorld mpi;
  RankReporter report(mpi.rank());
  tell_when_memory_ends(report);
  report.started();
  return tell_of_failures(report, [&] {
    const auto job = load_job(file);
    if (!job) throw JobFailure(job.error());
    const auto world = mpi.world();
    const RankContext rank{*job, *world, report, mpi.hostname()};
    if (job->is_run()) {
      HostGroup group(*world);
      run_job({.job = *job,
               .report = report,
               .host = mpi.hostname(),
               .rank = RankId(world->rank()),
               .world = &group,
               .all_reduce = [&](std::span<float> values,
                                 Reduction reduction) { world->all_reduce(values, reduction); },
               .device = [] { return std::make_unique<HostDevice>(); }});
    } else if (job->is_calibration()) {
      calibrate_job(rank);
    } else {
      throw JobFailure(RankFailure::kInput, "task: '" + job->task + "' is not run or calibrate");
    }
  });
}

}  // namespace
}  // namespace stepcast

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: stepcast-rank JOB   (started by stepcast validate and calibrate)\n", stderr);
    return 2;
  }
  stepcast::carry_shipped_data();
  return stepcast::run(argv[1]);
}
