// SPDX-License-Identifier: Apache-2.0
#include "predict/traffic.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/work_limits.h"
#include "layout/scenario.h"
#include "predict/sibling_links.h"
#include "program/run_key.h"
#include "program/walk.h"

namespace stepcast {
namespace {

// The program sends these through the groups of one kind.
struct Messages {
  std::set<Message> issued;     // by instructions, or as tasks of passes
  std::set<Message> in_blocks;  // inside passes and the update
  std::set<Message> in_passes;
  bool has_stamps = false;  // some passes send them as tasks
  bool sends_in_update() const {
    return std::ranges::any_of(in_blocks, [&](const Message& one) {
      return one.bytes > kSmallMessage && !in_passes.contains(one);
    });
  }
};

// Prices messages group by group. Groups of GPUs that lie alike are priced once.
class MessagePrices {
 public:
  MessagePrices(const CollectiveCosts& costs, const std::vector<Message>& messages)
      : costs_(costs), messages_(messages) {}

  // Returns a price for each message. Valid until the next call.
  const std::vector<CollectivePrice>& of(const std::vector<DeviceId>& members) {
    const std::optional<GroupShape> shape = costs_.shape(members);
    if (!shape) return fresh_ = price(members);
    const auto [known, fresh] = known_.try_emplace(*shape);
    if (fresh) known->second = price(members);
    return known->second;
  }

 private:
  std::vector<CollectivePrice> price(const std::vector<DeviceId>& members) const {
    std::vector<CollectivePrice> out;
    for (const Message& one : messages_) {
      out.push_back(costs_.price(one, members));
    }
    return out;
  }

  const CollectiveCosts& costs_;
  const std::vector<Message>& messages_;
  std::map<GroupShape, std::vector<CollectivePrice>> known_;
  std::vector<CollectivePrice> fresh_;
};

// Loads links for the messages of one group. Kinds that are routed alike look for their way once.
class GroupLoads {
 public:
  GroupLoads(const CollectiveCosts& costs, std::span<const DeviceId> members)
      : costs_(costs), members_(members) {}

  std::vector<LinkLoad> of(const CollectivePrice& price, CollectiveKind kind) {
    const Key key{price.algorithm, price.copies, routed_like(price.algorithm, kind)};
    if (!is_routed_ || key != key_) {
      is_routed_ = true;
      key_ = key;
      routed_ = costs_.routed(price, kind, members_);
    }
    std::vector<LinkLoad> out = routed_;
    costs_.charge(price, kind, members_, out);
    return out;
  }

 private:
  struct Key {
    Algorithm algorithm = Algorithm::kRing;
    std::int64_t copies = 0;
    CollectiveKind kind = CollectiveKind::kAllReduce;
    bool operator==(const Key&) const = default;
  };

