// SPDX-License-Identifier: Apache-2.0
// What every implementation of Communicator is held to: the suite CommunicatorContract, run on
// worlds of threads (thread_worlds_test.cpp) and of MPI processes (mpi/mpi_worlds_test.cpp).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

struct WorldUnderTest {
  std::string name;
  // Runs the function as each rank that this process has, and returns when they have ended.
  std::function<void(const std::function<void(Communicator&)>&)> as_each_rank;
};

inline std::ostream& operator<<(std::ostream& out, const WorldUnderTest& world) {
  return out << world.name;
}

class CommunicatorContract : public testing::TestWithParam<WorldUnderTest> {
 protected:
  // Each call gets a group of its own, of all ranks: what an earlier test left behind is elsewhere.
  void as_each_rank(const std::function<void(Communicator&)>& body) const;
};

std::vector<int> all_ranks(int ranks);
// The counts at which cutting goes wrong: none, one, around one per rank, uneven, several segments.
std::vector<std::int64_t> critical_counts(int ranks);
// Random but the same everywhere; neither sums nor halves of them are exact.
std::vector<float> values_of(int seed, int rank, std::int64_t count);
// The sum as the ring orders it: of slice s first s+1, then s+2, ..., s.
std::vector<float> ring_sum(int seed, int ranks, std::int64_t count);

}  // namespace stepcast
