// SPDX-License-Identifier: Apache-2.0
// Both contracts, part two: several operations, groups, messages and threads at a time.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "comm/contract.h"

namespace stepcast {
namespace {

// Another one on each rank.
std::vector<std::size_t> order_of_waiting(std::size_t requests, int rank) {
  std::vector<std::size_t> order(requests);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank) + 1));
  return order;
}

void wait_in_own_order(const std::vector<Communicator::Pending>& requests, int rank) {
  for (const std::size_t index : order_of_waiting(requests.size(), rank)) requests[index]->wait();
}

TEST_P(GroupContract, OutstandingRequestsEndInAnyOrderOfWaiting) {
  as_each_rank([&](Communicator& comm) {
    const int ranks = comm.size();
    std::vector<std::vector<float>> sums;
    for (int i = 0; i < 6; ++i) sums.push_back(values_of(20 + i, comm.rank(), 70000 * i + i));
    std::vector<float> told = values_of(30, comm.rank(), 5000);
    const std::vector<float> sent = values_of(31, comm.rank(), 10 * ranks);
    std::vector<float> received(sent.size());
    std::vector<Communicator::Pending> requests;
    for (std::vector<float>& sum : sums) {
      requests.push_back(comm.start_all_reduce(sum, Reduction::kSum));
    }
    requests.push_back(comm.start_broadcast(told, ranks - 1));
    requests.push_back(comm.start_all_to_all(sent, received));
    wait_in_own_order(requests, comm.rank());
    for (int i = 0; i < 6; ++i) {
      expect_sum(sums[static_cast<std::size_t>(i)], 20 + i, ranks);
    }
    EXPECT_EQ(told, values_of(30, ranks - 1, 5000));
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(received[static_cast<std::size_t>(10 * rank)],
                values_of(31, rank, 10 * ranks)[static_cast<std::size_t>(10 * comm.rank())]);
    }
  });
}

TEST_P(GroupContract, HundredsOfRequestsMayBeOutstanding) {
  as_each_rank([&](Communicator& comm) {
    constexpr int kRequests = 300;
    std::vector<std::vector<float>> data;
    for (int i = 0; i < kRequests; ++i) data.push_back(values_of(i, comm.rank(), i));
    std::vector<Communicator::Pending> requests;
    for (std::vector<float>& sum : data) {
      requests.push_back(comm.start_all_reduce(sum, Reduction::kSum));
    }
    wait_in_own_order(requests, comm.rank());
    for (int i = 0; i < kRequests; ++i) {
      expect_sum(data[static_cast<std::size_t>(i)], i, comm.size());
    }
  });
}

TEST_P(GroupContract, TestEndsWhatWaitWould) {
  as_each_rank([&](Communicator& comm) {
    std::vector<float> data = values_of(40, comm.rank(), 300000);
    const auto request = comm.start_all_reduce(data, Reduction::kSum);
    while (!request->test()) std::this_thread::yield();
    EXPECT_TRUE(request->test());
    request->wait();
    expect_sum(data, 40, comm.size());
  });
}

TEST_P(CommunicatorContract, RanksOfAGroupAreItsOrder) {
  as_each_rank([](Communicator& comm) {
    std::vector<int> order = all_ranks(comm.size());
    std::rotate(order.begin(), order.begin() + comm.size() / 2, order.end());
    std::reverse(order.begin(), order.end());
    const auto group = comm.group(order, 0);
    EXPECT_EQ(group->size(), comm.size());
    EXPECT_EQ(order[static_cast<std::size_t>(group->rank())], comm.rank());
    std::vector<float> who(order.size());
    who[static_cast<std::size_t>(group->rank())] = static_cast<float>(comm.rank());
    group->all_gather(who);
    EXPECT_EQ(std::vector<int>(who.begin(), who.end()), order);
    std::vector<float> data = values_of(41, group->rank(), 1000);
    group->all_reduce(data);
    EXPECT_EQ(data, ring_sum(41, comm.size(), 1000));
  });
}

TEST_P(CommunicatorContract, GroupsWithCommonMembersRunAtTheSameTime) {
  as_each_rank([](Communicator& comm) {
    // All, all backwards, and every pair of neighbours on the ring.
    const int ranks = comm.size();
    std::vector<int> backwards = all_ranks(ranks);
    std::reverse(backwards.begin(), backwards.end());
    std::vector<std::vector<int>> members = {all_ranks(ranks), backwards};
    for (int rank = 0; ranks > 1 && rank < ranks; ++rank) {
      members.push_back({rank, (rank + 1) % ranks});
    }
    std::vector<std::unique_ptr<Communicator>> groups;
    std::vector<std::vector<float>> data;
    std::vector<int> seeds;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& some = members[i];
      if (std::find(some.begin(), some.end(), comm.rank()) == some.end()) continue;
      groups.push_back(comm.group(some, 3));
      seeds.push_back(static_cast<int>(i) + 50);
      data.push_back(values_of(seeds.back(), groups.back()->rank(), 100000));
    }
    std::vector<Communicator::Pending> requests;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      requests.push_back(groups[i]->start_all_reduce(data[i], Reduction::kSum));
    }
    wait_in_own_order(requests, comm.rank());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(data[i], ring_sum(seeds[i], groups[i]->size(), 100000)) << i;
    }
  });
}

