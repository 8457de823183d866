// SPDX-License-Identifier: Apache-2.0
// Ranks that launchers have started find each other, on the stand-ins for NCCL and CUDA's runtime.
#include "calibrate/measure/gpu/gpu_ranks.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "calibrate/measure/job.h"
#include "kernels/emulated/runtime.h"

namespace stepcast {
namespace {

using Variables = std::map<std::string, std::string>;

ReadVariable reader(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Variables torchrun(int rank, int size, const std::string& port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", port}};
}

std::string free_port() { return std::to_string(TcpStoreServer(0).port()); }

std::string error_of(std::int64_t gpus, const Variables& variables) {
  try {
    const GpuRanks ranks(gpus, reader(variables));
  } catch (const JobFailure& failure) {
    return failure.what();
  }
  return "no error";
}

TEST(GpuRanks, OneGpuIsAloneWhateverTheEnvironmentSays) {
  const GpuRanks ranks(1, reader({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  EXPECT_EQ(ranks.world(), nullptr);
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
}

TEST(GpuRanks, MeetThroughTheStoreOfRankZero) {
  const std::string port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, &port] {
      GpuRanks ranks(3, reader(torchrun(rank, 3, port)));
      ASSERT_NE(ranks.world(), nullptr);
      EXPECT_EQ(ranks.world()->rank(), rank);
      EXPECT_EQ(ranks.world()->size(), 3);
      std::vector<float> one = {1};
      ranks.world()
          ->start_all_reduce({one.data(), 1, DataType::kFp32}, Reduction::kSum, nullptr)
          ->wait();
      EXPECT_EQ(one[0], 3.0F);
      ranks.part();
      EXPECT_EQ(ranks.world(), nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GpuRanks, WhatDoesNotFitTheJobIsSaid) {
  EXPECT_EQ(error_of(8, torchrun(0, 2, "6000")),
            "the launcher has started 2 processes, and the job is for 8 GPUs");
  EXPECT_NE(error_of(2, {}).find("no launcher says which rank"), std::string::npos);
}

TEST(GpuRanks, MoreRanksThanGpusOfAMachineAreSaid) {
  emulated::set_device_count(2);
  const std::string port = free_port();
  const TcpStoreServer store(static_cast<std::uint16_t>(std::stoi(port)));
  const std::string error = error_of(4, torchrun(3, 4, port));
  emulated::set_device_count(8);
  EXPECT_EQ(error, "rank 3 is number 4 on its machine, which has 2 GPUs");
}

}  // namespace
}  // namespace stepcast