  const CollectiveCosts& costs_;
  std::span<const DeviceId> members_;
  Key key_;
  bool is_routed_ = false;
  std::vector<LinkLoad> routed_;  // of the key
};

// The groups of these axes, one of each orbit: who its members are.
GroupTraffic find_groups(AxisGroup axes, const RankGrid& grid, const Orbits& orbits) {
  GroupTraffic out;
  out.group = axes;
  out.of_ranks.assign(static_cast<std::size_t>(orbits.count()), -1);
  std::vector<std::int32_t> known(static_cast<std::size_t>(grid.group_count(axes)), -1);
  std::vector<std::int64_t> ranks;  // by orbit of groups
  StopPoint stop;
  for (std::int32_t o = 0; o < orbits.count(); ++o) {
    stop.pass();
    const std::int32_t group = grid.group_of(axes, orbits.lowest(o));
    if (group < 0) continue;  // inner stages have no embedding group
    std::int32_t& own = known[static_cast<std::size_t>(group)];
    if (own < 0) {
      // A symmetry that carries a group to another one keeps the order of its members, so the first
      // members of an orbit's groups are of one orbit, too.
      const RankId first = grid.members(axes, orbits.lowest(o)).front();
      const RankId lowest = orbits.lowest(first);
      std::int32_t& same = known[static_cast<std::size_t>(grid.group_of(axes, lowest))];
      if (same < 0) {
        same = static_cast<std::int32_t>(out.orbits.size());
        out.orbits.emplace_back().members = grid.members(axes, lowest);
        ranks.push_back(0);
      }
      own = same;
    }
    out.of_ranks[static_cast<std::size_t>(o)] = own;
    ranks[static_cast<std::size_t>(own)] += orbits.size(o);
  }
  for (std::size_t o = 0; o < ranks.size(); ++o) {
    out.orbits[o].groups = ranks[o] / static_cast<std::int64_t>(out.orbits[o].members.size());
  }
  return out;
}

GroupTraffic place_groups(AxisGroup axes, const Messages& messages, const Cluster& cluster,
                          const RankGrid& grid, const CollectiveCosts& costs,
                          const Orbits& orbits) {
  GroupTraffic out = find_groups(axes, grid, orbits);
  out.in_blocks = !messages.in_passes.empty() && !messages.has_stamps;
  out.has_siblings_in_price = out.in_blocks || messages.sends_in_update();
  std::ranges::set_union(messages.issued, messages.in_blocks, std::back_inserter(out.messages));
  MessagePrices prices(costs, out.messages);
  for (GroupOrbit& orbit : out.orbits) {
    end_if_stopped();
    const std::vector<DeviceId> devices = devices_of(orbit.members);
    const std::vector<CollectivePrice>& of_group = prices.of(devices);
    std::map<Way, std::int32_t> known;
    GroupLoads loads(costs, devices);
    // Passes send as macro activities, which have their siblings in their price.
    const bool loads_links = !out.in_blocks || !has_own_links(orbit.members, cluster);
    for (std::size_t m = 0; m < out.messages.size(); ++m) {
      const Message& key = out.messages[m];
      Priced priced{of_group[m], -1};
      if (key.bytes > kSmallMessage && loads_links && messages.issued.contains(key)) {
        const auto [found, fresh] = known.try_emplace(
            way_of(key, priced.price), static_cast<std::int32_t>(orbit.loads.size()));
        if (fresh) orbit.loads.push_back(loads.of(priced.price, key.kind));
        priced.loads = found->second;
      }
      orbit.prices.push_back(priced);
    }
  }
  return out;
}

// Whether the loads, carried over, are themselves.
bool are_kept(const std::vector<std::vector<LinkLoad>>& all, const Orbits& orbits,
              std::size_t symmetry) {
  constexpr double kRounding = 1e-9;
  return std::ranges::all_of(all, [&](const std::vector<LinkLoad>& loads) {
    return std::ranges::all_of(loads, [&](const LinkLoad& load) {
      const LinkId to = orbits.carried(symmetry, load.link);
      const auto found = std::ranges::lower_bound(loads, to, {}, &LinkLoad::link);
      return found != loads.end() && found->link == to &&
             std::abs(found->weight - load.weight) <= kRounding * load.weight;
    });
  });
}

// Loads of the messages that are no load of the step, because they are sent inside passes.
std::vector<std::vector<LinkLoad>> other_loads(const GroupTraffic& groups, const GroupOrbit& orbit,
                                               const CollectiveCosts& costs) {
  std::vector<Message> others;
  for (std::size_t m = 0; m < groups.messages.size(); ++m) {
    const bool is_large = groups.messages[m].bytes > kSmallMessage;
    if (orbit.prices[m].loads < 0 && is_large) others.push_back(groups.messages[m]);
  }
  std::vector<std::vector<LinkLoad>> out;
  const std::vector<DeviceId> devices = devices_of(orbit.members);
  for (const auto& [way, price] : groups.fastest(orbit, others)) {
    out.push_back(costs.loads(price, way.kind, devices));
  }
  return out;
}

// A copy goes to the nearest host, and where two are as near to the first of them.
bool keeps_copies(const PairTraffic& pairs, const Orbits& orbits, std::size_t symmetry,
                  const Cluster& cluster) {
  return std::ranges::all_of(pairs.orbits, [&](const PairOrbit& pair) {
    const RankId to = orbits.carried(symmetry, pair.sender);
    const std::vector<LinkId> there = host_link(cluster, DeviceId(to.value), *pairs.copy).links;
    return std::ranges::all_of(pair.loads, [&](const LinkLoad& load) {
      return std::ranges::find(there, orbits.carried(symmetry, load.link)) != there.end();
    });
  });
}

// The first symmetry that carries a group onto itself, but not what it loads.
std::optional<std::size_t> find_broken(const Traffic& traffic, const RankGrid& grid,
                                       const CollectiveCosts& costs, const Cluster& cluster) {
  for (std::size_t s = 0; s < traffic.orbits.symmetries(); ++s) {
    for (const GroupTraffic& groups : traffic.groups) {
      for (const GroupOrbit& orbit : groups.orbits) {
        const RankId first = orbit.members.front();
        const std::int32_t own = grid.group_of(groups.group, first);
        if (grid.group_of(groups.group, traffic.orbits.carried(s, first)) != own) continue;
        if (!are_kept(orbit.loads, traffic.orbits, s) ||
            !are_kept(other_loads(groups, orbit, costs), traffic.orbits, s)) {
          return s;
        }
      }
    }
    for (const PairTraffic& pairs : traffic.pairs) {
      if (pairs.copy && !keeps_copies(pairs, traffic.orbits, s, cluster)) return s;
    }
  }
  return std::nullopt;
}

// The other direction of a link's cable; cables are laid one after the other. Invalid where there
// is none of the same capacity, as after the failure of one direction.
LinkId opposite(const std::vector<Link>& links, LinkId link) {
  const std::size_t other = link.index() ^ 1U;
  if (other >= links.size()) return {};
  const Link &a = links[link.index()], &b = links[other];
  const bool is_opposite =
      a.from == b.to && a.to == b.from && a.kind == b.kind && a.capacity == b.capacity;
  return is_opposite ? LinkId(other) : LinkId();
}

// Traffic back takes the same ways, so they need not be searched again. Nothing where a cable of
// theirs has one direction alone, where each flow has a hash of its own, or where another GPU than
// the receiver hands it on: the other sender has one of its own node do so.
std::optional<std::vector<LinkLoad>> turned_round(std::vector<LinkLoad> loads, RankId receiver,
                                                  const Topology& graph) {
  const std::vector<Link>& links = graph.links();
  if (graph.is_hashed()) return std::nullopt;
  const VertexId last = graph.gpus()[receiver.index()];
  for (LinkLoad& load : loads) {
    const VertexId to = links[load.link.index()].to;
    if (to != last && graph.vertices()[to.index()].kind == VertexKind::kGpu) return std::nullopt;
    load.link = opposite(links, load.link);
    if (!load.link.valid()) return std::nullopt;
  }
  std::ranges::sort(loads, {}, &LinkLoad::link);
  return loads;
}

// The pairs that ranks of the stage `from` send to, one of each orbit. Loads are left out.
PairTraffic place_pairs(std::int32_t from, std::int32_t to, ByteCount bytes, const RankGrid& grid,
                        const CollectiveCosts& costs, const Orbits& orbits) {
  PairTraffic out{from, to};
  const auto count = static_cast<std::size_t>(orbits.count());
  out.of_senders.assign(count, -1);
  out.of_receivers.assign(count, -1);
  for (std::int32_t o = 0; o < orbits.count(); ++o) {
    const RankId sender = orbits.lowest(o);
    GridPoint point = grid.point(sender);
    if (point.pp != from) continue;
    point.pp = to;
    const RankId receiver = grid.rank(point);
    const auto own = static_cast<std::int32_t>(out.orbits.size());
    out.of_senders[static_cast<std::size_t>(o)] = own;
    out.of_receivers[static_cast<std::size_t>(orbits.of(receiver))] = own;
    const CollectivePrice price =
        costs.price_send(bytes, DeviceId(sender.value), DeviceId(receiver.value));
    out.orbits.push_back({orbits.size(o), sender, receiver, price, {}});
  }
  return out;
}

void load_pairs(PairTraffic& pairs, const Traffic& known, const Topology& graph,
                const CollectiveCosts& costs) {
  const PairTraffic* back = known.find(pairs.to_stage, pairs.from_stage);
  for (PairOrbit& pair : pairs.orbits) {
    if (back != nullptr) {
      const auto other = known.orbit_of_sender(*back, pair.receiver);
      const PairOrbit& there = back->orbits[static_cast<std::size_t>(other)];
      if (there.sender == pair.receiver && there.receiver == pair.sender) {
        if (auto turned = turned_round(there.loads, there.receiver, graph)) {
          pair.loads = std::move(*turned);
          continue;
        }
      }
    }
    pair.loads = costs.loads_of_send(DeviceId(pair.sender.value), DeviceId(pair.receiver.value));
  }
}

PairTraffic place_copies(std::int32_t stage, CopyDirection direction, const Cluster& cluster,
                         const RankGrid& grid, const Orbits& orbits) {
  PairTraffic out{stage, stage, direction};
  out.of_senders.assign(static_cast<std::size_t>(orbits.count()), -1);
  for (std::int32_t o = 0; o < orbits.count(); ++o) {
    const RankId rank = orbits.lowest(o);
    if (grid.point(rank).pp != stage) continue;
    out.of_senders[static_cast<std::size_t>(o)] = static_cast<std::int32_t>(out.orbits.size());
    const HostLink link = host_link(cluster, DeviceId(rank.value), direction);
    PairOrbit& pair = out.orbits.emplace_back(PairOrbit{orbits.size(o), rank, rank, {}, {}});
    pair.price.rate_bound = link.rate;
    for (const LinkId crossed : link.links) pair.loads.push_back({crossed, 1.0});
  }
  out.of_receivers = out.of_senders;
  return out;
}

// Adds the messages that stamped passes send as tasks.
void add_stamped(const Program& program, const Stamps& stamps,
                 std::map<AxisGroup, Messages>& messages) {
  for (std::size_t stage = 0; stage < stamps.size(); ++stage) {
    const Role& role = program.roles[stage];
    std::set<std::pair<RunKey, std::vector<AxisGroup>>> known;
    for (std::size_t i = 0; i < role.instructions.size(); ++i) {
      const std::vector<AxisGroup>& groups = stamps[stage][i];
      const Instruction& what = role.instructions[i];
      if (groups.empty() || !known.insert({*run_key(what), groups}).second) continue;
      for_each_operation(program, role, what, [&](const Operation& one, const BlockVisit&) {
        const auto* sent = std::get_if<Collective>(&one.work);
        if (sent == nullptr || sent->overlapped) return;
        if (std::ranges::find(groups, sent->group) == groups.end()) return;
        messages[sent->group].issued.insert(message_of(*sent));
        messages[sent->group].has_stamps = true;
      });
    }
  }
}

// All that the program sends.
struct Sent {
  std::map<AxisGroup, Messages> messages;
  std::map<std::pair<std::int32_t, std::int32_t>, ByteCount> pairs;  // by stages
  std::set<std::pair<std::int32_t, CopyDirection>> copies;           // by stage
};

Sent find_sent(const Program& program, const RankGrid& grid, const Stamps& stamps) {
  Sent out;
  add_stamped(program, stamps, out.messages);
  for (const Role& role : program.roles) {
    std::vector<std::pair<std::int32_t, ByteCount>> sent;  // by peer, of which a stage has few
    for (const Instruction& instruction : role.instructions) {
      if (const auto* call = instruction.as<CollectiveCall>()) {
        if (grid.group_size(call->group) < 2) continue;
        out.messages[call->group].issued.insert(call->piece());
      } else if (const auto* send = instruction.as<Send>()) {
        const auto known = std::ranges::find(sent, send->peer, &decltype(sent)::value_type::first);
        if (known == sent.end()) sent.emplace_back(send->peer, send->bytes);
      } else if (const auto* copy = instruction.host_copy()) {
        out.copies.insert({role.stage, copy->direction});
      }
    }
    for (const auto& [peer, bytes] : sent) out.pairs[{role.stage, peer}] = bytes;
  }
  // Messages inside passes are placed and priced too: ranks of groups that pay differently for them
  // are not alike.
  for (const auto& [group, message] : messages_in_blocks(program)) {
    if (grid.group_size(group) > 1) out.messages[group].in_blocks.insert(message);
  }
  for (const auto& [group, message] : messages_in_passes(program)) {
    if (grid.group_size(group) > 1) out.messages[group].in_passes.insert(message);
  }
  return out;
}

// Curves among processors are measured between particular devices: none of these lie alike.
Orbits orbits_of(const Cluster& cluster, const RankGrid& grid, const RepeatedUnits& units,
                 const std::map<AxisGroup, Messages>& messages) {
  if (units.count == 0 || cluster.spec.accelerator.is_cpu()) {
    return {grid.size(), cluster.topology.links().size()};
  }
  std::vector<AxisGroup> groups;
  for (const auto& [group, sent] : messages) groups.push_back(group);
  return find_orbits(cluster, grid, units, groups);
}

Traffic place(const Scenario& scenario, const Sent& sent, const RankGrid& grid,
              const CollectiveCosts& costs, Orbits orbits) {
  Traffic out{std::move(orbits), {}, {}};
  for (const auto& [group, messages] : sent.messages) {
    out.groups.push_back(place_groups(group, messages, scenario.cluster, grid, costs, out.orbits));
  }
  for (const auto& [stages, bytes] : sent.pairs) {
    PairTraffic placed = place_pairs(stages.first, stages.second, bytes, grid, costs, out.orbits);
    load_pairs(placed, out, scenario.cluster.topology, costs);
    out.pairs.push_back(std::move(placed));
  }
  for (const auto& [stage, direction] : sent.copies) {
    out.pairs.push_back(place_copies(stage, direction, scenario.cluster, grid, out.orbits));
  }
  return out;
}

}  // namespace

Way way_of(const Message& message, const CollectivePrice& price) {
  return {message.kind, price.algorithm, message.copies, message.store_sms};
}

std::int32_t GroupTraffic::message(const Message& message) const {
  return static_cast<std::int32_t>(std::lower_bound(messages.begin(), messages.end(), message) -
                                   messages.begin());
}

std::map<Way, CollectivePrice> GroupTraffic::fastest(const GroupOrbit& orbit,
                                                     std::span<const Message> of) const {
  std::map<Way, CollectivePrice> out;
  for (const Message& one : of) {
    const CollectivePrice& price = orbit.prices[static_cast<std::size_t>(message(one))].price;
    keep_faster(out, way_of(one, price), price);
  }
  return out;
}

const GroupTraffic* Traffic::find(AxisGroup group) const {
  for (const GroupTraffic& placed : groups) {
    if (placed.group == group) return &placed;
  }
  return nullptr;
}

const PairTraffic* Traffic::find(std::int32_t from_stage, std::int32_t to_stage) const {
  for (const PairTraffic& pair : pairs) {
    if (!pair.copy && pair.from_stage == from_stage && pair.to_stage == to_stage) return &pair;
  }
  return nullptr;
}

const PairTraffic* Traffic::find_copies(std::int32_t stage, CopyDirection direction) const {
  for (const PairTraffic& pair : pairs) {
    if (pair.from_stage == stage && pair.copy == direction) return &pair;
  }
  return nullptr;
}

std::vector<DeviceId> devices_of(const std::vector<RankId>& ranks) {
  std::vector<DeviceId> devices;
  devices.reserve(ranks.size());
  for (const RankId rank : ranks) devices.emplace_back(rank.value);
  return devices;
}

Traffic place_traffic(const Scenario& scenario, const Program& program, const RankGrid& grid,
                      const CollectiveCosts& costs, const Stamps& stamps,
                      const RepeatedUnits& units) {
  const Sent sent = find_sent(program, grid, stamps);
  Traffic out =
      place(scenario, sent, grid, costs, orbits_of(scenario.cluster, grid, units, sent.messages));
  while (const auto broken = find_broken(out, grid, costs, scenario.cluster)) {
    out = place(scenario, sent, grid, costs, out.orbits.without(*broken));
  }
  return out;
}

}  // namespace stepcast
