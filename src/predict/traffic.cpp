// SPDX-License-Identifier: Apache-2.0
#include "predict/traffic.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "program/walk.h"

namespace stepcast {
namespace {

// A message below this size is latency alone; the time that it loads a link does not matter.
constexpr ByteCount kSmallMessage = 4096;

// The program sends these through the groups of one kind.
struct Messages {
  std::set<Message> issued;     // by instructions, or as tasks of passes
  std::set<Message> in_passes;  // inside passes
  bool has_stamps = false;      // some passes send them as tasks
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

GroupTraffic place_groups(AxisGroup axes, const Messages& messages, const RankGrid& grid,
                          const CollectiveCosts& costs) {
  GroupTraffic out;
  out.group = axes;
  out.in_blocks = !messages.in_passes.empty() && !messages.has_stamps;
  std::ranges::set_union(messages.issued, messages.in_passes, std::back_inserter(out.messages));
  const auto count = static_cast<std::size_t>(grid.group_count(axes));
  out.members.resize(count);
  out.prices.resize(count);
  out.loads.resize(count);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    const std::int32_t group = grid.group_of(axes, RankId(r));
    if (group < 0) continue;  // inner stages have no embedding group
    auto& members = out.members[static_cast<std::size_t>(group)];
    if (members.empty()) members = grid.members(axes, RankId(r));
  }
  MessagePrices prices(costs, out.messages);
  for (std::size_t g = 0; g < count; ++g) {
    if (out.members[g].empty()) continue;
    const std::vector<DeviceId> devices = devices_of(out.members[g]);
    const std::vector<CollectivePrice>& of_group = prices.of(devices);
    std::map<Way, std::int32_t> known;
    GroupLoads loads(costs, devices);
    for (std::size_t m = 0; m < out.messages.size(); ++m) {
      const Message& key = out.messages[m];
      Priced priced{of_group[m], -1};
      if (key.bytes > kSmallMessage && !out.in_blocks && messages.issued.contains(key)) {
        const auto [found, fresh] = known.try_emplace(
            way_of(key, priced.price), static_cast<std::int32_t>(out.loads[g].size()));
        if (fresh) out.loads[g].push_back(loads.of(priced.price, key.kind));
        priced.loads = found->second;
      }
      out.prices[g].push_back(priced);
    }
  }
  return out;
}

// By link: the other direction of its cable. Empty where a link has none of the same capacity, as
// after the failure of one direction.
std::vector<LinkId> opposite_links(const Topology& topology) {
  const std::vector<Link>& links = topology.links();
  const auto are_opposite = [](const Link& a, const Link& b) {
    return a.from == b.to && a.to == b.from && a.kind == b.kind && a.capacity == b.capacity;
  };
  std::vector<LinkId> out;
  out.reserve(links.size());
  for (std::size_t l = 0; l + 1 < links.size(); l += 2) {  // cables are laid one after the other
    if (!are_opposite(links[l], links[l + 1])) return {};
    out.emplace_back(l + 1);
    out.emplace_back(l);
  }
  if (out.size() != links.size()) out.clear();
  return out;
}

// Traffic back takes the same ways, so they need not be searched again.
std::vector<std::vector<LinkLoad>> turned_round(std::vector<std::vector<LinkLoad>> all_loads,
                                                const std::vector<LinkId>& opposite) {
  for (std::vector<LinkLoad>& loads : all_loads) {
    for (LinkLoad& load : loads) load.link = opposite[load.link.index()];
  }
  return all_loads;
}

// `senders`: the ranks of the stage `from`, in order. Loads are left out.
PairTraffic place_pairs(const std::vector<RankId>& senders, std::int32_t from, std::int32_t to,
                        ByteCount bytes, const RankGrid& grid, const CollectiveCosts& costs) {
  PairTraffic out{from, to, std::nullopt, senders, {}, {}, {}};
  out.receivers.reserve(senders.size());
  out.prices.reserve(senders.size());
  for (const RankId sender : senders) {
    GridPoint point = grid.point(sender);
    point.pp = to;
    const RankId receiver = grid.rank(point);
    out.receivers.push_back(receiver);
    out.prices.push_back(costs.price_send(bytes, DeviceId(sender.value), DeviceId(receiver.value)));
  }
  return out;
}

void load_pairs(PairTraffic& pairs, const Traffic& known, const std::vector<LinkId>& opposite,
                const CollectiveCosts& costs) {
  const PairTraffic* back = known.find(pairs.to_stage, pairs.from_stage);
  if (back != nullptr && back->senders == pairs.receivers && !opposite.empty()) {
    pairs.loads = turned_round(back->loads, opposite);
    return;
  }
  pairs.loads.reserve(pairs.senders.size());
  for (std::size_t p = 0; p < pairs.senders.size(); ++p) {
    pairs.loads.push_back(
        costs.loads_of_send(DeviceId(pairs.senders[p].value), DeviceId(pairs.receivers[p].value)));
  }
}

PairTraffic place_copies(const std::vector<RankId>& ranks, std::int32_t stage,
                         CopyDirection direction, const Cluster& cluster) {
  PairTraffic out{stage, stage, direction, ranks, ranks, {}, {}};
  for (const RankId rank : ranks) {
    const HostLink link = host_link(cluster, DeviceId(rank.value), direction);
    CollectivePrice& price = out.prices.emplace_back();
    price.rate_bound = link.rate;
    std::vector<LinkLoad>& loads = out.loads.emplace_back();
    for (const LinkId crossed : link.links) loads.push_back({crossed, 1.0});
  }
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

std::vector<std::vector<RankId>> ranks_by_stage(const RankGrid& grid, std::size_t stages) {
  std::vector<std::vector<RankId>> out(stages);
  for (std::int32_t r = 0; r < grid.size(); ++r) {
    out[static_cast<std::size_t>(grid.point(RankId(r)).pp)].emplace_back(r);
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

std::map<Way, CollectivePrice> GroupTraffic::fastest(std::size_t g,
                                                     std::span<const Message> of) const {
  std::map<Way, CollectivePrice> out;
  for (const Message& one : of) {
    const CollectivePrice& price = prices[g][static_cast<std::size_t>(message(one))].price;
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
                      const CollectiveCosts& costs, const Stamps& stamps) {
  std::map<AxisGroup, Messages> messages;
  add_stamped(program, stamps, messages);
  std::map<std::pair<std::int32_t, std::int32_t>, ByteCount> pairs;
  std::set<std::pair<std::int32_t, CopyDirection>> copies;
  for (const Role& role : program.roles) {
    std::vector<std::pair<std::int32_t, ByteCount>> sent;  // by peer, of which a stage has few
    for (const Instruction& instruction : role.instructions) {
      if (const auto* call = instruction.as<CollectiveCall>()) {
        if (grid.group_size(call->group) < 2) continue;
        messages[call->group].issued.insert(call->piece());
      } else if (const auto* send = instruction.as<Send>()) {
        const auto known = std::ranges::find(sent, send->peer, &decltype(sent)::value_type::first);
        if (known == sent.end()) sent.emplace_back(send->peer, send->bytes);
      } else if (const auto* copy = instruction.host_copy()) {
        copies.insert({role.stage, copy->direction});
      }
    }
    for (const auto& [peer, bytes] : sent) pairs[{role.stage, peer}] = bytes;
  }
  // Messages inside passes are placed and priced too: ranks of groups that pay differently for them
  // are not alike.
  for (const auto& [group, message] : messages_in_blocks(program)) {
    if (grid.group_size(group) > 1) messages[group].in_passes.insert(message);
  }
  Traffic out;
  for (const auto& [group, sent] : messages) {
    out.groups.push_back(place_groups(group, sent, grid, costs));
  }
  const auto ranks = ranks_by_stage(grid, program.roles.size());
  const std::vector<LinkId> opposite = opposite_links(scenario.cluster.topology);
  for (const auto& [stages, bytes] : pairs) {
    PairTraffic placed = place_pairs(ranks[static_cast<std::size_t>(stages.first)], stages.first,
                                     stages.second, bytes, grid, costs);
    load_pairs(placed, out, opposite, costs);
    out.pairs.push_back(std::move(placed));
  }
  for (const auto& [stage, direction] : copies) {
    out.pairs.push_back(
        place_copies(ranks[static_cast<std::size_t>(stage)], stage, direction, scenario.cluster));
  }
  return out;
}

}  // namespace stepcast
