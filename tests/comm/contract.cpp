// SPDX-License-Identifier: Apache-2.0
#include "comm/contract.h"

#include <cmath>
#include <numeric>

namespace stepcast {

void GroupContract::as_each_rank(const std::function<void(Communicator&)>& body) const {
  GetParam().as_each_rank([&](Communicator& world) {
    const std::unique_ptr<Communicator> own = world.group(all_ranks(world.size()), 1000);
    body(*own);
  });
}

void GroupContract::expect_sum(std::span<const float> sum, int seed, int ranks, std::int64_t begin,
                               std::int64_t count) const {
  const std::vector<float> all = ring_sum(seed, ranks, count);
  const auto expected = std::span(all).subspan(static_cast<std::size_t>(begin), sum.size());
  // Two orders of n-1 additions of numbers below n, each rounded, differ by at most this.
  const float most = GetParam().adds_in_the_order_of_the_ring
                         ? 0.0F
                         : static_cast<float>(ranks) * static_cast<float>(ranks) * 0x1p-23F;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    // Reports once, not for each of a million elements. The comparison is written so that a NaN
    // fails too.
    if (std::abs(sum[i] - expected[i]) <= most) continue;
    ADD_FAILURE() << "element " << i << " of " << count << " is " << sum[i] << ", not "
                  << expected[i];
    return;
  }
}

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int64_t> critical_counts(int ranks) {
  return {0, 1, ranks - 1, ranks, ranks + 1, 1000, 300000};
}

std::vector<float> values_of(int seed, int rank, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  // A linear congruential generator (Knuth, MMIX): quick, and good enough for numbers to add.
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 1000003U + static_cast<unsigned>(rank);
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<std::int32_t>(state >> 32U)) * 0x1p-31F;
  }
  return values;
}

std::vector<float> ring_sum(int seed, int ranks, std::int64_t count) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(values_of(seed, rank, count));
  std::vector<float> sum(static_cast<std::size_t>(count));
  for (int owner = 0; owner < ranks; ++owner) {
    const Slice slice = slice_of(count, ranks, owner);
    for (auto i = static_cast<std::size_t>(slice.begin); i < static_cast<std::size_t>(slice.end);
         ++i) {
      sum[i] = inputs[static_cast<std::size_t>((owner + 1) % ranks)][i];
      for (int step = 2; step <= ranks; ++step) {
        sum[i] += inputs[static_cast<std::size_t>((owner + step) % ranks)][i];
      }
    }
  }
  return sum;
}

}  // namespace stepcast
