// SPDX-License-Identifier: Apache-2.0
#include "predict/link_use.h"

#include <map>
#include <variant>

#include "program/walk.h"

namespace stepcast {
namespace {

using Counts = std::map<Message, double>;  // messages of one step

class LinkUse {
 public:
  LinkUse(const SimulationInput& input, const CollectiveCosts& collectives)
      : in_(input),
        collectives_(collectives),
        use_(input.scenario.cluster.topology.links().size(), Seconds(0)) {}

  std::vector<Seconds> read() {
    for (const GroupTraffic& groups : in_.traffic.groups) {
      if (!groups.in_blocks) add_groups(groups);
      add_groups_in_blocks(groups);
    }
    for (const PairTraffic& pairs : in_.traffic.pairs) add_pairs(pairs);
    return std::move(use_);
  }

 private:
  const Role& role_of(RankId rank) const {
    return in_.program.roles[static_cast<std::size_t>(in_.grid.point(rank).pp)];
  }

  void add(const std::vector<LinkLoad>& loads, double bytes) {
    for (const LinkLoad& load : loads) {
      const Link& link = in_.scenario.cluster.topology.links()[load.link.index()];
      use_[load.link.index()] += Seconds(load.weight * bytes / link.capacity.value());
    }
  }

  // Members of a group that spans stages issue the same of its collectives: the first one's count.
  void add_groups(const GroupTraffic& groups) {
    std::map<const Role*, Counts> counts;
    for (std::size_t g = 0; g < groups.members.size(); ++g) {
      if (groups.members[g].empty()) continue;
      const Role& role = role_of(groups.members[g].front());
      const auto [counted, fresh] = counts.try_emplace(&role);
      if (fresh) counted->second = collectives_of(role, groups.group);
      for (const auto& [key, times] : counted->second) {
        const Priced& priced = groups.prices[g][static_cast<std::size_t>(groups.message(key))];
        if (priced.loads < 0) continue;
        add(groups.loads[g][static_cast<std::size_t>(priced.loads)],
            priced.price.work.value() * times);
      }
    }
  }

  static Counts collectives_of(const Role& role, AxisGroup group) {
    Counts out;
    for (const Instruction& what : role.instructions) {
      const auto* call = what.as<CollectiveCall>();
      if (call == nullptr || call->group != group || call->message.bytes == 0) continue;
      out[call->piece()] += call->pieces;
    }
    return out;
  }

  // Their traffic is inside the passes.
  void add_groups_in_blocks(const GroupTraffic& groups) {
    std::map<const Role*, Counts> counts;
    for (std::size_t c = 0; c < in_.symmetry.ranks.size(); ++c) {
      const Role& role = in_.costs.role(static_cast<std::int32_t>(c));
      const auto [counted, fresh] = counts.try_emplace(&role);
      if (fresh) {
        counted->second = collectives_in_blocks(role, groups.group);
      }
    }
    for (const std::vector<RankId>& members : groups.members) {
      if (members.empty()) continue;
      const std::vector<DeviceId> devices = devices_of(members);
      for (const auto& [key, times] : counts[&role_of(members.front())]) {
        const CollectivePrice price = collectives_.price(key, devices);
        if (price.work.value() <= 0) continue;
        add(collectives_.loads(price, key.kind, devices), price.work.value() * times);
      }
    }
  }

  Counts collectives_in_blocks(const Role& role, AxisGroup group) const {
    Counts out;
    for (const CountedRun& run : distinct_runs(role)) {
      for_each_operation(in_.program, role, *run.first,
                         [&](const Operation& operation, BlockVisit) {
                           const auto* collective = std::get_if<Collective>(&operation.work);
                           if (collective == nullptr || collective->group != group) return;
                           out[message_of(*collective)] += static_cast<double>(run.times);
                         });
    }
    return out;
  }

  void add_pairs(const PairTraffic& pairs) {
    double messages = 0;
    const Role& sender = in_.program.roles[static_cast<std::size_t>(pairs.from_stage)];
    double copied = 0;  // bytes
    for (const Instruction& what : sender.instructions) {
      const auto* send = what.as<Send>();
      if (send != nullptr && send->peer == pairs.to_stage) ++messages;
      const auto* copy = what.as<HostCopy>();
      if (copy != nullptr && copy->direction == pairs.copy) {
        copied += static_cast<double>(copy->bytes);
      }
    }
    for (std::size_t p = 0; p < pairs.senders.size(); ++p) {
      add(pairs.loads[p], pairs.copy ? copied : pairs.prices[p].work.value() * messages);
    }
  }

  const SimulationInput& in_;
  const CollectiveCosts& collectives_;
  std::vector<Seconds> use_;
};

}  // namespace

std::vector<Seconds> link_use(const SimulationInput& input, const CollectiveCosts& collectives) {
  return LinkUse(input, collectives).read();
}

}  // namespace stepcast
