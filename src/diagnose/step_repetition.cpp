// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_repetition.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace stepcast {
namespace {

constexpr double kAlike = 0.95;  // of a row's kernels have the name of those one row before
constexpr double kEquallyAlike = 2e-3;
constexpr double kLightKernels = 3e-3;  // of the time may occur less often than the row
constexpr std::size_t kRareNames = 20, kDistances = 8;

class Repetition {
 public:
  Repetition(const Trace& trace, std::int32_t device, std::int64_t least_kernels)
      : least_(static_cast<std::size_t>(std::max<std::int64_t>(least_kernels, 1))) {
    std::map<std::int32_t, double> busy;  // by stream
    for (const TraceWork& work : trace.works) {
      if (work.device == device) busy[work.stream] += work.end_us - work.begin_us;
    }
    const auto main = std::ranges::max_element(
        busy, {}, [](const std::pair<const std::int32_t, double>& one) { return one.second; });
    if (main == busy.end()) return;
    for (const TraceWork& work : trace.works) {
      if (work.device != device || work.stream != main->first) continue;
      works_.push_back(&work);
      places_[work.name].push_back(works_.size() - 1);
      busy_us_ += work.end_us - work.begin_us;
    }
  }

  std::vector<Window> steps() const {
    const std::size_t period = find_period();
    if (period == 0) return {};
    const std::size_t cut = find_cut(period);
    std::vector<Window> out;
    for (std::size_t begin = cut; begin + period <= works_.size(); begin += period) {
      const double since = begin == 0 ? works_[0]->begin_us : works_[begin - 1]->end_us;
      out.push_back({static_cast<std::int64_t>(out.size()), since * 1e-6,
                     works_[begin + period - 1]->end_us * 1e-6});
    }
    return out;
  }

 private:
  double alike(std::size_t period) const {
    std::size_t same = 0;
    for (std::size_t i = period; i < works_.size(); ++i) {
      if (works_[i]->name == works_[i - period]->name) ++same;
    }
    return static_cast<double>(same) / static_cast<double>(works_.size() - period);
  }

  // Distances between kernels whose names are rare: a step has few of them.
  std::set<std::size_t> candidates() const {
    std::vector<const std::vector<std::size_t>*> rare;
    for (const auto& [name, places] : places_) {
      if (places.size() > 1) rare.push_back(&places);
    }
    std::ranges::sort(rare, [](const auto* a, const auto* b) {
      return std::pair(a->size(), a->front()) < std::pair(b->size(), b->front());
    });
    if (rare.size() > kRareNames) rare.resize(kRareNames);
    std::set<std::size_t> out;
    for (const auto* places : rare) {
      for (std::size_t i = 1; i < places->size() && i <= kDistances; ++i) {
        const std::size_t distance = (*places)[i] - (*places)[0];
        if (distance >= least_ && 2 * distance <= works_.size()) out.insert(distance);
      }
    }
    return out;
  }

  // Any row of that length has what a step does once. Kernels that some rows lack tell that several
  // of them make a step.
  bool misses_kernels(std::size_t period) const {
    const std::size_t rows = works_.size() / period;
    double missed_us = 0;
    for (const auto& [name, places] : places_) {
      if (places.size() >= rows) continue;
      for (const std::size_t place : places) {
        missed_us += works_[place]->end_us - works_[place]->begin_us;
      }
    }
    return missed_us > kLightKernels * busy_us_;
  }

  std::size_t find_period() const {
    std::map<std::size_t, double> found;
    double best = 0;
    for (const std::size_t period : candidates()) {
      const double share = alike(period);
      if (share < kAlike || misses_kernels(period)) continue;
      found[period] = share;
      best = std::max(best, share);
    }
    for (const auto& [period, share] : found) {
      if (share >= best - kEquallyAlike) return period;
    }
    return 0;
  }

  std::size_t find_cut(std::size_t period) const {
    std::size_t out = 0;
    double longest = -1;
    for (std::size_t cut = 0; cut < period; ++cut) {
      double shortest = -1;
      for (std::size_t i = cut; i < works_.size(); i += period) {
        if (i == 0) continue;
        const double gap = works_[i]->begin_us - works_[i - 1]->end_us;
        shortest = shortest < 0 ? gap : std::min(shortest, gap);
      }
      if (shortest > longest) {
        longest = shortest;
        out = cut;
      }
    }
    return out;
  }

  std::vector<const TraceWork*> works_;  // of the busiest stream, by begin
  std::unordered_map<std::int32_t, std::vector<std::size_t>> places_;  // by name
  double busy_us_ = 0;
  std::size_t least_;
};

}  // namespace

std::vector<Window> repeated_steps(const Trace& trace, std::int32_t device,
                                   std::int64_t least_kernels) {
  return Repetition(trace, device, least_kernels).steps();
}

}  // namespace stepcast
