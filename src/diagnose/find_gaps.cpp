// SPDX-License-Identifier: Apache-2.0
#include "diagnose/find_gaps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/statistics.h"

namespace stepcast {
namespace {

// A rank or all kernels count as slower from here on: kernels vary by a percent from run to run.
constexpr double kSlower = 1.03;
// A collective counts as slower, or as moving other bytes, from here on.
constexpr double kSlowerMessage = 1.1, kOtherBytes = 1.02;

class Finder {
 public:
  Finder(const ComparedIdle& idle, Diagnosis& out) : idle_(idle), out_(out) {}

  void find() {
    add_batch();
    add_straggler();
    add_messages();
    add_kernels();
    add_idle();
    // A cause that explains others stands first, and the rest by size.
    std::ranges::stable_sort(out_.gaps, [](const Gap& a, const Gap& b) {
      if (rank_of(a.cause) != rank_of(b.cause)) return rank_of(a.cause) < rank_of(b.cause);
      return std::abs(a.seconds) > std::abs(b.seconds);
    });
  }

 private:
  static int rank_of(GapCause cause) {
    if (cause == GapCause::kBatch) return 0;
    if (cause == GapCause::kStraggler) return 1;
    return cause == GapCause::kBesideMessages ? 3 : 2;
  }
  bool is_large(double seconds) const { return std::abs(seconds) > kNamedGap * out_.measured_s; }
  void add(Gap gap) {
    if (is_large(gap.seconds)) out_.gaps.push_back(std::move(gap));
  }

  // The work of the forecast that grows with the batch.
  double scaled(const ComparedKernels& one) const {
    return one.forecast.busy_s * (one.scales ? out_.batch_ratio : 1);
  }
  double scaled(const ComparedMessages& one) const {
    const bool once = one.traffic == TrafficKind::kData;
    return one.forecast.exposed_s * (once ? 1 : out_.batch_ratio);
  }

  void add_batch() {
    if (out_.batch_ratio == 1) return;
    double forecast = 0, now = 0;
    for (const ComparedKernels& one : out_.kernels) {
      forecast += one.forecast.busy_s;
      now += scaled(one);
    }
    for (const ComparedMessages& one : out_.messages) {
      forecast += one.forecast.exposed_s;
      now += scaled(one);
    }
    Gap gap{GapCause::kBatch};
    gap.seconds = now - forecast;
    gap.forecast_s = forecast;
    gap.measured_s = now;
    gap.ratio = out_.batch_ratio;
    add(gap);
  }

  void add_straggler() {
    if (out_.ranks.size() < 2) return;
    std::vector<double> ratios;
    for (const RankRow& one : out_.ranks) ratios.push_back(one.ratio);
    const auto slowest = std::ranges::max_element(out_.ranks, {}, &RankRow::ratio);
    // The median of two ranks is between both: it is held against the other one.
    std::ranges::sort(ratios);
    const double usual = ratios[(ratios.size() - 1) / 2];
    if (usual <= 0 || slowest->ratio / usual < kSlower) return;
    Gap gap{GapCause::kStraggler};
    gap.rank = slowest->rank;
    gap.ratio = slowest->ratio / usual;
    gap.seconds = slowest->compute_s * (1 - 1 / gap.ratio);
    gap.forecast_s = slowest->compute_s / gap.ratio;
    gap.measured_s = slowest->compute_s;
    if (is_large(gap.seconds)) straggler_ = slowest->rank;
    add(gap);
  }

  // Whether all kernels take longer, or shorter, by one factor, as clocks make them.
  std::optional<double> common_factor() const {
    double forecast = 0, measured = 0;
    std::size_t kinds = 0;
    for (const ComparedKernels& one : out_.kernels) {
      if (one.forecast.busy_s <= 0 || one.measured.busy_s <= 0) continue;
      forecast += scaled(one);
      measured += one.measured.busy_s;
      ++kinds;
    }
    if (forecast <= 0 || kinds < 3) return std::nullopt;
    const double factor = measured / forecast;
    if (factor < kSlower && factor > 1 / kSlower) return std::nullopt;
    double off = 0;
    for (const ComparedKernels& one : out_.kernels) {
      if (one.forecast.busy_s <= 0 || one.measured.busy_s <= 0) continue;
      off += std::abs(one.measured.busy_s - factor * scaled(one));
    }
    const bool alike = off < 0.25 * std::abs(measured - forecast);
    return alike ? std::optional(factor) : std::nullopt;
  }

