// SPDX-License-Identifier: Apache-2.0
// Every process group and pipeline pair of a layout, placed on the cluster: prices of what the
// program sends through it and the load that it puts on each link. Ranks sit on devices in order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/host_link.h"
#include "cost/collective_cost.h"
#include "layout/rank_grid.h"
#include "operation/message.h"
#include "predict/orbits.h"
#include "program/block_groups.h"

namespace stepcast {

struct Program;
struct Scenario;

// By stage and instruction: the groups whose collectives inside the pass load links, as tasks of
// the step (predict/shared_links.h). Empty: none does.
using Stamps = std::vector<std::vector<std::vector<AxisGroup>>>;
inline const Stamps kNoStamps{};

// A message of no more bytes is latency alone; the time that it loads a link does not matter.
inline constexpr ByteCount kSmallMessage = 4096;

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

// Groups that are carried into each other (predict/orbits.h). One of them stands for all.
struct GroupOrbit {
  std::int64_t groups = 1;                   // that it stands for
  std::vector<RankId> members;               // of the one
  std::vector<Priced> prices;                // by message
  std::vector<std::vector<LinkLoad>> loads;  // by distinct load
};

// All groups that span the same axes.
struct GroupTraffic {
  AxisGroup group;
  // No pass of theirs is stamped: what passes send is in the price of macro activities, which know
  // the links that siblings share. What an instruction issues loads links where siblings share any.
  bool in_blocks = false;
  bool has_siblings_in_price = false;  // of what passes send, or the update
  std::vector<Message> messages;  // that differ, ascending
  std::vector<GroupOrbit> orbits;
  std::vector<std::int32_t> of_ranks;  // by orbit of ranks: the orbit of their groups, or -1
  std::int32_t message(const Message& message) const;  // its place
  // The price of the fastest of these messages on each way.
  std::map<Way, CollectivePrice> fastest(const GroupOrbit& orbit,
                                         std::span<const Message> of) const;
};

struct PairOrbit {
  std::int64_t pairs = 1;  // that it stands for
  RankId sender, receiver;
  CollectivePrice price;
  std::vector<LinkLoad> loads;
};

// All sender-receiver pairs from one stage to another. Copies between the ranks of a stage and
// their hosts are pairs too: of a rank with itself.
struct PairTraffic {
  std::int32_t from_stage = 0, to_stage = 0;
  std::optional<CopyDirection> copy = {};
  std::vector<PairOrbit> orbits = {};
  std::vector<std::int32_t> of_senders = {}, of_receivers = {};  // by orbit of ranks, or -1
};

struct Traffic {
  Orbits orbits;
  std::vector<GroupTraffic> groups;  // that the program uses, of more than one member; ascending
  std::vector<PairTraffic> pairs;
  const GroupTraffic* find(AxisGroup group) const;
  const PairTraffic* find(std::int32_t from_stage, std::int32_t to_stage) const;
  const PairTraffic* find_copies(std::int32_t stage, CopyDirection direction) const;

  // The place of the rank's group or pair among the orbits of that traffic; -1: it has none.
  std::int32_t orbit_of(const GroupTraffic& of, RankId rank) const {
    return of.of_ranks[static_cast<std::size_t>(orbits.of(rank))];
  }
  std::int32_t orbit_of_sender(const PairTraffic& of, RankId rank) const {
    return of.of_senders[static_cast<std::size_t>(orbits.of(rank))];
  }
  std::int32_t orbit_of_receiver(const PairTraffic& of, RankId rank) const {
    return of.of_receivers[static_cast<std::size_t>(orbits.of(rank))];
  }
};

// `units`: what lies alike in a cluster of these is placed once. None: every group and every pair
// is placed by itself.
Traffic place_traffic(const Scenario& scenario, const Program& program, const RankGrid& grid,
                      const CollectiveCosts& costs, const Stamps& stamps = kNoStamps,
                      const RepeatedUnits& units = {});

std::vector<DeviceId> devices_of(const std::vector<RankId>& ranks);

}  // namespace stepcast
