// SPDX-License-Identifier: Apache-2.0
#include "nccl_world.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "comm/nccl/nccl_communicator.h"
#include "comm/thread_world.h"

namespace stepcast::emulated {

void as_each_gpu(int ranks, const std::function<void(std::unique_ptr<DeviceCommunicator>)>& body) {
  const auto bootstrap = thread_world(ranks);
  const auto run = [&](int rank) {
    try {
      Communicator& own = *bootstrap[static_cast<std::size_t>(rank)];
      auto world = make_nccl_world({.rank = rank, .size = ranks, .device = rank}, share_by(own),
                                   std::chrono::milliseconds(60000));
      own.barrier();  // all have it before one of them can fail
      body(std::move(world));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stepcast::emulated
