// SPDX-License-Identifier: Apache-2.0
#include "acceptance/thresholds.h"

#include <algorithm>
#include <map>
#include <set>

#include "calibrate/import/bus_bandwidth.h"
#include "core/parse_json.h"
#include "core/text/escape.h"
#include "layout/rank_grid.h"
#include "layout/read_scenario.h"
#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/pricing.h"
#include "predict/traffic.h"
#include "program/walk.h"

namespace stepcast {
namespace {

struct Call {
  AxisGroup group;
  Message message;
  auto operator<=>(const Call&) const = default;
};

// The collectives of a step by what they move, with their number.
std::map<Call, double> calls_of(const Program& program, const Role& role) {
  std::map<Call, double> out;
  for (const Instruction& one : role.instructions) {
    if (const auto* call = one.as<CollectiveCall>()) {
      out[{call->group, call->piece()}] += static_cast<double>(call->pieces);
    }
    for_each_operation(program, role, one, [&](const Operation& operation, const BlockVisit&) {
      if (const auto* collective = std::get_if<Collective>(&operation.work)) {
        out[{collective->group, message_of(*collective)}] += 1;
      }
    });
  }
  return out;
}

// Calls of one kind in one group: the size that takes most time stands for them.
struct Sum {
  Seconds all, most;
  Message message;
  std::vector<RankId> members;
};

class Maker {
 public:
  Maker(const Scenario& scenario, const Pricing& pricing, Seconds step)
      : scenario_(scenario), pricing_(pricing), step_(step), grid_(scenario.layout) {}

  std::vector<CollectiveThreshold> collectives() {
    const Program program = lower(scenario_);
    for (const Role& role : program.roles) {
      GridPoint point;
      point.pp = role.stage;
      std::map<std::pair<AxisGroup, CollectiveKind>, Sum> of_role;
      for (const auto& [call, count] : calls_of(program, role)) {
        add(call, count, grid_.rank(point), of_role);
      }
      // The stage that spends most on it.
      for (auto& [key, sum] : of_role) {
        Sum& known = sums_[key];
        if (sum.all > known.all) known = std::move(sum);
      }
    }
    std::vector<CollectiveThreshold> out;
    for (const auto& [key, sum] : sums_) {
      if (sum.all >= kLeastShare * step_) out.push_back(threshold_of(key.first, sum));
    }
    std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.share > b.share; });
    return out;
  }

 private:
  void add(const Call& call, double count, RankId rank,
           std::map<std::pair<AxisGroup, CollectiveKind>, Sum>& sums) const {
    const std::vector<RankId> members = grid_.members(call.group, rank);
    if (members.size() < 2 || call.message.bytes <= 0) return;
    const Seconds time =
        pricing_.collectives.price(call.message, devices_of(members)).time() * count;
    Sum& sum = sums[{call.group, call.message.kind}];
    sum.all += time;
    if (time <= sum.most) return;
    sum.most = time;
    sum.message = call.message;
    sum.members = members;
  }

  CollectiveThreshold threshold_of(AxisGroup group, const Sum& sum) const {
    const std::int64_t each = scenario_.cluster.spec.gpus_per_node;
    CollectiveThreshold out;
    out.kind = sum.message.kind;
    out.group = name_of(group);
    out.ranks = static_cast<std::int64_t>(sum.members.size());
    std::set<std::int64_t> nodes;
    std::vector<std::int64_t> members;
    for (const RankId rank : sum.members) {
      nodes.insert(rank.value / each);
      members.push_back(rank.value);
    }
    out.nodes = static_cast<std::int64_t>(nodes.size());
    // nccl-tests cut a message evenly, and align the parts.
    const ByteCount unit = 16 * out.ranks;
    out.bytes = std::max<ByteCount>(sum.message.bytes / unit, 1) * unit;
    out.share = sum.all / step_;
    Message message = sum.message;
    message.bytes = out.bytes;
    const Seconds time = time_at_once(message, groups_at_once(members, grid_.size()));
    out.forecast_bus_bytes_per_s =
        static_cast<double>(out.bytes) * bus_factor(out.kind, out.ranks) / time.value();
    out.least_bus_bytes_per_s = (1 - kBandwidthMargin) * out.forecast_bus_bytes_per_s;
    out.command = nccl_command(out, message.type, members, grid_.size(), each);
    return out;
  }

  // The time of the first of the groups, on the links that all of them share.
  Seconds time_at_once(const Message& message,
                       const std::vector<std::vector<std::int64_t>>& groups) const {
    const CollectiveCosts& costs = pricing_.collectives;
    std::vector<std::vector<DeviceId>> devices;
    for (const std::vector<std::int64_t>& group : groups) {
      std::vector<DeviceId>& of_group = devices.emplace_back();
      for (const std::int64_t rank : group) of_group.emplace_back(static_cast<std::size_t>(rank));
    }
    const CollectivePrice price = costs.price(message, devices.front());
    std::vector<std::vector<LinkLoad>> loads;
    for (const std::vector<DeviceId>& group : devices) {
      loads.push_back(costs.loads(price, message.kind, group));
    }
    const Topology& topology = scenario_.cluster.topology;
    return price.latency + price.work / rate_at_once(topology, price.rate_bound, loads);
  }

  const Scenario& scenario_;
  const Pricing& pricing_;
  Seconds step_;
  RankGrid grid_;
  std::map<std::pair<AxisGroup, CollectiveKind>, Sum> sums_;
};

}  // namespace

Result<Thresholds> make_thresholds(const Scenario& scenario, const DataFolders& folders) {
  const auto pricing = make_pricing(scenario, folders);
  if (!pricing) return failure(pricing.error());
  const auto prediction = predict(scenario, **pricing);
  if (!prediction) return failure(prediction.error());
  if (!prediction->fits) {
    return failure({ErrorCode::kIllegal, "does not fit in memory: no machine can be held to it", "",
                    "scenario", "a layout that fits; see stepcast predict"});
  }
  auto document = parse_ordered_json(json_text(to_json(scenario)), "scenario");
  if (!document) return failure(document.error());
  Thresholds out;
  out.scenario = std::move(*document);
  out.gpus = scenario.cluster.gpus();
  out.global_batch = scenario.training.global_batch;
  out.sequence = scenario.training.sequence_length;
  out.forecast_step_s = prediction->step_time.value();
  out.most_step_s = prediction->step_time_high.value();
  out.least_tokens_per_s =
      static_cast<double>(out.global_batch) * static_cast<double>(out.sequence) / out.most_step_s;
  out.collectives = Maker(scenario, **pricing, prediction->step_time).collectives();
  return out;
}

}  // namespace stepcast
