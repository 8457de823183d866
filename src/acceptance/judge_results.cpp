// SPDX-License-Identifier: Apache-2.0
#include "acceptance/judge_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/import/bus_bandwidth.h"

namespace stepcast {
namespace {

constexpr double kNearSize = 2.0;

// The bus bandwidth at the size that is nearest; the fastest of equal ones, as nccl-tests repeat.
std::optional<double> measured_bandwidth(const CollectiveThreshold& threshold, std::int64_t world,
                                         const Results& results) {
  std::optional<double> out;
  double nearest = std::log(kNearSize) + 1e-9;
  const auto look = [&](std::int64_t ranks) {
    for (const ImportedCollective& one : results.imported.collectives) {
      if (one.kind != threshold.kind || one.ranks != ranks) continue;
      for (const CollectiveSample& sample : one.samples) {
        const double off =
            std::abs(std::log(sample.size.value() / static_cast<double>(threshold.bytes)));
        const double rate =
            sample.size.value() * bus_factor(one.kind, threshold.ranks) / sample.time.value();
        if (off < nearest - 1e-9 || (off <= nearest + 1e-9 && out && rate > *out)) {
          nearest = off;
          out = rate;
        }
      }
    }
  };
  look(threshold.ranks);
  if (!out && world != threshold.ranks) look(world);
  return out;
}

}  // namespace

std::vector<Judged> judge_results(const Thresholds& thresholds, const Results& results) {
  std::vector<Judged> out;
  const double tokens =
      static_cast<double>(thresholds.global_batch) * static_cast<double>(thresholds.sequence);
  out.push_back({"step time", "s", thresholds.most_step_s, true, results.step_s});
  Judged rate{"tokens/s", "tokens/s", thresholds.least_tokens_per_s, false};
  if (results.step_s && *results.step_s > 0) rate.measured = tokens / *results.step_s;
  out.push_back(std::move(rate));
  for (const CollectiveThreshold& one : thresholds.collectives) {
    out.push_back({fmt::format("{} over {}, {} ranks, {:.4g} MB", name_of(one.kind), one.group,
                               one.ranks, static_cast<double>(one.bytes) / 1e6),
                   "B/s", one.least_bus_bytes_per_s, false,
                   measured_bandwidth(one, thresholds.gpus, results)});
  }
  return out;
}

}  // namespace stepcast
