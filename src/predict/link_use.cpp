// SPDX-License-Identifier: Apache-2.0
#include "predict/link_use.h"

#include <map>
#include <optional>

#include "layout/scenario.h"
#include "predict/prediction.h"
#include "predict/sent_collectives.h"
#include "program/program.h"

namespace stepcast {
namespace {

// Its time on a link counts as this traffic.
Seconds& part_of(LinkTime& time, std::optional<TrafficKind> kind) {
  return kind ? time.by_traffic[static_cast<std::size_t>(*kind)] : time.others;
}

using Counts = std::map<Message, double>;  // messages of one step

class LinkUse {
 public:
  LinkUse(const SimulationInput& input, const CollectiveCosts& collectives)
      : in_(input),
        collectives_(collectives),
        use_(input.scenario.cluster.topology.links().size()) {}

  std::vector<LinkTime> read() {
    for (const GroupTraffic& groups : in_.traffic.groups) add_groups(groups);
    for (const PairTraffic& pairs : in_.traffic.pairs) add_pairs(pairs);
    // Links of an orbit are used alike.
    for (std::size_t l = 0; l < use_.size(); ++l) {
      const Orbits& orbits = in_.traffic.orbits;
      const LinkId lowest = orbits.lowest_link(orbits.link_orbit(LinkId(l)));
      if (lowest.index() != l) use_[l] = use_[lowest.index()];
    }
    return std::move(use_);
  }

 private:
  // `count` groups or pairs of one orbit.
  void add(const std::vector<LinkLoad>& loads, std::optional<TrafficKind> kind, double bytes,
           std::int64_t count) {
    for (const LinkLoad& load : loads) {
      const Link& link = in_.scenario.cluster.topology.links()[load.link.index()];
      const Orbits& orbits = in_.traffic.orbits;
      const std::int32_t orbit = orbits.link_orbit(load.link);
      const double times = static_cast<double>(count) / orbits.links_alike(orbit);
      part_of(use_[orbits.lowest_link(orbit).index()], kind) +=
          Seconds(load.weight * bytes * times / link.capacity.value());
    }
  }

  // Members of a group that spans stages issue the same of its collectives: the first one's count.
  void add_groups(const GroupTraffic& groups) {
    std::map<std::int32_t, Counts> counts;  // by stage
    for (const GroupOrbit& orbit : groups.orbits) {
      const std::int32_t stage = in_.grid.point(orbit.members.front()).pp;
      const auto [counted, fresh] = counts.try_emplace(stage);
      if (fresh) {
        counted->second = messages_of_step(
            in_.program, in_.program.roles[static_cast<std::size_t>(stage)], groups.group);
      }
      for (const auto& [message, times] : counted->second) {
        const auto& [price, loads] =
            orbit.prices[static_cast<std::size_t>(groups.message(message))];
        if (price.work.value() <= 0) continue;
        add(loads >= 0 ? orbit.loads[static_cast<std::size_t>(loads)]
                       : collectives_.loads(price, message.kind, devices_of(orbit.members)),
            traffic_of(groups.group), price.work.value() * times, orbit.groups);
      }
    }
  }

  void add_pairs(const PairTraffic& pairs) {
    double messages = 0;
    const Role& sender = in_.program.roles[static_cast<std::size_t>(pairs.from_stage)];
    double copied = 0;  // bytes
    for (const Instruction& what : sender.instructions) {
      const auto* send = what.as<Send>();
      if (send != nullptr && send->peer == pairs.to_stage) ++messages;
      const auto* copy = what.host_copy();
      if (copy != nullptr && copy->direction == pairs.copy) {
        copied += static_cast<double>(copy->bytes);
      }
    }
    for (const PairOrbit& pair : pairs.orbits) {
      const auto kind = pairs.copy ? std::nullopt : std::optional(TrafficKind::kPipeline);
      add(pair.loads, kind, pairs.copy ? copied : pair.price.work.value() * messages, pair.pairs);
    }
  }

  const SimulationInput& in_;
  const CollectiveCosts& collectives_;
  std::vector<LinkTime> use_;
};

}  // namespace

Seconds LinkTime::all() const {
  Seconds sum = others;
  for (const Seconds part : by_traffic) sum += part;
  return sum;
}

std::vector<LinkTime> link_use(const SimulationInput& input, const CollectiveCosts& collectives) {
  return LinkUse(input, collectives).read();
}

}  // namespace stepcast
