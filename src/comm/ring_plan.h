// SPDX-License-Identifier: Apache-2.0
// Lists what one rank sends and receives in a collective on a ring, in which data moves from rank r
// to r+1 (docs/design/011): NCCL's algorithms (Patarasuk and Yuan 2009 for the all-reduce).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

struct RingPlan {
  struct Receive {
    Slice slice;
    bool reduce = false;   // into what is there; else it is stored
    bool forward = false;  // to the right neighbour, afterwards
    // It is stored where the slice of this send stands (0: the first one).
    std::optional<int> overwrites;
  };
  std::optional<Slice> first;     // sent without having been received
  std::vector<Receive> receives;  // in order
};

RingPlan ring_all_reduce(std::int64_t count, int ranks, int rank);
RingPlan ring_all_gather(std::int64_t count, int ranks, int rank);
RingPlan ring_reduce_scatter(std::int64_t count, int ranks, int rank);
RingPlan ring_broadcast(std::int64_t count, int ranks, int rank, int root);

}  // namespace stepcast
