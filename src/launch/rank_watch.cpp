// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/assert.h"
#include "launch/rank_report_line.h"

namespace stepcast {
namespace {

constexpr std::size_t kMaxWarnings = 100;
constexpr std::size_t kMaxLauncherWords = 65536;

}  // namespace

RankWatch::RankWatch(int ranks, const LaunchLimits& limits, Time begin, Progress progress)
    : ranks_(static_cast<std::size_t>(ranks)),
      limits_(limits),
      progress_(std::move(progress)),
      begin_(begin),
      heard_(begin) {
  STEPCAST_ASSERT(ranks > 0, "a launch has ranks");
}

void RankWatch::hear(int rank, std::string_view line, Time now) {
  const RankLine read = read_rank_line(line);
  const bool known = read.report && read.report->rank < static_cast<int>(ranks_.size());
  if (known) report(*read.report, now);
  const std::string_view output = known ? read.output : line;
  if (known && output.empty()) return;
  if (rank < 0 || rank >= static_cast<int>(ranks_.size())) {
    // mpirun's own words: its first ones say why.
    if (launcher_words_.size() + output.size() < kMaxLauncherWords) {
      launcher_words_.append(output).push_back('\n');
    }
    return;
  }
  auto& lines = ranks_[static_cast<std::size_t>(rank)].last_lines;
  lines.emplace_back(output);
  if (lines.size() > kLines) lines.pop_front();
}

void RankWatch::report(const RankReport& report, Time now) {
  Rank& rank = ranks_[static_cast<std::size_t>(report.rank)];
  heard_ = now;
  switch (report.event) {
    case RankEvent::kStarted:
      rank.started = true;
      break;
    case RankEvent::kProgress:
      rank.phase = report.phase;
      break;
    case RankEvent::kHeartbeat:
      break;
    case RankEvent::kWarning:
      if (warnings_.size() < kMaxWarnings) {
        warnings_.push_back(fmt::format("rank {}: {}", report.rank, report.text));
      }
      break;
    case RankEvent::kFailed:
      if (!rank.failed) failures_.push_back(report);
      rank.failed = true;
      if (!failed_) failed_ = now;
      break;
    case RankEvent::kFinished:
      rank.finished = true;
      break;
  }
  if (progress_) progress_(report);
}

bool RankWatch::all(bool Rank::*state) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.*state; });
}

bool RankWatch::any(bool Rank::*state) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.*state; });
}

RankWatch::Due RankWatch::next() const {
  Due due = all(&Rank::started) ? Due{StopReason::kSilence, heard_ + limits_.silence}
                                : Due{StopReason::kLateStart, begin_ + limits_.start};
  const auto sooner = [&](StopReason reason, Time time) {
    if (time < due.time) due = {reason, time};
  };
  if (limits_.total.count() > 0) sooner(StopReason::kTimeLimit, begin_ + limits_.total);
  if (failed_) sooner(StopReason::kFailure, *failed_ + limits_.settle);
  return due;
}

std::optional<StopReason> RankWatch::reached(Time now) const {
  const Due due = next();
  return due.time <= now ? std::optional(due.reason) : std::nullopt;
}

}  // namespace stepcast
