// SPDX-License-Identifier: Apache-2.0
#include "comm/dissemination_barrier.h"

#include <utility>

namespace stepcast {

DisseminationBarrier::DisseminationBarrier(std::shared_ptr<RankGroup> group)
    : CollectiveOperation(std::move(group), "barrier", 0) {}

bool DisseminationBarrier::advance() {
  if (distance_ == 0) start_round();
  while (distance_ < group().size()) {
    if (receiving_.poll() + sending_.poll() > 0) moved();
    if (!receiving_.ended() || !sending_.ended()) return false;
    start_round();
  }
  return true;
}

void DisseminationBarrier::start_round() {
  const int ranks = group().size();
  distance_ = distance_ == 0 ? 1 : 2 * distance_;
  if (distance_ >= ranks) return;
  constexpr auto kPurpose = RankGroup::Purpose::kCollective;
  receiving_.receive(group(), {}, awaited(), kPurpose, lane());
  sending_.send(group(), {}, (group().rank() + distance_) % ranks, kPurpose, lane());
}

void DisseminationBarrier::withdraw() {
  receiving_.withdraw();
  sending_.withdraw();
}

int DisseminationBarrier::awaited() const {
  return (group().rank() - distance_ % group().size() + group().size()) % group().size();
}

}  // namespace stepcast
