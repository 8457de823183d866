// SPDX-License-Identifier: Apache-2.0
// CommunicatorContract, part three: ranks that do not come, and programs that are wrong.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "comm/contract.h"

namespace stepcast {
namespace {

using std::chrono::milliseconds;

// Longer than any test takes on a busy machine.
constexpr milliseconds kPatient(60000);

template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "no error";
}

TEST_P(CommunicatorContract, ARankThatNeverComesIsAnErrorOnTheOthers) {
  as_each_rank([](Communicator& comm) {
    if (comm.size() == 1) return;
    const auto group = comm.group(all_ranks(comm.size()), 7);
    if (comm.rank() != 0) {
      group->set_time_limit(milliseconds(200));
      std::vector<float> data(1000);
      const std::string error = error_of([&] { group->all_reduce(data); });
      group->set_time_limit(kPatient);
      EXPECT_NE(error.find("all_reduce of 4000 bytes"), std::string::npos) << error;
      EXPECT_NE(error.find("/7["), std::string::npos) << error;  // the group's tag
      EXPECT_NE(error.find("no progress for 0.2 s; it waits for rank "), std::string::npos)
          << error;
      const std::string place =
          "(rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + ")";
      EXPECT_NE(error.find(place), std::string::npos) << error;
      // Its channels are out of step from now on.
      EXPECT_EQ(error_of([&] { group->barrier(); }), error);
    }
    // Other groups are not.
    std::vector<float> data = values_of(90, comm.rank(), 1000);
    comm.all_reduce(data);
    EXPECT_EQ(data, ring_sum(90, comm.size(), 1000));
  });
}

TEST_P(CommunicatorContract, ASenderThatNeverComesIsNamed) {
  as_each_rank([](Communicator& comm) {
    const auto group = comm.group(all_ranks(comm.size()), 8);
    const int left = (comm.rank() + comm.size() - 1) % comm.size();
    group->set_time_limit(milliseconds(200));
    std::vector<float> data(3);
    const std::string error = error_of([&] { group->receive(data, left, 1); });
    group->set_time_limit(kPatient);
    EXPECT_NE(error.find("receive of 12 bytes"), std::string::npos) << error;
    EXPECT_NE(error.find("waits for rank " + std::to_string(left)), std::string::npos) << error;
  });
}

TEST_P(CommunicatorContract, AMessageOfAnotherSizeIsAnErrorOfItsReceiver) {
  as_each_rank([](Communicator& comm) {
    for (const std::size_t received : {2U, 5U}) {
      const auto group = comm.group({comm.rank()}, 9);
      const std::vector<float> sent(4);
      std::vector<float> data(received);
      const auto receive = group->start_receive(data, 0, 1);
      const auto send = group->start_send(sent, 0, 1);
      EXPECT_NE(error_of([&] { receive->wait(); }), "no error") << received;
    }
  });
}

TEST_P(CommunicatorContract, ADestroyedRequestGivesItsBufferBack) {
  as_each_rank([](Communicator& comm) {
    const auto group = comm.group({comm.rank()}, 10);
    {
      std::vector<float> data(1000);
      const auto request = group->start_receive(data, 0, 1);
      EXPECT_FALSE(request->test());
    }
    const std::string error = error_of([&] { group->barrier(); });
    EXPECT_NE(error.find("its request was destroyed"), std::string::npos) << error;
  });
}

TEST_P(CommunicatorContract, AGroupIsOfRanksOfItsParentEachOnce) {
  as_each_rank([](Communicator& comm) {
    EXPECT_THROW(comm.group({comm.rank(), comm.rank()}, 0), std::logic_error);
    EXPECT_THROW(comm.group({comm.rank(), comm.size()}, 0), std::logic_error);
    EXPECT_THROW(comm.group({}, 0), std::logic_error);
  });
}

TEST_P(CommunicatorContract, ElementsOfAnAllToAllDivideByTheRanks) {
  as_each_rank([](Communicator& comm) {
    if (comm.size() == 1) return;
    std::vector<float> send(static_cast<std::size_t>(comm.size()) + 1), received(send.size());
    EXPECT_THROW(comm.all_to_all(send, received), std::logic_error);
  });
}

}  // namespace
}  // namespace stepcast
