// SPDX-License-Identifier: Apache-2.0
// How a launch of ranks ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace stepcast {

enum class LaunchEnd {
  kFinished,     // every rank said so, and mpirun ended well
  kNotStarted,   // mpirun could not start the program, or a rank ended before it began to work
  kDied,         // a rank ended by a signal, with an exit code, or without a last word
  kHung,         // no rank reported anything for too long
  kTimeLimit,    // the whole took too long
  kInterrupted,  // SIGINT, SIGTERM or SIGHUP came to this process
  kOutOfMemory,  // reported, or the kernel killed a process for memory during the run
  kNumerics,     // reported, as the following
  kCommunication,
  kInput,
  kMachine,
  kInternal,
};

struct LaunchOutcome {
  LaunchEnd end = LaunchEnd::kFinished;
  int rank = -1;        // where it began, -1: not known
  int signal = 0;       // of kDied, kOutOfMemory: what killed the rank; of kInterrupted: what came
  int exit_code = -1;   // of kDied, -1: none
  std::string message;  // one sentence, empty when all is well
  std::vector<std::string> last_lines;  // what the rank, or else everybody, last wrote
  std::vector<std::string> warnings;    // of ranks, "rank 0: ..."
  bool ok() const { return end == LaunchEnd::kFinished; }
};

// All times count from the launch unless a comment says otherwise.
struct LaunchLimits {
  std::chrono::milliseconds start{60'000};    // until every rank has reported that it started
  std::chrono::milliseconds silence{60'000};  // since the last report of any rank, once all started
  std::chrono::milliseconds total{0};         // 0: none
  // Since the first reported failure: for other ranks to report theirs, and for mpirun to end:
  // it takes 2 s to end ranks after one has died.
  std::chrono::milliseconds settle{5'000};
  std::chrono::milliseconds grace{5'000};  // between asking mpirun to end and killing it
};

}  // namespace stepcast
