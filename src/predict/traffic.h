// SPDX-License-Identifier: Apache-2.0
// Every process group and pipeline pair of a layout, placed on the cluster: prices of what the
// program sends through it and the load that it puts on each link. Ranks sit on devices in order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost/collective_cost.h"
#include "layout/rank_grid.h"
#include "program/block_groups.h"
#include "program/program.h"

namespace stepcast {

// By stage and instruction: the groups whose collectives inside the pass load links, as tasks of
// the step (predict/shared_links.h). Empty: none does.
using Stamps = std::vector<std::vector<std::vector<AxisGroup>>>;
inline const Stamps kNoStamps{};

// Messages that go one way load links alike, byte for byte.
struct Way {
  CollectiveKind kind;
  Algorithm algorithm;
  std::int64_t copies, store_sms;  // as struct Message has them
  auto operator<=>(const Way&) const = default;
};
Way way_of(const Message& message, const CollectivePrice& price);

// Keeps the faster of two prices of one way: long messages are faster than short ones.
template <class Key>
void keep_faster(std::map<Key, CollectivePrice>& fastest, const Key& key,
                 const CollectivePrice& price) {
  const auto [known, fresh] = fastest.try_emplace(key, price);
  if (!fresh && known->second.rate_bound < price.rate_bound) known->second = price;
}

struct Priced {
  CollectivePrice price;
  std::int32_t loads = -1;  // index into the owner's `loads`; -1: loads no link
};

// All groups that span the same axes.
struct GroupTraffic {
  AxisGroup group;
  // They communicate inside passes, and only there: a macro activity has that in its price. Then
  // nothing that they send loads a link, not even what an instruction issues.
  bool in_blocks = false;
  std::vector<Message> messages;                          // that differ, ascending
  std::vector<std::vector<RankId>> members;               // by group
  std::vector<std::vector<Priced>> prices;                // by group, message
  std::vector<std::vector<std::vector<LinkLoad>>> loads;  // by group, distinct load
  std::int32_t message(const Message& message) const;     // its place
  // The price of the fastest of these messages on each way of group `g`.
  std::map<Way, CollectivePrice> fastest(std::size_t g, std::span<const Message> of) const;
};

// All sender-receiver pairs from one stage to another. Copies between the ranks of a stage and
// their hosts are pairs too: of a rank with itself.
struct PairTraffic {
  std::int32_t from_stage, to_stage;
  std::optional<CopyDirection> copy;
  std::vector<RankId> senders, receivers;
  std::vector<CollectivePrice> prices;
  std::vector<std::vector<LinkLoad>> loads;
};

struct Traffic {
  std::vector<GroupTraffic> groups;  // that the program uses, of more than one member; ascending
  std::vector<PairTraffic> pairs;
  const GroupTraffic* find(AxisGroup group) const;
  const PairTraffic* find(std::int32_t from_stage, std::int32_t to_stage) const;
  const PairTraffic* find_copies(std::int32_t stage, CopyDirection direction) const;
};

Traffic place_traffic(const Scenario& scenario, const Program& program, const RankGrid& grid,
                      const CollectiveCosts& costs, const Stamps& stamps = kNoStamps);

std::vector<DeviceId> devices_of(const std::vector<RankId>& ranks);

}  // namespace stepcast
