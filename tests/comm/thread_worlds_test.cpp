// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <thread>

#include "comm/thread_world.h"
#include "comm/contract.h"

namespace stepcast {
namespace {

void run_in_thread(Communicator& world, const std::function<void(Communicator&)>& body) {
  try {
    body(world);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << world.rank() << ": " << error.what();
  }
}

WorldUnderTest threads(int ranks) {
  return {.name = std::to_string(ranks) + "ranks",
          .as_each_rank = [ranks](const std::function<void(Communicator&)>& body) {
            const auto world = thread_world(ranks);
            std::vector<std::thread> others;
            for (int rank = 1; rank < ranks; ++rank) {
              others.emplace_back([&world, &body, rank] {
                run_in_thread(*world[static_cast<std::size_t>(rank)], body);
              });
            }
            run_in_thread(*world.front(), body);
            for (std::thread& other : others) other.join();
          }};
}

const auto kWorlds = testing::Values(threads(1), threads(2), threads(3), threads(4), threads(5));
std::string name_of(const testing::TestParamInfo<WorldUnderTest>& world) {
  return world.param.name;
}

INSTANTIATE_TEST_SUITE_P(Threads, GroupContract, kWorlds, name_of);
INSTANTIATE_TEST_SUITE_P(Threads, CommunicatorContract, kWorlds, name_of);

}  // namespace
}  // namespace stepcast
