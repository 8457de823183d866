// SPDX-License-Identifier: Apache-2.0
// How slices and messages are cut into pieces of a size that suits transports and caches.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

// The parts of a slice that pipelines move one by one, the same on every rank. Their sizes differ
// by at most one element; an empty slice has no parts.
std::vector<Slice> segments_of(const Slice& slice);

// The parts of a message between two ranks: at least one, so that an empty message is a message.
std::vector<Slice> pieces_of(std::int64_t count);

}  // namespace stepcast
