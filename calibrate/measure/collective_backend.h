// SPDX-License-Identifier: Apache-2.0
// Moves data for a CollectiveSampler: processes on their cores
// (calibrate/measure/host_collectives.h) or GPUs (calibrate/measure/gpu/device_collectives.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/protocol/disturbance.h"
#include "core/json_fwd.h"
#include "core/quantity.h"

namespace stepcast {

// All ranks call everything in the same order, unless a comment says otherwise.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;

  // Names what is to be measured: a kind of communication in a kind of group.
  struct Curve {
    std::string collective;        // "all_reduce", ..., "send_recv"
    std::vector<ByteCount> sizes;  // ascending; bytes as nccl-tests count them
  };
  virtual std::vector<Curve> curves() const = 0;

  // The members that this rank meets in a curve's group.
  struct Meeting {
    bool takes_part = false;
    bool is_first = false;                // and tells of the curve
    std::vector<std::int64_t> placement;  // node of each member, in group order
    std::int64_t concurrent = 1;          // such groups at work at once
  };
  // From here on everything below is about the group of `curve`, until the next call.
  virtual Meeting meet(std::size_t curve) = 0;
  virtual std::string key_of(ByteCount bytes) const = 0;  // of a point, in journals

  // All members call these, and all get the same: from the arrival of the last of them to the end
  // on the last one. `begin_size` comes before the samples of a size.
  virtual void begin_size(ByteCount bytes) = 0;
  virtual Sample sample(ByteCount bytes) = 0;
  virtual SortedJson facts_of_size() const = 0;  // beside the times; an object

  // Transfers of a size that takes `alone_s` and kernels beside them take this from each other; an
  // object. It is measured if has_sharing(), at the largest size below longest_sharing_s().
  virtual bool has_sharing() const = 0;
  virtual double longest_sharing_s() const = 0;
  virtual SortedJson sharing(ByteCount bytes, double alone_s) = 0;

  virtual bool on_any_rank(bool here) = 0;
};

}  // namespace stepcast
