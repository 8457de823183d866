// SPDX-License-Identifier: Apache-2.0
// How the flat parameters of a rank are cut for reduction and gathering. ZeRO shards each range for
// itself, so what is reduced together is gathered together.
#pragma once

#include <vector>

#include "program/role_builder.h"

namespace stepcast {

// A run of blocks whose gradients are reduced once its backward has run. `chunk` -1: all chunks.
struct Bucket {
  std::int32_t chunk;
  std::int32_t block_begin, block_end;
  std::vector<ElementRange> ranges;  // one collective each, of one group (Role::group_of)
};

// Cuts buckets in the order of the backward pass. With `by_chunk` no bucket reaches over a chunk's
// end; otherwise there is one for everything.
// `rule`: elements of a bucket; 0: no limit.
std::vector<Bucket> cut_buckets(const RoleBuilder& builder, bool by_chunk, std::int64_t rule);

// A table that the other end of the pipeline holds too is reduced and sharded alone: the same rank
// must own a row on both stages. Nowhere where there is none.
ElementRange shared_table(const RoleBuilder& builder);
// The parts of a range in front of, inside and behind another; ascending, none of them empty.
std::vector<ElementRange> cut_around(ElementRange whole, ElementRange alone);

}  // namespace stepcast
