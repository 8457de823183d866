// SPDX-License-Identifier: Apache-2.0
// A rank reports to the process that launched it: one line per event on standard error, the word
// @stepcast and a JSON object,
//
//   @stepcast {"rank":0,"event":"progress","phase":"warm-up","done":3,"total":10,"text":"gemm"}
//
// A line is at most one write of PIPE_BUF bytes, so that ranks and threads do not mix theirs, and
// is made without allocating: a rank that has run out of memory can still say so. Writing needs
// only this pair of files; reading is rank_report_line.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

inline constexpr std::string_view kRankReportWord = "@stepcast ";

enum class RankEvent { kStarted, kProgress, kHeartbeat, kWarning, kFailed, kFinished };

enum class RankFailure {
  kOutOfMemory,
  kNumerics,       // results differ from the reference, or are not finite
  kCommunication,  // a peer is gone or silent: usually the consequence of another rank's failure
  kInput,          // the job that the rank was given
  kMachine,        // a file that cannot be written, or another thing that the system refuses
  kInternal,
};

const char* name_of(RankEvent event);      // "started"
const char* name_of(RankFailure failure);  // "out_of_memory"

struct RankReport {
  int rank = 0;
  RankEvent event = RankEvent::kHeartbeat;
  RankFailure failure = RankFailure::kInternal;  // of kFailed
  std::string phase;                             // of kProgress
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::string text;  // of kProgress, kWarning, kFailed
};

// The writing end. All functions may be called from any thread and never throw; what cannot be
// written is lost. Long texts are cut.
class RankReporter {
 public:
  static constexpr int kStandardError = 2;
  // Heartbeats, and progress inside a phase, within this time of the last line are not written.
  static constexpr std::int64_t kQuietNanoseconds = 200'000'000;

  explicit RankReporter(int rank, int file = kStandardError) : rank_(rank), file_(file) {}

  void started() noexcept;
  // Call them from the loop that does the work, not from a thread of their own: they are the sign
  // that the work goes on.
  void progress(std::string_view phase, std::int64_t done, std::int64_t total,
                std::string_view text = {}) noexcept;
  void heartbeat() noexcept;
  void warning(std::string_view text) noexcept;
  void failed(RankFailure failure, std::string_view message) noexcept;
  void finished() noexcept;

 private:
  bool quiet() noexcept;  // a line was written a moment ago

  int rank_;
  int file_;
  std::atomic<std::int64_t> last_{0};  // nanoseconds of the steady clock
};

}  // namespace stepcast
