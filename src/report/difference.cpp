// SPDX-License-Identifier: Apache-2.0
#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layout/rank_grid.h"
#include "layout/scenario.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

constexpr double kWorthSaying = 0.001;  // of the step

// The group that the traffic goes through, or the largest of several.
AxisGroup group_of(TrafficKind traffic) {
  switch (traffic) {
    case TrafficKind::kTensor:
      return AxisGroup::kTensor;
    case TrafficKind::kContext:
      return AxisGroup::kContext;
    case TrafficKind::kExpert:
      return AxisGroup::kTensorExpert;
    case TrafficKind::kPipeline:
      return AxisGroup::kPipeline;
    case TrafficKind::kData:
      return AxisGroup::kData;
  }
  return {};
}

// Which wire carries it: the one that a group over at least that many neighbouring ranks needs.
std::string wire_of(const Scenario& scenario, TrafficKind traffic) {
  const ClusterSpec& cluster = scenario.cluster.spec;
  const std::string local = cluster.scale_up == ScaleUp::kPcie ? "PCIe" : "NVLink";
  if (cluster.nics_per_node == 0) return local;
  const auto members = RankGrid(scenario.layout).members(group_of(traffic), RankId(0));
  const std::int64_t span = members.back().value - members.front().value + 1;
  return span <= cluster.gpus_per_domain() ? local : "network";
}

}  // namespace

std::string part_text(const Scenario& scenario, const TimePart& part) {
  const std::string label = label_of_mean(part);
  return part.traffic ? fmt::format("{} ({})", label, wire_of(scenario, *part.traffic)) : label;
}

std::string difference_text(const Scenario& scenario, const Prediction& one,
                            const Prediction& other) {
  std::vector<TimePart> parts = parts_of(mean_time(one));
  const std::vector<TimePart> of_other = parts_of(mean_time(other));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].time = parts[i].time - of_other[i].time;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const TimePart& a, const TimePart& b) {
    return std::abs(a.time.value()) > std::abs(b.time.value());
  });
  std::string out;
  std::size_t said = 0;
  for (const TimePart& part : parts) {
    if (said++ == 3) break;
    if (std::abs(part.time.value()) < kWorthSaying * other.step_time.value()) break;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", part_text(scenario, part),
                       signed_percent_text(part.time / other.step_time, 1));
  }
  return out.empty() ? "differs by less than 0.1 % in every part" : out;
}

}  // namespace stepcast
