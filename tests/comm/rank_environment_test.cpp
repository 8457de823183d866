// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_environment.h"

#include <gtest/gtest.h>

#include <map>

namespace stepcast {
namespace {

using Variables = std::map<std::string, std::string>;

Result<RankEnvironment> read(const Variables& variables) {
  return read_rank_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal_of(const Variables& variables) {
  const auto environment = read(variables);
  EXPECT_FALSE(environment);
  return environment ? "" : to_string(environment.error());
}

TEST(RankEnvironment, OfTorchrun) {
  const auto found = read({{"RANK", "11"},
                           {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "3"},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "29500"},
                           {"SLURM_PROCID", "0"},  // torchrun under srun: one task per node
                           {"SLURM_NTASKS", "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 11);
  EXPECT_EQ(found->size, 16);
  EXPECT_EQ(found->local_rank, 3);
  EXPECT_EQ(found->address, "node0");
  EXPECT_EQ(found->port, 29500);
}

TEST(RankEnvironment, OfSlurm) {
  const auto found = read({{"SLURM_PROCID", "7"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "7"},
                           {"MASTER_ADDR", "10.0.0.1"},
                           {"MASTER_PORT", "6000"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 7);
  EXPECT_EQ(found->size, 8);
}

TEST(RankEnvironment, OfOpenMpiAlsoInsideAJobOfSlurm) {
  const auto found = read({{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "localhost"},
                           {"MASTER_PORT", "29500"},
                           {"SLURM_PROCID", "0"},  // of the task that called mpirun
                           {"SLURM_NTASKS", "2"}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 5);
  EXPECT_EQ(found->size, 8);
  EXPECT_EQ(found->local_rank, 1);
}

TEST(RankEnvironment, ErrorsNameEveryVariable) {
  EXPECT_NE(refusal_of({}).find("no launcher says which rank"), std::string::npos);
  const std::string missing = refusal_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}});
  for (const char* name : {"SLURM_LOCALID", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_NE(missing.find(std::string(name) + ": is not set"), std::string::npos) << missing;
  }
  EXPECT_NE(missing.find("batch script"), std::string::npos) << missing;
  const std::string wrong = refusal_of({{"RANK", "16"},
                                        {"WORLD_SIZE", "16"},
                                        {"LOCAL_RANK", "x"},
                                        {"MASTER_ADDR", "a"},
                                        {"MASTER_PORT", "70000"}});
  EXPECT_NE(wrong.find("RANK: '16' is not accepted (a whole number from 0 to 15)"),
            std::string::npos)
      << wrong;
  EXPECT_NE(wrong.find("LOCAL_RANK: 'x'"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("MASTER_PORT: '70000'"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace stepcast