TEST_P(CommunicatorContract, GroupsOfTheSameRanksDoNotMix) {
  as_each_rank([](Communicator& comm) {
    // Tags of their own, and the same tag twice; also groups of a group.
    const std::vector<int> all = all_ranks(comm.size());
    std::vector<std::unique_ptr<Communicator>> groups;
    for (const int tag : {1, 2, 2}) groups.push_back(comm.group(all, tag));
    groups.push_back(groups[0]->group(all, 1));
    std::vector<std::vector<float>> data;
    for (int i = 0; i < 4; ++i) data.push_back(values_of(60 + i, comm.rank(), 1000));
    std::vector<Communicator::Pending> requests(groups.size());
    for (const std::size_t i : order_of_waiting(groups.size(), comm.rank())) {  // of starting, too
      requests[i] = groups[i]->start_all_reduce(data[i], Reduction::kSum);
    }
    wait_in_own_order(requests, comm.rank() + 1);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(data[static_cast<std::size_t>(i)], ring_sum(60 + i, comm.size(), 1000)) << i;
    }
  });
}

TEST_P(GroupContract, TwoThreadsOfARankDriveTwoGroups) {
  as_each_rank([&](Communicator& comm) {
    const auto mine = comm.group(all_ranks(comm.size()), 1);
    const auto theirs = comm.group(all_ranks(comm.size()), 2);
    const auto work = [&](Communicator& group, int seed) {
      for (int round = 0; round < 20; ++round) {
        const std::int64_t count = round * 10007;
        std::vector<float> data = values_of(seed + round, group.rank(), count);
        group.all_reduce(data);
        expect_sum(data, seed + round, group.size());
      }
    };
    std::thread other([&] { work(*theirs, 100); });
    work(*mine, 200);
    other.join();
  });
}

TEST_P(GroupContract, ARequestMayBeDrivenByAnotherThread) {
  as_each_rank([&](Communicator& comm) {
    std::vector<float> given = values_of(70, comm.rank(), 300000);
    std::vector<float> kept = values_of(71, comm.rank(), 300000);
    auto to_give = comm.start_all_reduce(given, Reduction::kSum);
    auto to_keep = comm.start_all_reduce(kept, Reduction::kSum);
    std::thread other([request = std::move(to_give)] { request->wait(); });
    to_keep->wait();
    other.join();
    expect_sum(given, 70, comm.size());
    expect_sum(kept, 71, comm.size());
  });
}

TEST_P(CommunicatorContract, MessagesOfOneTagKeepTheirOrder) {
  as_each_rank([](Communicator& comm) {
    // Sends to the right neighbour (itself in a world of one); sizes on both sides of eager limits.
    const int right = (comm.rank() + 1) % comm.size();
    const int left = (comm.rank() + comm.size() - 1) % comm.size();
    const std::vector<std::int64_t> counts = {1, 50000, 0, 3, 200000, 2};
    std::vector<std::vector<float>> sent, received;
    std::vector<Communicator::Pending> requests;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      sent.push_back(values_of(80 + static_cast<int>(i), comm.rank(), counts[i]));
      received.emplace_back(static_cast<std::size_t>(counts[i]));
    }
    for (const auto& message : sent) requests.push_back(comm.start_send(message, right, 5));
    for (auto& message : received) requests.push_back(comm.start_receive(message, left, 5));
    wait_in_own_order(requests, comm.rank());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(received[i], values_of(80 + static_cast<int>(i), left, counts[i])) << i;
    }
  });
}

TEST_P(CommunicatorContract, MessagesAreToldApartByAll64BitsOfTheirTag) {
  as_each_rank([](Communicator& comm) {
    const int right = (comm.rank() + 1) % comm.size();
    const int left = (comm.rank() + comm.size() - 1) % comm.size();
    const std::vector<std::int64_t> tags = {0,
                                            1,
                                            std::int64_t{1} << 32,
                                            (std::int64_t{1} << 32) + 1,
                                            std::int64_t{3} << 32,
                                            -1,
                                            std::int64_t{1} << 62};
    // Three rounds of all tags; received in another order of tags than sent.
    std::vector<std::vector<float>> sent, received;
    std::vector<int> seeds;
    for (int i = 0; i < 3 * static_cast<int>(tags.size()); ++i) {
      sent.push_back(values_of(300 + i, comm.rank(), 20));
      received.emplace_back(20);
    }
    std::vector<Communicator::Pending> requests;
    for (std::size_t i = sent.size(); i-- > 0;) {
      const std::size_t in_order = sent.size() - 1 - i;
      requests.push_back(
          comm.start_receive(received[in_order], left, tags[tags.size() - 1 - in_order / 3]));
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      requests.push_back(comm.start_send(sent[i], right, tags[i % tags.size()]));
    }
    wait_in_own_order(requests, comm.rank());
    // The k-th receive of tag t takes the k-th message of it, which was sent as k*tags + t.
    for (std::size_t i = 0; i < received.size(); ++i) {
      const std::size_t tag = tags.size() - 1 - i / 3;
      const int seed = 300 + static_cast<int>((i % 3) * tags.size() + tag);
      EXPECT_EQ(received[i], values_of(seed, left, 20)) << i;
    }
  });
}

TEST_P(CommunicatorContract, MessagesAreNotBoundByTheSizeOfAPiece) {
  as_each_rank([](Communicator& comm) {
    constexpr std::size_t kCount = (std::size_t{1} << 24U) + 3;  // 64 MiB and a little
    if (comm.size() == 1) return;
    if (comm.rank() == 0) {
      std::vector<float> data(kCount, 0.5F);
      data.front() = 1.0F;
      data.back() = 2.0F;
      comm.send(data, 1, 9);
    } else if (comm.rank() == 1) {
      std::vector<float> data(kCount);
      comm.receive(data, 0, 9);
      EXPECT_EQ(data.front(), 1.0F);
      EXPECT_EQ(data.back(), 2.0F);
      EXPECT_EQ(std::count(data.begin(), data.end(), 0.5F), static_cast<int>(kCount) - 2);
    }
  });
}

}  // namespace
}  // namespace stepcast
