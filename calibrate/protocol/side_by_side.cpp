// SPDX-License-Identifier: Apache-2.0
#include "calibrate/protocol/side_by_side.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/statistics.h"

namespace stepcast {
namespace {

// Covering work lasts as long as the work beside it, and a little longer.
constexpr double kCover = 1.25;
constexpr int kMostLooks = 6;  // for how much that is
constexpr std::int64_t kMostCalls = 1 << 14;

std::int64_t calls_for(double seconds, double once_s) {
  return std::clamp(static_cast<std::int64_t>(std::ceil(seconds / std::max(once_s, 1e-9))),
                    std::int64_t{1}, kMostCalls);
}

// The times of covered work: alone and slowed.
struct Covered {
  double alone_s = 0;  // of one call
  double slowdown = 1;
};

// `run(own, other)`: the times of both, the covered one's first.
Covered measure_covered(const RunBoth& run, double sample_s, int samples) {
  run(1, 1);  // loads kernels, makes connections
  const double once_s = run(1, 0).first_s;
  const double other_s = run(0, 1).second_s;
  const std::int64_t own = calls_for(sample_s, once_s);
  const double alone_s = run(own, 0).first_s;
  std::int64_t other = calls_for(kCover * alone_s, other_s);
  for (int look = 0; look < kMostLooks && other < kMostCalls; ++look) {
    const BothTimes both = run(own, other);
    if (both.second_s >= kCover * both.first_s) break;
    other = std::min(2 * other, kMostCalls);
  }
  std::vector<double> alone, slowdowns;
  for (int i = 0; i < samples; ++i) {
    alone.push_back(run(own, 0).first_s);
    slowdowns.push_back(run(own, other).first_s / alone.back());
  }
  return {median(alone) / static_cast<double>(own), std::max(1.0, median(slowdowns))};
}

}  // namespace

SideBySide measure_side_by_side(const RunBoth& run, double sample_s, int samples) {
  const Covered first = measure_covered(run, sample_s, samples);
  const RunBoth turned = [&run](std::int64_t own, std::int64_t other) {
    const BothTimes times = run(other, own);
    return BothTimes{times.second_s, times.first_s};
  };
  const Covered second = measure_covered(turned, sample_s, samples);
  return {second.alone_s, first.slowdown, second.slowdown};
}

}  // namespace stepcast