  void add_kernels() {
    const auto factor = common_factor();
    if (factor && straggler_ != out_.rank) {
      Gap gap{GapCause::kClocks};
      gap.ratio = *factor;
      for (const ComparedKernels& one : out_.kernels) {
        gap.forecast_s += scaled(one);
        gap.measured_s += one.measured.busy_s;
      }
      gap.seconds = gap.measured_s - gap.forecast_s;
      add(gap);
    }
    double small = 0, small_forecast = 0, small_measured = 0;
    for (const ComparedKernels& one : out_.kernels) {
      const double forecast = scaled(one) * factor.value_or(1);
      Gap gap{one.forecast.calls == 0 ? GapCause::kExtraKernels : GapCause::kKernels, one.words};
      gap.seconds = one.measured.busy_s - forecast;
      gap.forecast_s = forecast;
      gap.measured_s = one.measured.busy_s;
      gap.ratio = forecast > 0 ? gap.measured_s / forecast : 0;
      gap.calls = one.measured.calls;
      if (is_large(gap.seconds)) {
        add(gap);
      } else {
        small += gap.seconds;
        small_forecast += forecast;
        small_measured += gap.measured_s;
      }
    }
    // Many small ones together may be a large one.
    Gap gap{GapCause::kKernels, "other kernels together", small, small_forecast, small_measured};
    gap.ratio = small_forecast > 0 ? small_measured / small_forecast : 0;
    if (small > 0 && runs_longer_beside_messages()) gap.cause = GapCause::kBesideMessages;
    add(gap);
  }

  // Communication that takes longer also takes processors and memory from kernels for longer.
  bool runs_longer_beside_messages() const {
    double before = 0, now = 0, moved_before = 0, moved = 0;
    for (const ComparedKernels& one : out_.kernels) {
      before += one.forecast.beside_s * (one.scales ? out_.batch_ratio : 1);
      now += one.measured.beside_s;
    }
    for (const ComparedMessages& one : out_.messages) {
      moved_before += busy_of(one);
      moved += one.measured.busy_s;
    }
    return moved > kSlowerMessage * moved_before && now > kSlowerMessage * before;
  }

  void add_messages() {
    std::map<std::optional<TrafficKind>, std::vector<const ComparedMessages*>> by_traffic;
    for (const ComparedMessages& one : out_.messages) by_traffic[one.traffic].push_back(&one);
    for (const auto& [traffic, all] : by_traffic) add_traffic(all);
  }

  void add_traffic(const std::vector<const ComparedMessages*>& all) {
    double forecast = 0, measured = 0;
    for (const ComparedMessages* one : all) {
      forecast += scaled(*one);
      measured += one->measured.exposed_s;
    }
    if (!is_large(measured - forecast)) return;
    const bool others = std::ranges::any_of(all, [](const ComparedMessages* one) {
      return (one->forecast.calls == 0) != (one->measured.calls == 0);
    });
    if (others && all.size() > 1) {
      Gap gap{GapCause::kOtherMessages, "", measured - forecast, forecast, measured};
      for (const ComparedMessages* one : all) {
        if (one->measured.calls == 0) continue;
        gap.what += (gap.what.empty() ? "" : ", ") + one->words;
        gap.calls += one->measured.calls;
      }
      add(gap);
      return;
    }
    std::vector<Gap> found;
    for (const ComparedMessages* one : all) {
      const Gap gap = gap_of(*one);
      const auto alike = std::ranges::find_if(found, [&](const Gap& other) {
        return other.cause == gap.cause && (other.seconds > 0) == (gap.seconds > 0);
      });
      if (alike == found.end()) {
        found.push_back(gap);
      } else {
        join(*alike, gap);
      }
    }
    for (Gap& gap : found) add(std::move(gap));
  }

  // Collectives of one kind of traffic with one cause are one gap.
  static void join(Gap& into, const Gap& more) {
    const double all = std::abs(into.seconds) + std::abs(more.seconds);
    if (all > 0) {
      into.ratio =
          (into.ratio * std::abs(into.seconds) + more.ratio * std::abs(more.seconds)) / all;
    }
    into.what += (into.what.empty() || more.what.empty() ? "" : ", ") + more.what;
    into.seconds += more.seconds;
    into.forecast_s += more.forecast_s;
    into.measured_s += more.measured_s;
    into.calls += more.calls;
    into.late_calls += more.late_calls;
  }

