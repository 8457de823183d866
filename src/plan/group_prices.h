// SPDX-License-Identifier: Apache-2.0
// Groups of ranks by how they lie in the cluster, and the time of a collective in each, alone on
// its links. Groups that lie alike cost the same.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "cost/collective_cost.h"
#include "cost/collective_group.h"
#include "operation/message.h"

namespace stepcast {

using PlaceId = Id<struct PlaceTag>;

class GroupPrices {
 public:
  // `costs` outlives this.
  explicit GroupPrices(const CollectiveCosts& costs) : costs_(costs) {}

  PlaceId place(const std::vector<DeviceId>& members);
  const std::vector<DeviceId>& members(PlaceId place) const { return members_[place.index()]; }
  Seconds time(PlaceId place, const Message& message);

 private:
  struct Placed {
    PlaceId place;
    Message message;
    bool operator==(const Placed&) const = default;
  };
  struct PlacedHash {
    std::size_t operator()(const Placed& placed) const;
  };

  const CollectiveCosts& costs_;
  std::map<GroupShape, PlaceId> known_;                     // GPUs: the shape prices
  std::map<std::vector<DeviceId>, PlaceId> known_members_;  // processors: each group its own
  std::vector<std::vector<DeviceId>> members_;              // by place: one group of it
  std::unordered_map<Placed, Seconds, PlacedHash> times_;
};

}  // namespace stepcast
