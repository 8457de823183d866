// SPDX-License-Identifier: Apache-2.0
// Whatever a graph's ranks send goes over one of these: a cluster with the prices of this project,
// or the dimensions that ASTRA-sim's network file describes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "operation/collective.h"
#include "sim/workload.h"

namespace stepcast {

// A message or a collective as the engine takes it: latency, then work at a rate, and what that
// loads of the network's resources.
struct GraphTransfer {
  Seconds latency;
  double work = 0;        // bytes
  double rate_bound = 1;  // bytes per second with all links free
  double share = 1;
  std::vector<sim::Use> uses;  // of resources that add_resources() made

  Seconds time() const { return latency + Seconds(work / rate_bound); }  // alone
};

class GraphNetwork {
 public:
  virtual ~GraphNetwork() = default;

  virtual std::int64_t ranks() const = 0;  // that it has room for
  virtual std::string name() const = 0;
  // Makes the links; called once, before anything is priced.
  virtual void add_resources(sim::Workload& workload) = 0;
  // `bytes` as struct Collective counts them.
  virtual GraphTransfer collective(CollectiveKind kind, double bytes,
                                   std::span<const std::int32_t> ranks) = 0;
  virtual GraphTransfer message(double bytes, std::int32_t from, std::int32_t to) = 0;
  // The time of such work by the data sheet: the longer one of computing and of moving its bytes.
  virtual Seconds compute(double flops, double bytes) const = 0;
};

}  // namespace stepcast
