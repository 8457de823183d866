// SPDX-License-Identifier: Apache-2.0
#include "predict/sent_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "cost/collective_cost.h"
#include "layout/scenario.h"
#include "predict/simulation.h"
#include "program/walk.h"

namespace stepcast {
namespace {

class Listing {
 public:
  Listing(const SimulationInput& input, const CollectiveCosts& collectives)
      : in_(input), collectives_(collectives) {}

  std::vector<SentCollective> list() {
    for (const GroupTraffic& groups : in_.traffic.groups) add_groups(groups);
    for (const PairTraffic& pairs : in_.traffic.pairs) add_pairs(pairs);
    std::ranges::stable_sort(out_, {}, &SentCollective::stage);
    return std::move(out_);
  }

 private:
  void add_groups(const GroupTraffic& groups) {
    std::map<std::int32_t, std::vector<const GroupOrbit*>> by_stage;
    for (const GroupOrbit& orbit : groups.orbits) {
      by_stage[in_.grid.point(orbit.members.front()).pp].push_back(&orbit);
    }
    for (const auto& [stage, orbits] : by_stage) {
      const Role& role = in_.program.roles[static_cast<std::size_t>(stage)];
      for (const auto& [message, times] : messages_of_step(in_.program, role, groups.group)) {
        const auto m = static_cast<std::size_t>(groups.message(message));
        const auto slowest = std::ranges::max_element(
            orbits, {}, [&](const GroupOrbit* one) { return one->prices[m].price.time(); });
        add_group(stage, groups.group, message, times, **slowest, (*slowest)->prices[m]);
      }
    }
  }

  void add_group(std::int32_t stage, AxisGroup group, const Message& message, double times,
                 const GroupOrbit& orbit, const Priced& priced) {
    if (priced.price.work.value() <= 0) return;
    SentCollective row;
    row.stage = stage;
    row.kind = name_of(message.kind);
    row.group = name_of(group);
    row.ranks = static_cast<std::int64_t>(orbit.members.size());
    row.bytes = message.bytes;
    row.times = times;
    describe(priced.price, loads_of(message, orbit, priced), row);
    out_.push_back(std::move(row));
  }

  // Latency alone decides of a message that is too small to load links, and the ways of all ranks
  // would take longer to find than the step to forecast.
  const std::vector<LinkLoad>& loads_of(const Message& message, const GroupOrbit& orbit,
                                        const Priced& priced) {
    if (priced.loads >= 0) return orbit.loads[static_cast<std::size_t>(priced.loads)];
    loads_.clear();
    if (message.bytes > kSmallMessage) {
      loads_ = collectives_.loads(priced.price, message.kind, devices_of(orbit.members));
    }
    return loads_;
  }

  void add_pairs(const PairTraffic& pairs) {
    if (pairs.copy || pairs.orbits.empty()) return;
    const Role& sender = in_.program.roles[static_cast<std::size_t>(pairs.from_stage)];
    SentCollective row;
    row.stage = pairs.from_stage;
    row.kind = "send";
    row.group = fmt::format("stage {}", pairs.to_stage);
    for (const Instruction& what : sender.instructions) {
      const auto* send = what.as<Send>();
      if (send == nullptr || send->peer != pairs.to_stage) continue;
      row.bytes = send->bytes;
      ++row.times;
    }
    const auto slowest = std::ranges::max_element(
        pairs.orbits, {}, [](const PairOrbit& one) { return one.price.time(); });
    if (slowest->price.work.value() <= 0) return;
    describe(slowest->price, slowest->loads, row);
    out_.push_back(std::move(row));
  }

  void describe(const CollectivePrice& price, const std::vector<LinkLoad>& loads,
                SentCollective& row) const {
    const Topology& topology = in_.scenario.cluster.topology;
    row.algorithm = name_of(price.algorithm);
    // Processes over MPI have neither.
    if (!in_.scenario.cluster.spec.accelerator.is_cpu()) {
      row.protocol = name_of(price.protocol);
      row.channels = price.channels;
    }
    row.curve = collectives_.curve_name(price);
    row.provenance = price.provenance;
    const LinkLoad* fullest = nullptr;
    BytesPerSecond least;
    for (const LinkLoad& load : loads) {
      const BytesPerSecond most =
          topology.links()[load.link.index()].capacity / std::max(load.weight, 1e-300);
      // Links alike are full alike but for rounding: the first of them is named.
      if (fullest != nullptr && most >= least * (1 - 1e-9)) continue;
      fullest = &load;
      least = most;
    }
    BytesPerSecond rate = price.rate_bound;
    if (fullest != nullptr) {
      rate = std::min(rate, least);
      row.bound_by = topology.name(fullest->link);
      row.full = rate / least;
    }
    row.time = price.latency + price.work / rate;
  }

  const SimulationInput& in_;
  const CollectiveCosts& collectives_;
  std::vector<SentCollective> out_;
  std::vector<LinkLoad> loads_;  // of the last message that has none in the traffic
};

}  // namespace

// Counts collectives by instructions, and inside passes.
std::map<Message, double> messages_of_step(const Program& program, const Role& role,
                                           AxisGroup group) {
  std::map<Message, double> out;
  for (const Instruction& what : role.instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call == nullptr || call->group != group || call->message.bytes == 0) continue;
    out[call->piece()] += call->pieces;
  }
  for (const CountedRun& run : distinct_runs(role)) {
    for_each_operation(program, role, *run.first, [&](const Operation& one, BlockVisit) {
      const auto* collective = std::get_if<Collective>(&one.work);
      if (collective == nullptr || collective->group != group) return;
      out[message_of(*collective)] += static_cast<double>(run.times);
    });
  }
  return out;
}

std::vector<SentCollective> sent_collectives(const SimulationInput& input,
                                             const CollectiveCosts& collectives) {
  return Listing(input, collectives).list();
}

std::int32_t find_sent(const std::vector<SentCollective>& all, std::int32_t stage, AxisGroup group,
                       const Message& message) {
  const auto found = std::ranges::find_if(all, [&](const SentCollective& one) {
    return one.stage == stage && one.bytes == message.bytes && one.kind == name_of(message.kind) &&
           one.group == name_of(group);
  });
  return found == all.end() ? -1 : static_cast<std::int32_t>(found - all.begin());
}

}  // namespace stepcast
