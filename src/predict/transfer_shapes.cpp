// SPDX-License-Identifier: Apache-2.0
#include "predict/transfer_shapes.h"

#include <algorithm>

#include "core/assert.h"
#include "core/overloaded.h"
#include "layout/scenario.h"
#include "predict/host_update.h"

namespace stepcast {
namespace {

constexpr double kMostHeld = 0.9;  // of a GPU: NCCL leaves kernels something

}  // namespace

double held_fraction(double sms_per_channel, std::int64_t channels, std::int64_t processors) {
  return std::min(kMostHeld, sms_per_channel * static_cast<double>(channels) /
                                 static_cast<double>(std::max<std::int64_t>(1, processors)));
}

TransferShapes::TransferShapes(const SimulationInput& input)
    : in_(input), by_class_(input.symmetry.ranks.size()) {
  free_.members = 1;
  for (std::size_t k = 0; k < input.traffic.groups.size(); ++k) {
    const GroupClasses& classes = input.symmetry.groups[k];
    first_meeting_.push_back(static_cast<std::int32_t>(members_.size()));
    members_.resize(members_.size() + classes.representative.size(), 0);
    for (const std::vector<RankId>& ranks : input.symmetry.ranks) {
      const std::int32_t orbit = input.traffic.orbit_of(input.traffic.groups[k], ranks.front());
      if (orbit < 0) continue;
      const std::int32_t meeting =
          first_meeting_[k] + classes.class_of[static_cast<std::size_t>(orbit)];
      ++members_[static_cast<std::size_t>(meeting)];
    }
  }
}

TransferShapes::Key TransferShapes::key_of(const Instruction& what) {
  if (const auto* call = what.as<CollectiveCall>()) {
    return CollectiveKey{call->group, call->message, call->pieces};
  }
  if (const auto* copy = what.host_copy()) {
    const auto* states = what.as<StateCopy>();
    return CopyKey{copy->direction, copy->bytes, states != nullptr && states->on_disk};
  }
  if (const auto* update = what.as<HostUpdate>()) {
    return UpdateKey{update->bytes, update->disk_bytes};
  }
  return PairKey{what.transfer()->peer, what.is<Send>()};
}

const TransferShape& TransferShapes::shape(std::int32_t rank_class, const Instruction& what) {
  if (in_.alone && what.host_copy() == nullptr && !what.is<HostUpdate>()) return free_;
  return find(rank_class, key_of(what));
}

const TransferShape& TransferShapes::shape(std::int32_t rank_class, const Collective& inside) {
  if (in_.alone) return free_;
  return find(rank_class, CollectiveKey{inside.group, message_of(inside), 1});
}

const TransferShape& TransferShapes::find(std::int32_t rank_class, const Key& key) {
  std::vector<Entry>& known = by_class_[static_cast<std::size_t>(rank_class)];
  for (const Entry& entry : known) {
    if (entry.key == key) return entry.shape;
  }
  known.push_back(
      {key, std::visit(Overloaded{[&](const CollectiveKey& call) {
                                    return make_collective(rank_class, call);
                                  },
                                  [&](const PairKey& pair) { return make_pair(rank_class, pair); },
                                  [&](const CopyKey& copy) { return make_copy(rank_class, copy); },
                                  [&](const UpdateKey& update) { return make_update(update); }},
                       key)});
  return known.back().shape;
}

TransferShape TransferShapes::make_collective(std::int32_t rank_class,
                                              const CollectiveKey& call) const {
  const GroupTraffic* groups = in_.traffic.find(call.group);
  STEPCAST_ASSERT(groups != nullptr, "every group that the program uses is placed");
  const auto k = static_cast<std::size_t>(groups - in_.traffic.groups.data());
  const GroupClasses& classes = in_.symmetry.groups[k];
  const auto own =
      static_cast<std::size_t>(in_.traffic.orbit_of(*groups, representative(rank_class)));
  const GroupOrbit& orbit = groups->orbits[own];
  const auto group_class = static_cast<std::size_t>(classes.class_of[own]);
  Message piece = call.message;
  piece.bytes /= call.pieces;
  const std::int32_t message = groups->message(piece);
  const Priced& priced = orbit.prices[static_cast<std::size_t>(message)];
  const std::vector<ClassLoad>* loads = nullptr;
  if (priced.loads >= 0) {
    loads = &classes.loads[group_class][static_cast<std::size_t>(priced.loads)];
  }
  TransferShape shape = make(priced.price, loads, priced.price.channels, call.pieces);
  if (priced.loads >= 0) keep_to_own(orbit.loads[static_cast<std::size_t>(priced.loads)], shape);
  shape.meeting = first_meeting_[k] + static_cast<std::int32_t>(group_class);
  shape.members = members_[static_cast<std::size_t>(shape.meeting)];
  if (priced.price.cpu_share > 0) {
    std::int64_t alike = 0;
    for (std::size_t o = 0; o < groups->orbits.size(); ++o) {
      if (classes.class_of[o] == classes.class_of[own]) alike += groups->orbits[o].groups;
    }
    use_cores(priced.price, alike * static_cast<std::int64_t>(orbit.members.size()), shape);
    for (std::size_t c = 0; c < in_.symmetry.ranks.size(); ++c) {
      const std::int32_t other = in_.traffic.orbit_of(*groups, in_.symmetry.ranks[c].front());
      if (other >= 0 && classes.class_of[static_cast<std::size_t>(other)] ==
                            static_cast<std::int32_t>(group_class)) {
        shape.on_cores_of.push_back(static_cast<std::int32_t>(c));
      }
    }
  }
  return shape;
}

TransferShape TransferShapes::make_pair(std::int32_t rank_class, const PairKey& key) const {
  const auto [other, sends] = key;
  const std::int32_t stage = in_.costs.role(rank_class).stage;
  const PairTraffic* pairs = in_.traffic.find(sends ? stage : other, sends ? other : stage);
  STEPCAST_ASSERT(pairs != nullptr, "every pair of stages that the program uses is placed");
  const auto k = static_cast<std::size_t>(pairs - in_.traffic.pairs.data());
  const RankId own = representative(rank_class);
  const auto p = static_cast<std::size_t>(sends ? in_.traffic.orbit_of_sender(*pairs, own)
                                                : in_.traffic.orbit_of_receiver(*pairs, own));
  const PairOrbit& pair = pairs->orbits[p];
  const PairClasses& classes = in_.symmetry.pairs[k];
  TransferShape shape =
      make(pair.price, &classes.loads[static_cast<std::size_t>(classes.class_of[p])],
           std::min(pair.price.channels, kTransferBlocks), 1);
  keep_to_own(pair.loads, shape);
  const RankId peer = sends ? pair.receiver : pair.sender;
  shape.peer_class = in_.symmetry.class_of_rank[peer.index()];
  if (pair.price.cpu_share > 0) {
    std::int64_t alike = 0;
    for (std::size_t o = 0; o < pairs->orbits.size(); ++o) {
      if (classes.class_of[o] == classes.class_of[p]) alike += pairs->orbits[o].pairs;
    }
    use_cores(pair.price, 2 * alike, shape);
    shape.on_cores_of = {rank_class, shape.peer_class};
  }
  return shape;
}

// A copy engine moves it: no SM is held. A processor moves it itself.
TransferShape TransferShapes::make_copy(std::int32_t rank_class, const CopyKey& key) const {
  const RankId rank = representative(rank_class);
  TransferShape shape;
  shape.members = 1;
  shape.work = static_cast<double>(key.bytes);
  const auto rate = [&](BytesPerSecond link) {
    return host_copy_rate(in_.scenario, link, in_.host_memory);
  };
  const auto* copies = in_.traffic.find_copies(in_.costs.role(rank_class).stage, key.direction);
  if (copies == nullptr) {  // a rank without the others has its links to itself
    const HostLink link = host_link(in_.scenario.cluster, DeviceId(rank.value), key.direction);
    shape.rate_bound = rate(link.rate).value();
    if (key.on_disk) limit_to_disks(key.direction, shape);
    return shape;
  }
  const auto k = static_cast<std::size_t>(copies - in_.traffic.pairs.data());
  const auto p = static_cast<std::size_t>(in_.traffic.orbit_of_sender(*copies, rank));
  const PairClasses& classes = in_.symmetry.pairs[k];
  shape.rate_bound = rate(copies->orbits[p].price.rate_bound).value();
  if (in_.scenario.cluster.spec.accelerator.is_cpu()) {
    const auto& alike = in_.symmetry.ranks[static_cast<std::size_t>(rank_class)];
    CollectivePrice price;
    price.cpu_share = 1;
    use_cores(price, static_cast<std::int64_t>(alike.size()), shape);
    shape.on_cores_of = {rank_class};
    shape.share = shape.rate_bound;
  }
  shape.loads = classes.loads[static_cast<std::size_t>(classes.class_of[p])];
  if (key.on_disk) limit_to_disks(key.direction, shape);
  return shape;
}

void TransferShapes::limit_to_disks(CopyDirection direction, TransferShape& shape) const {
  const bool writes = direction == CopyDirection::kToHost;
  const BytesPerSecond disks = disk_rate(in_.scenario, writes);
  shape.rate_bound = std::min(shape.rate_bound, disks.value());
}

// The host's threads move what they update: no link and no SM is used.
TransferShape TransferShapes::make_update(const UpdateKey& key) const {
  TransferShape shape;
  shape.members = 1;
  const HostUpdate update{0, key.bytes, key.disk_bytes, {}};
  shape.latency = sim::duration(host_update_time(in_.scenario, update, in_.host_memory));
  return shape;
}

// Without contention a transfer is as fast as its own links let it be, those that NCCL does not
// know among them.
void TransferShapes::keep_to_own(const std::vector<LinkLoad>& loads, TransferShape& shape) const {
  if (in_.contention || shape.work <= 0) return;
  const BytesPerSecond rate(shape.rate_bound);
  shape.rate_bound = rate_at_once(in_.scenario.cluster.topology, rate, {&loads, 1}).value();
}

// `ranks`: of all groups or pairs of the class.
void TransferShapes::use_cores(const CollectivePrice& price, std::int64_t ranks,
                               TransferShape& shape) const {
  if (shape.work <= 0) return;
  shape.core = price.cpu_share / shape.rate_bound;
  shape.cores = shape.core * static_cast<double>(ranks);
}

TransferShape TransferShapes::make(const CollectivePrice& price,
                                   const std::vector<ClassLoad>* loads, std::int64_t blocks,
                                   std::int32_t pieces) const {
  TransferShape shape;
  const auto times = static_cast<double>(pieces);
  shape.held =
      held_fraction(in_.sms_per_channel, blocks, in_.scenario.cluster.spec.accelerator.sm_count);
  const bool has_loads = loads != nullptr && !loads->empty();
  if (!has_loads && (price.cpu_share == 0 || price.work.value() <= 0)) {
    shape.latency = sim::duration((price.latency + price.work / price.rate_bound) * times);
    return shape;
  }
  shape.latency = sim::duration(price.latency * times);
  shape.work = price.work.value() * times;
  shape.rate_bound = price.rate_bound.value();
  shape.share = static_cast<double>(std::max<std::int64_t>(1, price.channels));
  if (in_.scenario.cluster.spec.accelerator.is_cpu()) {
    // Fairness among processes is in time on a core: rate over share is the part of a core that
    // each member has, as it is for kernels. Where the processor moves nothing, it is the part of
    // full speed.
    shape.share =
        price.core_weight * shape.rate_bound / (price.cpu_share > 0 ? price.cpu_share : 1.0);
  }
  if (has_loads) shape.loads = *loads;
  return shape;
}

}  // namespace stepcast
