// SPDX-License-Identifier: Apache-2.0
// Collective -> latency, rate and load on links. Algorithm and protocol by NCCL's own rules
// (docs/cost-models.md, "Collectives"); the graph gives the asymptote, measured size curves the ramp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "core/id.h"
#include "cost/provenance.h"
#include "program/operation.h"

namespace stepcast {

enum class Algorithm { kRing, kTree, kNvls, kNvlsTree, kPairwise, kDirect };
enum class Protocol { kLl, kLl128, kSimple };
const char* name_of(Algorithm algorithm);
const char* name_of(Protocol protocol);

// Traffic on one link per byte of `work`.
struct LinkLoad {
  LinkId link;
  double weight;
};

struct CollectivePrice {
  Seconds latency;            // loads no link
  Bytes work;                 // payload that moves in the fluid phase
  BytesPerSecond rate_bound;  // of `work`, links free
  std::int64_t channels = 1;  // its SMs, and its share in max-min fairness
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Curve curve = Curve::kCollective;
  Provenance provenance = Provenance::kDataSheet;
  Seconds time() const { return latency + work / rate_bound; }  // alone
};

class CollectiveCosts {
 public:
  // `profiles_folder` holds the measured size curves (profiles/collectives.json).
  CollectiveCosts(const Cluster& cluster, const std::string& profiles_folder);
  ~CollectiveCosts();

  // `members` in ring order (group order). One member costs nothing.
  CollectivePrice price(CollectiveKind kind, ByteCount bytes, DataType type,
                        std::span<const DeviceId> members) const;
  CollectivePrice price_send(ByteCount bytes, DeviceId from, DeviceId to) const;

  // Loads of the algorithm that `price` chose, summed over channels.
  std::vector<LinkLoad> loads(const CollectivePrice& price, CollectiveKind kind,
                              std::span<const DeviceId> members) const;
  std::vector<LinkLoad> loads_of_send(DeviceId from, DeviceId to) const;

 private:
  struct Tables;
  const Cluster& cluster_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace stepcast
