// SPDX-License-Identifier: Apache-2.0
// The engine needs to know this about every collective and every transfer between stages: times,
// links, members. It is computed once per rank class and distinct message, not once per task.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "predict/simulation.h"

namespace stepcast {

// SMs that one transfer between stages keeps busy, even if it could use more (NVIDIA/nccl issue
// 689: 2 SMs for a NIC).
inline constexpr std::int64_t kTransferBlocks = 2;

// The fraction of a GPU's SMs that a transfer of so many channels holds while it is posted.
double held_fraction(double sms_per_channel, std::int64_t channels, std::int64_t processors);

struct TransferShape {
  sim::Duration latency;
  double work = 0;  // bytes; 0: all in the latency
  double rate_bound = 0;
  double share = 1;
  std::span<const ClassLoad> loads;  // of the symmetry; those of a group may be thousands
  double held = 0;  // fraction of a GPU's SMs that it holds while posted
  // Among ranks on processors, per unit of rate: what it takes of the core of each member, and of
  // the cores that all ranks share, all groups of the class together.
  double core = 0;
  double cores = 0;
  std::vector<std::int32_t> on_cores_of;  // rank classes that take part
  std::int32_t meeting = -1;     // collective: which group class meets, dense over all group kinds
  std::int32_t members = 2;      // rank classes that take part
  std::int32_t peer_class = -1;  // transfer between stages: the other rank class

  // Returns how long it takes with all links free.
  std::int64_t least_ps() const {
    return latency.ps + (work > 0 ? sim::duration(Seconds(work / rate_bound)).ps : 0);
  }
};

class TransferShapes {
 public:
  explicit TransferShapes(const SimulationInput& input);

  // `what` is a collective, send, receive, copy or host update of the rank class. Valid until the
  // next call.
  const TransferShape& shape(std::int32_t rank_class, const Instruction& what);
  const TransferShape& shape(std::int32_t rank_class, const Collective& inside_a_pass);
  std::int32_t meetings() const { return static_cast<std::int32_t>(members_.size()); }

 private:
  // Keys tell the shapes of a rank class apart.
  struct CollectiveKey {
    AxisGroup group;
    Message message;  // of all pieces
    std::int32_t pieces;
    bool operator==(const CollectiveKey&) const = default;
  };
  struct PairKey {
    std::int32_t peer;
    bool sends;
    bool operator==(const PairKey&) const = default;
  };
  struct CopyKey {
    CopyDirection direction;
    ByteCount bytes;
    bool on_disk;
    bool operator==(const CopyKey&) const = default;
  };
  struct UpdateKey {  // by the host
    double bytes, disk_bytes;
    bool operator==(const UpdateKey&) const = default;
  };
  using Key = std::variant<CollectiveKey, PairKey, CopyKey, UpdateKey>;
  struct Entry {
    Key key;
    TransferShape shape;
  };

  static Key key_of(const Instruction& what);
  const TransferShape& find(std::int32_t rank_class, const Key& key);
  TransferShape make_collective(std::int32_t rank_class, const CollectiveKey& key) const;
  TransferShape make_pair(std::int32_t rank_class, const PairKey& key) const;
  TransferShape make_copy(std::int32_t rank_class, const CopyKey& key) const;
  TransferShape make_update(const UpdateKey& key) const;
  void limit_to_disks(CopyDirection direction, TransferShape& shape) const;
  TransferShape make(const CollectivePrice& price, const std::vector<ClassLoad>* loads,
                     std::int64_t blocks, std::int32_t pieces) const;
  void keep_to_own(const std::vector<LinkLoad>& loads, TransferShape& shape) const;
  void use_cores(const CollectivePrice& price, std::int64_t ranks, TransferShape& shape) const;
  RankId representative(std::int32_t rank_class) const {
    return in_.symmetry.ranks[static_cast<std::size_t>(rank_class)].front();
  }

  const SimulationInput& in_;
  TransferShape free_;                        // of a rank without the others
  std::vector<std::int32_t> first_meeting_;   // by Traffic::groups
  std::vector<std::int32_t> members_;         // by meeting
  std::vector<std::vector<Entry>> by_class_;  // few entries each
};

}  // namespace stepcast
