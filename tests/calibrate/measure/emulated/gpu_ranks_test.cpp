// SPDX-License-Identifier: Apache-2.0
// Ranks that mpirun has started find each other, on the stand-ins for NCCL and CUDA's runtime.
#include "calibrate/measure/gpu/gpu_ranks.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "calibrate/measure/job_failure.h"
#include "comm/thread_world.h"
#include "kernels/emulated/runtime.h"

namespace stepcast {
namespace {

std::string error_of(std::int64_t gpus, Communicator* processes, int local_rank) {
  try {
    const GpuRanks ranks(gpus, processes, local_rank);
  } catch (const JobFailure& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(GpuRanks, OneGpuIsAloneAndNeedsNoProcesses) {
  const GpuRanks ranks(1, nullptr, 0);
  EXPECT_EQ(ranks.world(), nullptr);
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
}

TEST(GpuRanks, MeetOverTheirProcesses) {
  const auto processes = thread_world(3);
  std::vector<std::thread> threads;
  std::vector<float> sums(3, 0);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, &processes, &sums] {
      GpuRanks ranks(3, processes[static_cast<std::size_t>(rank)].get(), rank);
      ASSERT_NE(ranks.world(), nullptr);
      EXPECT_EQ(ranks.world()->rank(), rank);
      EXPECT_EQ(ranks.world()->size(), 3);
      std::vector<float> one = {1};
      ranks.world()
          ->start_all_reduce({one.data(), 1, DataType::kFp32}, Reduction::kSum, nullptr)
          ->wait();
      sums[static_cast<std::size_t>(rank)] = one[0];
      ranks.part();
      EXPECT_EQ(ranks.world(), nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector<float>(3, 3.0F));
}

TEST(GpuRanks, AnotherNumberOfProcessesThanGpusIsSaid) {
  const auto two = thread_world(2);
  EXPECT_EQ(error_of(8, two.front().get(), 0),
            "mpirun has started 2 processes, and the job is for 8 GPUs");
  EXPECT_EQ(error_of(2, nullptr, 0), "mpirun has started 1 processes, and the job is for 2 GPUs");
}

TEST(GpuRanks, MoreRanksThanGpusOfAMachineAreSaid) {
  emulated::set_device_count(2);
  const auto four = thread_world(4);
  const std::string error = error_of(4, four.back().get(), 3);
  emulated::set_device_count(8);
  EXPECT_EQ(error, "rank 3 is number 4 on its machine, which has 2 GPUs");
}

}  // namespace
}  // namespace stepcast
