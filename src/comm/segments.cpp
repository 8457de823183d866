// SPDX-License-Identifier: Apache-2.0
#include "comm/segments.h"

#include <algorithm>

namespace stepcast {
namespace {

// 128 KiB: a segment and what it is summed into stay in a core's second-level cache between the
// transfer, the sum and the next transfer, and the cost of a message (2 us) is small beside theirs
// (20 us). Neighbours then hardly wait longer than they look without pause (idle.h); with 256 KiB
// on a busy machine they gave their cores away in between, and 4 MiB took 8 ms instead of 1.
constexpr std::int64_t kSegmentElements = 32 * 1024;
// 64 MiB: MPI counts bytes in an int.
constexpr std::int64_t kPieceElements = 16 * 1024 * 1024;

std::vector<Slice> cut(const Slice& slice, std::int64_t parts) {
  std::vector<Slice> cuts;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Slice part = slice_of(slice.size(), static_cast<int>(parts), static_cast<int>(i));
    cuts.push_back({slice.begin + part.begin, slice.begin + part.end});
  }
  return cuts;
}

}  // namespace

std::vector<Slice> segments_of(const Slice& slice) {
  return cut(slice, (slice.size() + kSegmentElements - 1) / kSegmentElements);
}

std::vector<Slice> pieces_of(std::int64_t count) {
  return cut({0, count}, std::max<std::int64_t>(1, (count + kPieceElements - 1) / kPieceElements));
}

}  // namespace stepcast
