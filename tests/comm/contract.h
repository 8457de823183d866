// SPDX-License-Identifier: Apache-2.0
// Every process group is held to this, in two suites. GroupContract is kept by all of them: worlds
// of threads (thread_worlds_test.cpp), of MPI processes (mpi/mpi_worlds_test.cpp) and of GPUs
// (nccl/nccl_worlds_test.cpp, through host memory). CommunicatorContract adds what Communicator
// promises beyond DeviceCommunicator: the order of additions, tags, groups that only their members
// make, counters.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace stepcast {

struct WorldUnderTest {
  std::string name;
  // Runs the function as each rank that this process has, and returns when they have ended.
  std::function<void(const std::function<void(Communicator&)>&)> as_each_rank;
  bool adds_in_the_order_of_the_ring = true;  // else in any order, the same on all ranks
};

inline std::ostream& operator<<(std::ostream& out, const WorldUnderTest& world) {
  return out << world.name;
}

class GroupContract : public testing::TestWithParam<WorldUnderTest> {
 protected:
  // Each call gets a group of its own, of all ranks: what an earlier test left behind is elsewhere.
  void as_each_rank(const std::function<void(Communicator&)>& body) const;
  // `sum` is of values_of(seed, rank, its size) over all ranks, from element `begin` of `count` on.
  void expect_sum(std::span<const float> sum, int seed, int ranks) const {
    expect_sum(sum, seed, ranks, 0, static_cast<std::int64_t>(sum.size()));
  }
  void expect_sum(std::span<const float> sum, int seed, int ranks, std::int64_t begin,
                  std::int64_t count) const;
};

class CommunicatorContract : public GroupContract {};

std::vector<int> all_ranks(int ranks);
// The counts at which cutting goes wrong: none, one, around one per rank, uneven, several segments.
std::vector<std::int64_t> critical_counts(int ranks);
// Random numbers, the same everywhere. Neither their sums nor their halves are exact.
std::vector<float> values_of(int seed, int rank, std::int64_t count);
// The sum as the ring orders it: of slice s first s+1, then s+2, ..., s.
std::vector<float> ring_sum(int seed, int ranks, std::int64_t count);

}  // namespace stepcast
