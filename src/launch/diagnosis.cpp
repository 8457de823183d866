// SPDX-License-Identifier: Apache-2.0
#include "launch/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "launch/open_mpi_words.h"

namespace stepcast {
namespace {

using Rank = RankWatch::Rank;

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1e3);
}

LaunchEnd end_of(RankFailure failure) {
  switch (failure) {
    case RankFailure::kOutOfMemory:
      return LaunchEnd::kOutOfMemory;
    case RankFailure::kNumerics:
      return LaunchEnd::kNumerics;
    case RankFailure::kCommunication:
      return LaunchEnd::kCommunication;
    case RankFailure::kInput:
      return LaunchEnd::kInput;
    case RankFailure::kMachine:
      return LaunchEnd::kMachine;
    case RankFailure::kInternal:
      return LaunchEnd::kInternal;
  }
  return LaunchEnd::kInternal;
}

const char* words_of(RankFailure failure) {
  switch (failure) {
    case RankFailure::kOutOfMemory:
      return "ran out of memory";
    case RankFailure::kNumerics:
      return "computed something else than the reference";
    case RankFailure::kCommunication:
      return "lost the connection to other ranks";
    case RankFailure::kInput:
      return "cannot run this job";
    case RankFailure::kMachine:
      return "is stopped by its machine";
    case RankFailure::kInternal:
      return "met an internal error";
  }
  return "";
}

// The lower, the nearer to the cause.
int distance(RankFailure failure) {
  switch (failure) {
    case RankFailure::kInput:
    case RankFailure::kMachine:
    case RankFailure::kOutOfMemory:
      return 0;
    case RankFailure::kNumerics:
      return 1;
    case RankFailure::kInternal:
      return 2;
    case RankFailure::kCommunication:
      return 3;
  }
  return 3;
}

const RankReport* reported_cause(const RankWatch& watch) {
  const RankReport* cause = nullptr;
  for (const RankReport& failure : watch.failures()) {
    if (cause == nullptr || distance(failure.failure) < distance(cause->failure)) cause = &failure;
  }
  return cause;
}

LaunchOutcome reported(const RankReport& cause, bool alone) {
  LaunchOutcome out;
  out.end = end_of(cause.failure);
  out.rank = cause.rank;
  if (alone && !cause.text.empty()) {
    out.message = cause.text;
    return out;
  }
  out.message = fmt::format("rank {} {}{}{}", cause.rank, words_of(cause.failure),
                            cause.text.empty() ? "" : ": ", cause.text);
  return out;
}

bool has_failed(const RankWatch& watch, int rank) {
  return rank < static_cast<int>(watch.ranks().size()) &&
         watch.ranks()[static_cast<std::size_t>(rank)].failed;
}

std::string why_killed(int signal, bool memory_kill) {
  if (signal == SIGKILL && memory_kill) {
    return ": the kernel ran out of memory and killed processes meanwhile";
  }
  if (signal == SIGKILL) {
    return ": somebody killed it, or memory ran out on its machine or in its container";
  }
  if (signal == SIGBUS) return ": often /dev/shm is full, where ranks share memory";
  return "";
}

LaunchOutcome died(const RankDeath& death, bool memory_kill) {
  LaunchOutcome out;
  out.end = death.signal == SIGKILL && memory_kill ? LaunchEnd::kOutOfMemory : LaunchEnd::kDied;
  out.rank = death.rank;
  out.signal = death.signal;
  out.exit_code = death.exit_code;
  if (death.signal != 0) {
    out.message = fmt::format("rank {} was ended by {}{}", death.rank, signal_name(death.signal),
                              why_killed(death.signal, memory_kill));
  } else if (death.aborted) {
    out.message = fmt::format("rank {} called MPI_Abort with code {}", death.rank, death.exit_code);
  } else if (death.unfinalized) {
    out.message = fmt::format("rank {} ended before the others, without MPI_Finalize", death.rank);
  } else {
    out.message = fmt::format("rank {} ended with exit code {}", death.rank, death.exit_code);
  }
  return out;
}

// "rank 0 in 'warm-up', rank 3" of those that have not finished, the first few.
std::string unfinished(const RankWatch& watch, bool Rank::*state) {
  constexpr int kNamed = 4;
  std::string out;
  int count = 0;
  for (std::size_t i = 0; i < watch.ranks().size(); ++i) {
    const Rank& rank = watch.ranks()[i];
    if (rank.*state || ++count > kNamed) continue;
    if (count > 1) out += ", ";
    out += fmt::format("rank {}", i);
    if (!rank.phase.empty()) out += fmt::format(" in '{}'", rank.phase);
  }
  if (count > kNamed) out += fmt::format(" and {} more", count - kNamed);
  return out;
}

