// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk_transfer.h"

#include "comm/segments.h"

namespace stepcast {
namespace {

template <typename T>
std::span<T> part(std::span<T> data, const Slice& piece) {
  return data.subspan(static_cast<std::size_t>(piece.begin),
                      static_cast<std::size_t>(piece.size()));
}

}  // namespace

void BulkTransfer::send(RankGroup& group, std::span<const float> data, int to,
                        RankGroup::Purpose purpose, std::int64_t tag) {
  withdraw();
  for (const Slice& piece : pieces_of(static_cast<std::int64_t>(data.size()))) {
    pieces_.push_back(group.send(part(data, piece), to, purpose, tag));
  }
}

void BulkTransfer::receive(RankGroup& group, std::span<float> data, int from,
                           RankGroup::Purpose purpose, std::int64_t tag) {
  withdraw();
  for (const Slice& piece : pieces_of(static_cast<std::int64_t>(data.size()))) {
    pieces_.push_back(group.receive(part(data, piece), from, purpose, tag));
  }
}

int BulkTransfer::poll() {
  int count = 0;
  for (; !ended() && pieces_[ended_]->poll(); ++ended_) ++count;
  return count;
}

}  // namespace stepcast
