// SPDX-License-Identifier: Apache-2.0
// A launch knows this about its ranks while they run: their reports, their last lines, and whether
// they must be stopped. The caller passes the time in, so that no test has to wait.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_outcome.h"
#include "launch/rank_report.h"

namespace stepcast {

enum class StopReason { kFailure, kLateStart, kSilence, kTimeLimit };

class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Progress = std::function<void(const RankReport&)>;

  struct Rank {
    bool started = false;
    bool finished = false;
    std::string phase;
    bool failed = false;
    std::deque<std::string> last_lines;  // at most kLines
  };

  static constexpr std::size_t kLines = 40;

  RankWatch(int ranks, const LaunchLimits& limits, Time begin, Progress progress);

  // A line of a rank, or of mpirun itself (RankOutput::kLauncher).
  void hear(int rank, std::string_view line, Time now);

  struct Due {
    StopReason reason;
    Time time;
  };
  Due next() const;                                   // the limit that is met first
  std::optional<StopReason> reached(Time now) const;  // once it is met

  const std::vector<Rank>& ranks() const { return ranks_; }
  const std::vector<RankReport>& failures() const { return failures_; }  // as they came
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::string& launcher_words() const { return launcher_words_; }
  const LaunchLimits& limits() const { return limits_; }
  bool all(bool Rank::*state) const;
  bool any(bool Rank::*state) const;

 private:
  void report(const RankReport& report, Time now);

  std::vector<Rank> ranks_;
  LaunchLimits limits_;
  Progress progress_;
  Time begin_;
  Time heard_;  // the last report of any rank
  std::optional<Time> failed_;
  std::vector<RankReport> failures_;
  std::vector<std::string> warnings_;
  std::string launcher_words_;
};

}  // namespace stepcast