// The only rank that is not in a state; -1 when there are several or none.
int only_without(const RankWatch& watch, bool Rank::*state) {
  int found = -1;
  for (std::size_t i = 0; i < watch.ranks().size(); ++i) {
    if (watch.ranks()[i].*state) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

LaunchOutcome stopped(const RankWatch& watch, StopReason reason) {
  LaunchOutcome out;
  const LaunchLimits& limits = watch.limits();
  out.rank =
      only_without(watch, reason == StopReason::kLateStart ? &Rank::started : &Rank::finished);
  if (reason == StopReason::kTimeLimit) {
    out.end = LaunchEnd::kTimeLimit;
    out.message = fmt::format("the time limit of {} passed; not finished: {}",
                              seconds(limits.total), unfinished(watch, &Rank::finished));
  } else if (reason == StopReason::kLateStart) {
    out.end = watch.any(&Rank::started) ? LaunchEnd::kHung : LaunchEnd::kNotStarted;
    out.message = fmt::format("not started within {}: {}", seconds(limits.start),
                              unfinished(watch, &Rank::started));
  } else {
    out.end = LaunchEnd::kHung;
    const bool ending = watch.all(&Rank::finished);
    out.message = fmt::format("no rank has reported anything for {}; {}", seconds(limits.silence),
                              ending ? "all have finished, and MPI does not end"
                                     : "not finished: " + unfinished(watch, &Rank::finished));
  }
  return out;
}

// mpirun has ended by itself, and neither a rank nor mpirun says that one failed.
LaunchOutcome ended(const RankWatch& watch, ProcessExit mpirun, bool memory_kill) {
  LaunchOutcome out;
  out.end = LaunchEnd::kDied;
  if (mpirun.by_signal) {
    if (mpirun.value == SIGKILL && memory_kill) out.end = LaunchEnd::kOutOfMemory;
    out.signal = mpirun.value;
    out.message = fmt::format("mpirun was ended by {}{}", signal_name(mpirun.value),
                              why_killed(mpirun.value, memory_kill));
  } else if (mpirun.value != 0) {
    out.exit_code = mpirun.value;
    // Open MPI passes a rank's signal on as shells do, and on a busy machine may end before it has
    // said whose it was.
    constexpr int kSignalled = 128;
    if (mpirun.value > kSignalled && mpirun.value <= kSignalled + SIGRTMAX &&
        watch.any(&Rank::started)) {
      out.signal = mpirun.value - kSignalled;
      out.message =
          fmt::format("a rank was ended by {}{}; mpirun did not say which. Not finished: {}",
                      signal_name(out.signal), why_killed(out.signal, memory_kill),
                      unfinished(watch, &Rank::finished));
      return out;
    }
    if (!watch.any(&Rank::started)) out.end = LaunchEnd::kNotStarted;
    out.message = fmt::format("mpirun ended with exit code {} {}", mpirun.value,
                              watch.any(&Rank::started) ? "and did not say which rank failed"
                                                        : "before any rank started");
  } else if (watch.all(&Rank::finished)) {
    out.end = LaunchEnd::kFinished;
  } else {
    out.rank = only_without(watch, &Rank::finished);
    out.exit_code = 0;
    out.message = "ended without having finished: " + unfinished(watch, &Rank::finished);
  }
  return out;
}

// Leaves out a death that was only the result of being stopped.
std::optional<RankDeath> death_before_stop(const RankWatch& watch, const LaunchEvidence& evidence) {
  const auto death = death_in(watch.launcher_words());
  if (!death || !evidence.stopped) return death;
  const bool own = death->signal == 0 || death->signal == SIGTERM || death->signal == SIGKILL;
  return own ? std::nullopt : death;
}

LaunchOutcome judged(const RankWatch& watch, const LaunchEvidence& evidence) {
  if (evidence.interrupt != 0) {
    LaunchOutcome out;
    out.end = LaunchEnd::kInterrupted;
    out.signal = evidence.interrupt;
    out.message = fmt::format("interrupted by {}", signal_name(evidence.interrupt));
    return out;
  }
  const RankReport* cause = reported_cause(watch);
  const auto death = death_before_stop(watch, evidence);
  // A rank that says what is wrong and then ends is dead for that reason. Lost connections are
  // another matter: the rank that died without a word is the cause.
  const bool consequence = cause != nullptr && death &&
                           cause->failure == RankFailure::kCommunication &&
                           !has_failed(watch, death->rank);
  if (cause != nullptr && !consequence) return reported(*cause, evidence.alone);
  if (evidence.unread != 0) {
    LaunchOutcome out;
    out.end = LaunchEnd::kMachine;
    out.message =
        fmt::format("what the ranks say cannot be read: {}", std::strerror(evidence.unread));
    return out;
  }
  if (death && !evidence.mpirun.ok()) return died(*death, evidence.memory_kill);
  if (evidence.stopped) return stopped(watch, *evidence.stopped);
  if (evidence.alone && !evidence.mpirun.ok()) {
    const auto [by_signal, value] = evidence.mpirun;
    return died({0, by_signal ? value : 0, by_signal ? -1 : value}, evidence.memory_kill);
  }
  return ended(watch, evidence.mpirun, evidence.memory_kill);
}

std::vector<std::string> lines_of(const std::string& words) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find('\n', begin), words.size());
    if (end > begin) out.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::vector<std::string> last_lines(const RankWatch& watch, int rank) {
  if (rank >= 0 && !watch.ranks()[static_cast<std::size_t>(rank)].last_lines.empty()) {
    const auto& lines = watch.ranks()[static_cast<std::size_t>(rank)].last_lines;
    return {lines.begin(), lines.end()};
  }
  std::vector<std::string> out = lines_of(watch.launcher_words());
  const std::size_t each = std::max<std::size_t>(1, RankWatch::kLines / (watch.ranks().size() + 1));
  if (out.size() > each) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(each));
  for (std::size_t i = 0; i < watch.ranks().size(); ++i) {
    const auto& lines = watch.ranks()[i].last_lines;
    for (std::size_t n = lines.size() - std::min(each, lines.size()); n < lines.size(); ++n) {
      out.push_back(fmt::format("rank {}: {}", i, lines[n]));
    }
  }
  return out;
}

}  // namespace

LaunchOutcome diagnose(const RankWatch& watch, const LaunchEvidence& evidence) {
  LaunchOutcome out = judged(watch, evidence);
  out.warnings = watch.warnings();
  const bool known = out.rank < static_cast<int>(watch.ranks().size());
  if (!out.ok()) out.last_lines = last_lines(watch, known ? out.rank : -1);
  return out;
}

}  // namespace stepcast
