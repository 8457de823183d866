// SPDX-License-Identifier: Apache-2.0
#include "comm/thread_communicator.h"

#include "comm/group_communicator.h"
#include "comm/progress_driver.h"
#include "comm/rank_group.h"
#include "comm/thread_transport.h"

namespace stepcast {

std::vector<std::unique_ptr<Communicator>> thread_world(int ranks) {
  std::vector<std::unique_ptr<Communicator>> world;
  for (std::shared_ptr<Transport>& transport : thread_transports(ranks)) {
    auto progress = std::make_shared<ProgressDriver>(std::move(transport));
    world.push_back(std::make_unique<GroupCommunicator>(
        std::make_shared<RankGroup>(std::move(progress), "world")));
  }
  return world;
}

}  // namespace stepcast
