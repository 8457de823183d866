// SPDX-License-Identifier: Apache-2.0
// Both contracts, part one: what collectives compute, against naive references.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "comm/share_bytes.h"
#include "comm/contract.h"
#include "core/each.h"

namespace stepcast {
namespace {

std::span<float> slice_in(std::vector<float>& data, int ranks, int rank) {
  const Slice slice = slice_of(static_cast<std::int64_t>(data.size()), ranks, rank);
  return std::span(data).subspan(static_cast<std::size_t>(slice.begin),
                                 static_cast<std::size_t>(slice.size()));
}

TEST_P(GroupContract, AllReduceSums) {
  as_each_rank([&](Communicator& comm) {
    for (const std::int64_t count : each_of(critical_counts(comm.size()))) {
      std::vector<float> data = values_of(7, comm.rank(), count);
      comm.all_reduce(data);
      expect_sum(data, 7, comm.size());
    }
  });
}

TEST_P(GroupContract, AllReduceTakesTheLargest) {
  as_each_rank([](Communicator& comm) {
    for (const std::int64_t count : each_of(critical_counts(comm.size()))) {
      std::vector<float> expected = values_of(8, 0, count);
      for (int rank = 1; rank < comm.size(); ++rank) {
        const std::vector<float> other = values_of(8, rank, count);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] = std::max(expected[i], other[i]);
        }
      }
      std::vector<float> data = values_of(8, comm.rank(), count);
      comm.all_reduce(data, Reduction::kMaximum);
      EXPECT_EQ(data, expected) << count;
    }
  });
}

// NCCL's id is opaque: no byte of it may change, also where four of them would be a NaN as a float.
TEST_P(CommunicatorContract, BytesOfRankZeroComeToAll) {
  as_each_rank([](Communicator& comm) {
    for (const std::size_t size : {0, 1, 4, 127, 128}) {
      const auto bytes_of = [&](int rank) {
        std::vector<std::byte> out(size, std::byte{0xff});
        for (std::size_t i = 1; i < size; i += 2) out[i] = static_cast<std::byte>(0x7f + rank);
        return out;
      };
      EXPECT_EQ(share_by(comm)(bytes_of(comm.rank())), bytes_of(0)) << size;
    }
  });
}

TEST_P(CommunicatorContract, MaximumOfAnythingAndNanIsNan) {
  as_each_rank([](Communicator& comm) {
    // Rank r has NaN at r, infinity elsewhere.
    std::vector<float> data(static_cast<std::size_t>(comm.size()) + 1,
                            std::numeric_limits<float>::infinity());
    data[static_cast<std::size_t>(comm.rank())] = std::nanf("");
    comm.all_reduce(data, Reduction::kMaximum);
    for (std::size_t i = 0; i + 1 < data.size(); ++i) EXPECT_TRUE(std::isnan(data[i])) << i;
    EXPECT_EQ(data.back(), std::numeric_limits<float>::infinity());
  });
}

TEST_P(CommunicatorContract, ASecondRunGivesTheSameBits) {
  as_each_rank([](Communicator& comm) {
    const std::vector<float> input = values_of(9, comm.rank(), 300000);
    std::vector<float> first = input;
    std::vector<float> second = input;
    // Both run at once, so that segments of the two come and go in any order.
    const auto one = comm.start_all_reduce(first, Reduction::kSum);
    const auto two = comm.start_all_reduce(second, Reduction::kSum);
    two->wait();
    one->wait();
    EXPECT_EQ(first, second);
  });
}

TEST_P(GroupContract, AllGatherBringsEachRanksSlice) {
  as_each_rank([](Communicator& comm) {
    for (const std::int64_t count : each_of(critical_counts(comm.size()))) {
      const std::vector<float> expected = values_of(10, 0, count);
      std::vector<float> data(expected.size(), -1.0F);
      std::vector<float> source = expected;
      const auto own = slice_in(source, comm.size(), comm.rank());
      std::copy(own.begin(), own.end(), slice_in(data, comm.size(), comm.rank()).begin());
      comm.all_gather(data);
      EXPECT_EQ(data, expected) << count;
    }
  });
}

