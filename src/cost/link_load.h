// SPDX-License-Identifier: Apache-2.0
// A collective's traffic on the links of the topology (docs/collectives.md, "Links").
#pragma once

#include <span>
#include <vector>

#include "core/id.h"
#include "cost/nccl_tuner.h"
#include "operation/collective_kind.h"

namespace stepcast {

// Traffic on one link per byte of payload.
struct LinkLoad {
  LinkId link;
  double weight;
};

// A collective that loads links as `kind` does with this algorithm: the same one for all that do.
CollectiveKind routed_like(Algorithm algorithm, CollectiveKind kind);
// Bytes that cross each link per byte of payload (of `Collective::bytes`), ordered by link.
std::vector<LinkLoad> routed_bytes(const Cluster& cluster, Algorithm algorithm, CollectiveKind kind,
                                   std::span<const DeviceId> members);
// An all-to-all may send a token once to each place (Collective::copies); these are its bytes.
std::vector<LinkLoad> routed_bytes_once(const Cluster& cluster, std::int64_t copies,
                                        std::span<const DeviceId> members);
std::vector<LinkLoad> routed_bytes_of_send(const Cluster& cluster, DeviceId from, DeviceId to);

// A collective reaches this with endless messages: payload per second, and the part of what NCCL
// rates it at that was measured.
struct Reached {
  BytesPerSecond rate;
  double efficiency = 1;
};

// Turns bytes into weights against the links' nominal capacity, of which a protocol leaves payload
// a part (nccl_wire_part(), times the measured efficiency). A link that this makes full below the
// rate that the collective reaches is full at that rate, so that two collectives on it each get
// half. A link of the fabric that is slower than NCCL believes sets the pace itself: it carries as
// large a part of its capacity as NICs do of theirs. How fast other links are does not matter to a
// link's weight, but for that rate.
void charge_protocol(const Cluster& cluster, const Reached& reached, std::vector<LinkLoad>& loads);

// Payload per second that the first of several groups reaches when all send at once, none faster
// than `rate`: on a link that they fill, each gets its part by weight. One group alone is held back
// by links that are too slow for it. Anything else that a link carries is left out. The loads of
// each group are ordered by link.
BytesPerSecond rate_at_once(const Topology& topology, BytesPerSecond rate,
                            std::span<const std::vector<LinkLoad>> groups);

// Child and parent of every edge of NCCL's double binary tree over `nodes` nodes; each of the two
// trees carries half of the payload up and half down.
struct TreeEdge {
  std::int64_t child;
  std::int64_t parent;
};
std::vector<TreeEdge> double_binary_tree(std::int64_t nodes);

}  // namespace stepcast
