// SPDX-License-Identifier: Apache-2.0
// Collective -> latency, rate and load on links. Among GPUs, algorithm and protocol by NCCL's own
// rules (docs/collectives.md); the graph gives the asymptote, measured size curves the ramp. Among
// ranks on processors, cost/mpi_collectives.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/result.h"
#include "cost/collective_curve.h"
#include "cost/collective_group.h"
#include "cost/collective_model.h"
#include "cost/link_load.h"
#include "cost/mpi_curve.h"
#include "cost/nccl_tuner.h"
#include "cost/provenance.h"
#include "operation/collective_kind.h"
#include "operation/message.h"

namespace stepcast {

struct CollectivePrice {
  Seconds latency;            // loads no link
  Bytes work;                 // payload that moves in the fluid phase
  BytesPerSecond rate_bound;  // of `work`, links free
  std::int64_t channels = 1;  // its SMs, and its share in max-min fairness
  double cpu_share = 0;       // of a core, that a member on a processor takes while data moves
  double core_weight = 1;     // in max-min fairness on that core, beside a kernel's 1
  std::int64_t copies = 0;    // of a token, of which those to one place are sent once
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Curve curve = Curve::kCollective;
  Provenance provenance = Provenance::kDataSheet;
  std::int32_t measured = -1;  // the curve that prices it (CollectiveCosts::curve_name())
  Seconds time() const { return latency + work / rate_bound; }  // alone
};

// The communicator of a send: NCCL spends fewer channels on a peer where there may be many.
struct SendGroup {
  std::int64_t ranks = 2;
  std::int64_t domains = 0;  // NVLink domains that it spans; 0: those of sender and receiver
};

class CollectiveCosts {
 public:
  // `profiles_folder` holds the measured size curves (collectives.json); "" prices everything from
  // the data sheet. A profile adds its own: `mpi` of ranks on processors, which have no others,
  // and `nccl` of GPUs. NCCL chooses by `tuned_for`; null: by the cluster itself
  // (cost/collective_model.h). Both must outlive this.
  CollectiveCosts(const Cluster& cluster, const std::string& profiles_folder,
                  std::vector<MpiCurve> mpi = {}, std::vector<CollectiveCurve> nccl = {},
                  const ClusterSpec* tuned_for = nullptr);
  ~CollectiveCosts();

  // Tells what is wrong with the curves; those are then left out.
  const Errors& errors() const;

  // `members` in ring order (group order). One member costs nothing.
  CollectivePrice price(const Message& message, std::span<const DeviceId> members) const;
  CollectivePrice price(CollectiveKind kind, ByteCount bytes, DataType type,
                        std::span<const DeviceId> members) const {
    return price({kind, bytes, type}, members);
  }
  // The id of the measured table behind a price; empty: none, the nominal model.
  std::string curve_name(const CollectivePrice& price) const;
  // All of a group that decides its prices; among processors its very members do.
  std::optional<GroupShape> shape(std::span<const DeviceId> members) const;
  CollectivePrice price_send(ByteCount bytes, DeviceId from, DeviceId to,
                             SendGroup group = {}) const;

  // Loads of the algorithm that `price` chose, summed over channels, on links of nominal capacity:
  // the fraction of it that NCCL reaches is in the weights (cost/link_load.h).
  std::vector<LinkLoad> loads(const CollectivePrice& price, CollectiveKind kind,
                              std::span<const DeviceId> members) const;
  std::vector<LinkLoad> loads_of_send(DeviceId from, DeviceId to) const;
  // In two parts: what `routed` gives is the same for all kinds that are routed alike
  // (routed_like()), and `charge` turns it into the loads of `kind`.
  std::vector<LinkLoad> routed(const CollectivePrice& price, CollectiveKind kind,
                               std::span<const DeviceId> members) const;
  void charge(const CollectivePrice& price, CollectiveKind kind, std::span<const DeviceId> members,
              std::vector<LinkLoad>& routed) const;

 private:
  CollectivePrice price_ring_step(ByteCount bytes, const GroupShape& group,
                                  std::span<const DeviceId> members) const;
  CollectiveModel model_of(const GroupShape& group) const;
  // A group, and whether sender and receiver of its messages share a domain.
  struct SendShape {
    GroupShape group;
    bool local;
    auto operator<=>(const SendShape&) const = default;
  };
  SendShape send_shape(DeviceId from, DeviceId to, SendGroup group) const;
  CollectiveModel send_model(const SendShape& shape) const;
  Reached reached(const SendShape& shape, CollectiveKind kind) const;
  struct Tables;
  const Cluster& cluster_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace stepcast