TEST_P(GroupContract, ReduceScatterLeavesTheOwnSliceSummed) {
  as_each_rank([&](Communicator& comm) {
    for (const std::int64_t count : each_of(critical_counts(comm.size()))) {
      std::vector<float> data = values_of(11, comm.rank(), count);
      comm.reduce_scatter(data);
      expect_sum(slice_in(data, comm.size(), comm.rank()), 11, comm.size(),
                 slice_of(count, comm.size(), comm.rank()).begin, count);
    }
  });
}

TEST_P(GroupContract, BroadcastBringsTheRootsData) {
  as_each_rank([](Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      for (const std::int64_t count : each_of(critical_counts(comm.size()))) {
        std::vector<float> data = values_of(12, comm.rank(), count);
        comm.broadcast(data, root);
        EXPECT_EQ(data, values_of(12, root, count)) << count << " from " << root;
      }
    }
  });
}

TEST_P(GroupContract, AllToAllBringsFromEachRankItsSliceForThisOne) {
  as_each_rank([](Communicator& comm) {
    for (const std::int64_t each : {0, 1, 2, 1000, 100000}) {
      const std::int64_t count = each * comm.size();
      const std::vector<float> send = values_of(13, comm.rank(), count);
      std::vector<float> received(send.size(), -1.0F);
      comm.all_to_all(send, received);
      for (int rank = 0; rank < comm.size(); ++rank) {
        std::vector<float> theirs = values_of(13, rank, count);
        const auto expected = slice_in(theirs, comm.size(), comm.rank());
        const auto part = slice_in(received, comm.size(), rank);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin(), expected.end()))
            << each << " from " << rank;
      }
    }
  });
}

// Parts of 21 bits, which a float holds exactly.
std::vector<float> exact_parts(std::int64_t value) {
  return {static_cast<float>(value >> 42), static_cast<float>((value >> 21) & 0x1FFFFF),
          static_cast<float>(value & 0x1FFFFF)};
}

std::int64_t from_parts(std::span<const float> parts) {
  return (static_cast<std::int64_t>(parts[0]) << 42) + (static_cast<std::int64_t>(parts[1]) << 21) +
         static_cast<std::int64_t>(parts[2]);
}

// One clock for all processes of a machine.
std::int64_t monotonic_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

TEST_P(CommunicatorContract, NobodyLeavesABarrierBeforeAllHaveCome) {
  as_each_rank([](Communicator& comm) {
    for (int round = 0; round < 20; ++round) {
      const std::int64_t came = monotonic_ns();
      comm.barrier();
      const std::int64_t left = monotonic_ns();
      std::vector<float> all(static_cast<std::size_t>(comm.size()) * 3);
      const std::vector<float> own = exact_parts(came);
      std::copy(own.begin(), own.end(), slice_in(all, comm.size(), comm.rank()).begin());
      comm.all_gather(all);
      for (int rank = 0; rank < comm.size(); ++rank) {
        EXPECT_GE(left, from_parts(slice_in(all, comm.size(), rank)));
      }
    }
  });
}

// Each rank of a ring sends all slices but one per pass (Patarasuk and Yuan 2009, section 3): the
// simulator's loads on links are the same.
TEST_P(CommunicatorContract, RingsSendAllSlicesButOnePerPass) {
  as_each_rank([](Communicator& comm) {
    const int ranks = comm.size();
    const std::int64_t count = 1003;
    const auto without = [&](int slice) {
      return (count - slice_of(count, ranks, (slice + ranks) % ranks).size()) * 4;
    };
    std::vector<float> data(static_cast<std::size_t>(count));
    const auto sent_by = [&](const auto& collective) {
      const std::int64_t before = comm.counters().bytes;
      collective();
      return comm.counters().bytes - before;
    };
    // Sent are slices r-1, r-2, ..., r+1 when reducing, r, r-1, ..., r+2 when gathering.
    const std::int64_t reduce = without(comm.rank());
    const std::int64_t gather = without(comm.rank() + 1);
    EXPECT_EQ(sent_by([&] { comm.reduce_scatter(data); }), reduce);
    EXPECT_EQ(sent_by([&] { comm.all_gather(data); }), gather);
    EXPECT_EQ(sent_by([&] { comm.all_reduce(data); }), reduce + gather);
    // The last of the chain has nobody to tell.
    const bool last = comm.rank() == ranks - 1;
    EXPECT_EQ(sent_by([&] { comm.broadcast(data, 0); }), last ? 0 : count * 4);
  });
}

}  // namespace
}  // namespace stepcast
