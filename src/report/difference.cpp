// SPDX-License-Identifier: Apache-2.0
#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layout/rank_grid.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

constexpr double kWorthSaying = 0.001;  // of the step

// Which wire carries an exposed part: the one that a group over at least that many neighbouring
// ranks needs.
std::string wire_of(const Scenario& scenario, const std::string& key) {
  const Layout& layout = scenario.layout;
  const ClusterSpec& cluster = scenario.cluster.spec;
  const std::int64_t domain = cluster.gpus_per_domain();
  const std::string local = cluster.scale_up == ScaleUp::kPcie ? "PCIe" : "NVLink";
  const std::string network = cluster.nics_per_node > 0 ? "network" : local;
  const RankGrid grid(layout);
  const auto span = [&](AxisGroup group) {
    const auto members = grid.members(group, RankId(0));
    return members.empty() ? 1 : members.back().value - members.front().value + 1;
  };
  if (key == "exposed_tp") return span(AxisGroup::kTensor) <= domain ? local : network;
  if (key == "exposed_dp") return span(AxisGroup::kData) <= domain ? local : network;
  if (key == "exposed_pp") return span(AxisGroup::kPipeline) <= domain ? local : network;
  return "";
}

}  // namespace

std::string part_text(const Scenario& scenario, const TimePart& part) {
  const std::string key = part.key;
  if (key == "bubble") return key;  // the label is that of one rank
  const std::string wire = wire_of(scenario, key);
  return wire.empty() ? std::string(part.label) : fmt::format("{} ({})", part.label, wire);
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
