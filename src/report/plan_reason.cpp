// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/breakdown.h"
#include "report/number_text.h"
#include "report/plan_report.h"

namespace stepcast {
namespace {

constexpr double kWorthSaying = 0.001;  // of the step

// Which wire carries an exposed part: of a group that spans at least so many ranks in a row.
std::string wire_of(const Scenario& scenario, const std::string& key) {
  const Layout& layout = scenario.layout;
  const ClusterSpec& cluster = scenario.cluster.spec;
  const std::int64_t domain = cluster.gpus_per_node * cluster.nvlink_domain_nodes;
  const std::string local = cluster.scale_up == ScaleUp::kPcie ? "PCIe" : "NVLink";
  const std::string network = cluster.nics_per_node > 0 ? "network" : local;
  const RankGrid grid(layout);
  const auto span = [&](GroupKind kind) {
    const auto members = grid.members(kind, RankId(0));
    return members.empty() ? 1 : members.back().value - members.front().value + 1;
  };
  if (key == "exposed_tp") return span(GroupKind::kTensor) <= domain ? local : network;
  if (key == "exposed_dp") return span(GroupKind::kData) <= domain ? local : network;
  if (key == "exposed_pp") return span(GroupKind::kPipeline) <= domain ? local : network;
  return "";
}

std::string named(const Scenario& scenario, const TimePart& part) {
  const std::string wire = wire_of(scenario, part.key);
  return wire.empty() ? std::string(part.label) : fmt::format("{} ({})", part.label, wire);
}

// Over all ranks: the critical one may be another in each forecast.
std::vector<TimePart> mean_parts(const Prediction& prediction) {
  std::vector<TimePart> mean = parts_of({});
  double ranks = 0;
  for (const RankClass& one : prediction.rank_classes)
    ranks += static_cast<double>(one.ranks.size());
  for (const RankClass& one : prediction.rank_classes) {
    const std::vector<TimePart> parts = parts_of(one.time);
    const double share = static_cast<double>(one.ranks.size()) / ranks;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i].time += parts[i].time * share;
  }
  return mean;
}

// Largest differences first.
std::string differences(const Scenario& scenario, const Prediction& one, const Prediction& best) {
  std::vector<TimePart> parts = mean_parts(one);
  const std::vector<TimePart> of_best = mean_parts(best);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].time = parts[i].time - of_best[i].time;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const TimePart& a, const TimePart& b) {
    return std::abs(a.time.value()) > std::abs(b.time.value());
  });
  std::string out;
  std::size_t said = 0;
  for (const TimePart& part : parts) {
    if (said++ == 3) break;
    if (std::abs(part.time.value()) < kWorthSaying * best.step_time.value()) break;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", named(scenario, part),
                       signed_percent_text(part.time / best.step_time, 1));
  }
  return out.empty() ? "the same in every part" : out;
}

}  // namespace

std::string reason(const PlanReport& report, const FoundLayout& found) {
  Scenario scenario = report.planner.space().base();
  report.planner.space().put(found.choice, scenario);
  const FoundLayout& best = report.result.found.front();
  if (found.choice != best.choice) return differences(scenario, found.prediction, best.prediction);
  const auto losses = largest_losses(found.prediction.waterfall, found.prediction.step_time, 3);
  std::string out;
  for (const TimePart& loss : losses) {
    out += fmt::format("{}{} {}", out.empty() ? "bound by " : ", ", named(scenario, loss),
                       percent_text(loss.time / found.prediction.step_time, 1));
  }
  const bool memory_binds =
      !report.result.too_large.empty() &&
      report.result.too_large.front().bound_s < found.prediction.step_time.value();
  if (memory_binds) out += "; memory forbids what would be faster";
  return out.empty() ? "arithmetic" : out;
}

std::string choice_text(const Planner& planner, const LayoutChoice& choice) {
  Scenario scenario = planner.space().base();
  planner.space().put(choice, scenario);
  const Layout& layout = scenario.layout;
  std::string out = layout_text(scenario);
  if (layout.recompute.layers > 0) {
    out += fmt::format(" of {} layers per chunk", layout.recompute.layers);
  }
  std::string overlaps;
  for (const auto& [name, on] :
       {std::pair("grad", layout.overlap.grad_reduce),
        std::pair("param", layout.overlap.param_gather), std::pair("tp", layout.overlap.tp),
        std::pair("pp", layout.overlap.pp)}) {
    if (on) overlaps += fmt::format("{}{}", overlaps.empty() ? "" : "+", name);
  }
  if (!overlaps.empty()) out += fmt::format(" · overlap {}", overlaps);
  if (layout.order != Layout{}.order) out += fmt::format(" · order {}", layout.order);
  return out;
}

std::vector<PlanRow> plan_rows(const PlanReport& report) {
  std::vector<PlanRow> rows;
  for (const FoundLayout& found : report.result.found) {
    if (!rows.empty()) {
      const Prediction& before = rows.back().found->prediction;
      if (before.step_time.value() == found.prediction.step_time.value() &&
          before.peak_device == found.prediction.peak_device) {
        ++rows.back().equals;
        continue;
      }
    }
    if (rows.size() == report.top) break;
    rows.push_back({&found, 0});
  }
  return rows;
}

}  // namespace stepcast
