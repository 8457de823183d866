// SPDX-License-Identifier: Apache-2.0
#include "launch/mpi_launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launch/diagnosis.h"
#include "launch/host_facts.h"
#include "launch/marked_processes.h"
#include "launch/rank_output.h"
#include "launch/signal_watch.h"

namespace stepcast {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// While mpirun is asked to end, a second Ctrl-C is looked for this often.
constexpr milliseconds kImpatience{100};

milliseconds until(Clock::time_point time) {
  return std::max(std::chrono::ceil<milliseconds>(time - Clock::now()), milliseconds{0});
}

// mpirun and everything it has started. None of it outlives this object.
class Run {
 public:
  // `alone`: in place of mpirun the only rank itself, whose lines carry no number.
  Run(ProcessGroup mpirun, bool alone, std::string mark, RankWatch& watch)
      : mpirun_(std::move(mpirun)),
        alone_(alone),
        mark_(std::move(mark)),
        output_([this](int rank, std::string_view line) { hear(rank, line); }),
        error_([this](int rank, std::string_view line) { hear(rank, line); }),
        watch_(watch),
        memory_kills_(out_of_memory_kills()) {}
  ~Run() { end_marked_processes(mark_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Runs until mpirun ends by itself or has to be ended.
  LaunchEvidence follow() {
    LaunchEvidence evidence;
    evidence.alone = alone_;
    while (true) {
      evidence.interrupt = signals_.signal();
      evidence.stopped = watch_.reached(Clock::now());
      evidence.unread = mpirun_.refused();
      if (evidence.must_stop()) break;
      if (!mpirun_.wait(until(watch_.next().time), signals_.file(), sink())) break;
    }
    return evidence;
  }

  // mpirun ends its ranks when it is asked to end, on other machines too; killing is the last
  // resort, and does not wait after a second Ctrl-C.
  void stop(milliseconds grace) {
    const int signals = signals_.count();
    const auto end = Clock::now() + grace;
    mpirun_.terminate();
    while (Clock::now() < end && signals_.count() <= std::max(signals, 1)) {
      if (!mpirun_.wait(std::min(until(end), kImpatience), -1, sink())) return;
    }
  }

  // Ends whatever is left. First all processes of the launch: as long as they live they know which
  // files of Open MPI have to be removed.
  LaunchEvidence finish(LaunchEvidence evidence) {
    end_marked_processes(mark_);
    evidence.mpirun = mpirun_.kill(sink());
    evidence.unread = mpirun_.refused();
    output_.end();
    error_.end();
    evidence.memory_kill = memory_kills_ >= 0 && out_of_memory_kills() > memory_kills_;
    return evidence;
  }

 private:
  void hear(int rank, std::string_view line) {
    watch_.hear(alone_ && rank == RankOutput::kLauncher ? 0 : rank, line, Clock::now());
  }
  ProcessGroup::Sink sink() {
    return [this](ProcessGroup::Stream stream, std::string_view text) {
      (stream == ProcessGroup::Stream::kOutput ? output_ : error_).add(text);
    };
  }

  SignalWatch signals_;
  ProcessGroup mpirun_;
  bool alone_;
  std::string mark_;
  RankOutput output_;
  RankOutput error_;
  RankWatch& watch_;
  std::int64_t memory_kills_;
};

}  // namespace

Result<LaunchOutcome> launch_ranks(const RankLaunch& launch, const LaunchProgress& progress) {
  const SignalWatch signals;  // from before the start on
  const std::string mark = new_launch_mark();
  RankProgram program = launch.program;
  program.added.push_back(fmt::format("{}={}", kLaunchMark, mark));
  const auto command = mpi_command(program, usable_cores(), ::geteuid() == 0);
  if (!command) return tl::unexpected(command.error());

  RankWatch watch(program.ranks, launch.limits, Clock::now(), progress);
  auto mpirun = ProcessGroup::start(*command);
  if (!mpirun) return tl::unexpected(mpirun.error());
  Run run(std::move(*mpirun), program.alone, mark, watch);
  LaunchEvidence evidence = run.follow();
  if (evidence.must_stop()) run.stop(launch.limits.grace);
  return diagnose(watch, run.finish(evidence));
}

}  // namespace stepcast
