// SPDX-License-Identifier: Apache-2.0
#include "comm/pairwise_all_to_all.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/assert.h"

namespace stepcast {
namespace {

template <typename T>
std::span<T> part_of(std::span<T> data, int ranks, int rank) {
  const std::size_t each = data.size() / static_cast<std::size_t>(ranks);
  return data.subspan(each * static_cast<std::size_t>(rank), each);
}

}  // namespace

PairwiseAllToAll::PairwiseAllToAll(std::shared_ptr<RankGroup> group, std::span<const float> send,
                                   std::span<float> receive)
    : CollectiveOperation(group, "all_to_all", static_cast<std::int64_t>(send.size_bytes())),
      send_(send),
      receive_(receive) {
  STEPCAST_ASSERT(send.size() == receive.size(), "as many elements go as come");
  STEPCAST_ASSERT(send.size() % static_cast<std::size_t>(group->size()) == 0,
                  "each rank gets as many elements");
}

int PairwiseAllToAll::to() const { return (group().rank() + round_) % group().size(); }

int PairwiseAllToAll::from() const {
  return (group().rank() - round_ + group().size()) % group().size();
}

bool PairwiseAllToAll::advance() {
  const int ranks = group().size();
  if (round_ == 0) {
    const auto own = part_of(send_, ranks, group().rank());
    std::copy(own.begin(), own.end(), part_of(receive_, ranks, group().rank()).begin());
    if (send_.empty()) return true;
    start_round();
  }
  while (round_ < ranks) {
    if (receiving_.poll() + sending_.poll() > 0) moved();
    if (!receiving_.ended() || !sending_.ended()) return false;
    start_round();
  }
  return true;
}

void PairwiseAllToAll::start_round() {
  const int ranks = group().size();
  if (++round_ == ranks) return;
  constexpr auto kPurpose = RankGroup::Purpose::kCollective;
  receiving_.receive(group(), part_of(receive_, ranks, from()), from(), kPurpose, lane());
  sending_.send(group(), part_of(send_, ranks, to()), to(), kPurpose, lane());
}

void PairwiseAllToAll::withdraw() {
  receiving_.withdraw();
  sending_.withdraw();
}

int PairwiseAllToAll::awaited() const { return receiving_.ended() ? to() : from(); }

}  // namespace stepcast