  double busy_of(const ComparedMessages& one) const {
    const bool once = one.traffic == TrafficKind::kData;
    return one.forecast.busy_s * (once ? 1 : out_.batch_ratio);
  }

  Gap gap_of(const ComparedMessages& one) const {
    const double forecast = scaled(one);
    const double gap_s = one.measured.exposed_s - forecast;
    Gap gap{GapCause::kLostOverlap, one.words, gap_s, forecast, one.measured.exposed_s};
    gap.calls = one.measured.calls;
    gap.late_calls = one.measured.late_calls;
    const bool once = one.traffic == TrafficKind::kData;
    const double bytes = one.forecast.bytes * (once ? 1 : out_.batch_ratio);
    const double more = bytes > 0 ? one.measured.bytes / bytes : 1;
    const double own = one.measured.busy_s - one.waited_s;
    const double slower = busy_of(one) > 0 && more > 0 ? own / busy_of(one) / more : 0;
    if (gap_s > 0 && std::min(one.waited_s, one.measured.exposed_s) > gap_s / 2) {
      gap.cause = GapCause::kRankWaits;
      gap.rank = last_rank();
      gap.ratio = one.waited_s / one.measured.busy_s;
    } else if (one.forecast.calls == 0 || one.measured.calls == 0) {
      gap.cause = GapCause::kOtherMessages;
    } else if (bytes > 0 && (more > kOtherBytes || more < 1 / kOtherBytes)) {
      gap.cause = GapCause::kMoreBytes;
      gap.ratio = more;
    } else if (gap_s > 0 && 2 * one.measured.late_calls > one.measured.calls) {
      gap.cause = GapCause::kLateMessages;
      gap.ratio = slower;
    } else if ((gap_s > 0) == (slower > 1) &&
               (slower > kSlowerMessage || slower < 1 / kSlowerMessage)) {
      gap.cause = GapCause::kSlowLink;
      gap.ratio = slower;
    } else if (gap_s <= 0) {
      gap.cause = GapCause::kMoreOverlap;
    }
    return gap;
  }

  // Most of the waiting was for this one.
  std::optional<RankId> last_rank() const {
    const auto found = std::ranges::max_element(out_.ranks, {}, &RankRow::caused_s);
    if (found == out_.ranks.end() || found->caused_s <= 0) return std::nullopt;
    return found->rank;
  }

  void add_idle() {
    struct Row {
      GapCause cause;
      double StepParts::*time;
    };
    constexpr std::array kRows{Row{GapCause::kHost, &StepParts::host_s},
                               Row{GapCause::kBubble, &StepParts::bubble_s},
                               Row{GapCause::kCopies, &StepParts::copies_s},
                               Row{GapCause::kStarts, &StepParts::starts_s},
                               Row{GapCause::kOtherStreams, &StepParts::streams_s},
                               Row{GapCause::kUnknown, &StepParts::unknown_s}};
    for (const Row& row : kRows) {
      Gap gap{row.cause};
      gap.forecast_s = idle_.forecast.*row.time;
      gap.measured_s = idle_.measured.*row.time;
      gap.seconds = gap.measured_s - gap.forecast_s;
      gap.ratio = row.cause == GapCause::kHost && gap.measured_s > 0
                      ? idle_.measured.sync_s / gap.measured_s
                      : 0;
      add(gap);
    }
  }

  const ComparedIdle& idle_;
  Diagnosis& out_;
  std::optional<RankId> straggler_;
};

}  // namespace

const char* name_of(GapCause cause) {
  constexpr std::array kNames{"batch",           "straggler",  "clocks",       "kernels",
                              "extra_kernels",   "slow_link",  "more_bytes",   "other_messages",
                              "late_messages",   "rank_waits", "lost_overlap", "more_overlap",
                              "beside_messages", "host",       "bubble",       "copies",
                              "starts",          "streams",    "unknown"};
  static_assert(kNames.size() == static_cast<std::size_t>(GapCause::kUnknown) + 1);
  return kNames[static_cast<std::size_t>(cause)];
}

void find_gaps(const ComparedIdle& idle, Diagnosis& diagnosis) { Finder(idle, diagnosis).find(); }

}  // namespace stepcast
