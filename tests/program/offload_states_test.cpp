// SPDX-License-Identifier: Apache-2.0
// States in host memory: what leaves the device, what crosses the link, and what the host updates,
// against the closed forms of docs/offload.md.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/host_link.h"
#include "core/each.h"
#include "memory/states.h"
#include "program/executable.h"
#include "program/instruction.h"
#include "program/optimizer.h"
#include "program/program.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;

constexpr std::int64_t kRanks = 4;

GptCase offloading(const std::string& framework, int zero, const std::string& offload) {
  GptCase c;
  c.framework = framework;
  c.zero = zero;
  c.dp = static_cast<int>(kRanks);
  c.attention = "flash";
  c.tied = false;
  if (!offload.empty()) c.extra_layout = R"(, "offload": )" + offload;
  return c;
}

ByteCount held_states(const Role& role, MemoryCategory category) {
  return role.persistent[static_cast<std::size_t>(category)];
}

struct CopiedStates {
  ByteCount out = 0, in = 0;
  std::int64_t copies_out = 0, copies_in = 0;
};
CopiedStates copied_states(const Role& role) {
  CopiedStates sum;
  for (const Instruction& what : role.instructions) {
    const auto* copy = what.as<StateCopy>();
    if (copy == nullptr) continue;
    const bool leaves = copy->direction == CopyDirection::kToHost;
    (leaves ? sum.out : sum.in) += copy->bytes;
    ++(leaves ? sum.copies_out : sum.copies_in);
  }
  return sum;
}

HostUpdate host_updates(const Role& role) {
  HostUpdate sum{};
  for (const Instruction& what : role.instructions) {
    const auto* update = what.as<HostUpdate>();
    if (update == nullptr) continue;
    sum.elements += update->elements;
    sum.bytes += update->bytes;
    sum.disk_bytes += update->disk_bytes;
  }
  return sum;
}

std::int64_t shard_of(const Role& role) { return (role.parameters + kRanks - 1) / kRanks; }

// Both moments of a quarter leave; gradients and weights cross in fp32, and the host moves
// gradient, weight and moments, and the rounded copy: 4 + 8 + 16 + 2 bytes.
TEST(OffloadStates, OfMegatronAreMomentsOfAFraction) {
  const Program plain = lower(gpt(offloading("megatron", 1, "")));
  const Scenario scenario = gpt(offloading("megatron", 1, R"({"optimizer": 0.25})"));
  const Program program = lower(scenario);
  const Role &before = plain.roles.front(), &role = program.roles.front();
  const std::int64_t moved = (shard_of(role) + 3) / 4;
  EXPECT_EQ(held_states(before, MemoryCategory::kOptimizer) -
                held_states(role, MemoryCategory::kOptimizer),
            8 * moved);
  EXPECT_EQ(held_states(before, MemoryCategory::kParameters),
            held_states(role, MemoryCategory::kParameters));
  EXPECT_EQ(held_states(before, MemoryCategory::kGradients),
            held_states(role, MemoryCategory::kGradients));
  EXPECT_EQ(role.on_host, (8 + 4 + 4) * moved);
  EXPECT_EQ(before.on_host, 0);
  EXPECT_EQ(copied_states(role).out, 4 * moved);
  EXPECT_EQ(copied_states(role).in, 4 * moved);
  EXPECT_EQ(host_updates(role).elements, moved);
  EXPECT_DOUBLE_EQ(host_updates(role).bytes, 30.0 * static_cast<double>(moved));
  EXPECT_EQ(host_updates(role).disk_bytes, 0);
}

// With its own streams the same is copied and updated piece by piece.
TEST(OffloadStates, AreCutIntoPiecesThatCoverThem) {
  GptCase c = offloading("megatron", 1, R"({"optimizer": 1})");
  const Program program = lower(gpt(c));
  const Role& whole = program.roles.front();
  c.extra_layout += R"(, "overlap": {"offload": true})";
  const Program in_pieces = lower(gpt(c));
  const Role& cut = in_pieces.roles.front();
  EXPECT_EQ(copied_states(whole).copies_out, 1);
  EXPECT_GT(copied_states(cut).copies_out, 1);
  EXPECT_EQ(copied_states(cut).out, copied_states(whole).out);
  EXPECT_EQ(copied_states(cut).in, copied_states(whole).in);
  EXPECT_EQ(host_updates(cut).elements, host_updates(whole).elements);
  EXPECT_NEAR(host_updates(cut).bytes, host_updates(whole).bytes, 1);
}

// ZeRO-Offload (Ren et al. 2021, section 4): 16-bit gradients leave as they are reduced, in each
// micro-batch, and 16-bit parameters come back once; the device has parameters alone.
TEST(OffloadStates, OfZeroTwoLeaveTheDeviceParametersAlone) {
  const Scenario scenario = gpt(offloading("deepspeed", 2, R"({"optimizer": 1})"));
  const Program program = lower(scenario);
  const Role& role = program.roles.front();
  const std::int64_t shard = shard_of(role);
  EXPECT_EQ(held_states(role, MemoryCategory::kOptimizer), 0);
  EXPECT_EQ(held_states(role, MemoryCategory::kGradients), 0);
  EXPECT_EQ(held_states(role, MemoryCategory::kParameters), 2 * role.parameters);
  const std::int64_t micro_batches = scenario.micro_batches();
  ASSERT_EQ(micro_batches, 2);
  EXPECT_NEAR(static_cast<double>(copied_states(role).out),
              static_cast<double>(2 * shard * micro_batches),
              64);  // rounded for each bucket
  EXPECT_EQ(copied_states(role).in, 2 * shard);
  // 16-bit gradients are read, clipped (2 + 2), and summed once (3 x 2).
  EXPECT_NEAR(host_updates(role).bytes, (2 + 8 + 16 + 2 + 4 + 6) * static_cast<double>(shard),
              6 * 64);  // rounded for each bucket
}

// Units come from fp32 shards on the host before each gather, and nothing comes back from an update
// of parameters that are there.
TEST(OffloadStates, OfFsdpAreAllOfThem) {
  const Scenario scenario = gpt(offloading("fsdp", 3, R"({"optimizer": 1, "parameters": 1})"));
  const Program program = lower(scenario);
  const Role& role = program.roles.front();
  for (const MemoryCategory category : each_of(std::vector{
           MemoryCategory::kParameters, MemoryCategory::kGradients, MemoryCategory::kOptimizer})) {
    EXPECT_EQ(held_states(role, category), 0) << name_of(category);
  }
  ByteCount gathered = 0, gathers = 0;
  for (const Instruction& what : role.instructions) {
    const auto* call = what.as<CollectiveCall>();
    if (call == nullptr || call->purpose != Purpose::kParameters) continue;
    gathered += call->message.bytes;
    ++gathers;
  }
  EXPECT_EQ(copied_states(role).copies_in, gathers);
  // fp32 shards of what is gathered in 16 bits.
  EXPECT_NEAR(static_cast<double>(copied_states(role).in),
              2.0 * static_cast<double>(gathered) / kRanks, static_cast<double>(gathers));
  EXPECT_EQ(host_updates(role).elements, shard_of(role));
}

// Adam's master weight and moments, 12 bytes, are read and written.
TEST(OffloadStates, OnDisksAreReadAndWritten) {
  GptCase c = offloading("deepspeed", 2, R"({"optimizer": 1, "optimizer_device": "nvme"})");
  c.cluster = R"("base": "dgx-a100-80g", "disk_read": "20 GB/s", "disk_write": "10 GB/s")";
  const Program program = lower(gpt(c));
  const Role& role = program.roles.front();
  EXPECT_DOUBLE_EQ(host_updates(role).disk_bytes, 12.0 * static_cast<double>(shard_of(role)));
  c.extra_layout = R"(, "offload": {"optimizer": 1})";
  const Program in_memory = lower(gpt(c));
  EXPECT_EQ(in_memory.roles.front().on_host - role.on_host, 12 * shard_of(role));
}

// One rank reduces nothing with zero 2, so that its gradients leave when all are there. In fp32 the
// device keeps weights that the host needs too: 8 + 4 + 4 bytes.
TEST(OffloadStates, OfOneRankLeaveAtTheEnd) {
  GptCase c = offloading("deepspeed", 2, R"({"optimizer": 1})");
  c.dp = 1;
  c.precision = "fp32";
  const Program program = lower(gpt(c));
  const Role& role = program.roles.front();
  EXPECT_EQ(copied_states(role).copies_out, 1);
  EXPECT_EQ(copied_states(role).out, 4 * role.parameters);
  EXPECT_EQ(copied_states(role).in, 4 * role.parameters);
  EXPECT_EQ(held_states(role, MemoryCategory::kGradients), 4 * role.parameters);
  EXPECT_EQ(role.on_host, 16 * role.parameters);
}

// The gradients of later micro-batches lie beside those that they are added to.
TEST(OffloadStates, AddUpInHostMemory) {
  const Program program = lower(gpt(offloading("fsdp", 3, R"({"optimizer": 1, "parameters": 1})")));
  std::int64_t adding = 0, copies = 0;
  for (const Instruction& what : program.roles.front().instructions) {
    const auto* copy = what.as<StateCopy>();
    if (copy == nullptr || copy->purpose != Purpose::kGradients) continue;
    ++copies;
    adding += copy->adds ? 1 : 0;
    EXPECT_EQ(what.host_birth(), copy->adds ? copy->bytes : 0);
    EXPECT_EQ(what.host_death(), what.host_birth());
  }
  EXPECT_GT(copies, 0);
  EXPECT_EQ(2 * adding, copies);  // the second of two micro-batches
}

bool refuses(const Scenario& scenario, Backend backend, const std::string& key) {
  return std::ranges::any_of(check_executable(scenario, backend),
                             [&](const Error& error) { return error.path == key; });
}

TEST(OffloadStates, AreRunByTheExecutorInMemoryOfThisMachine) {
  const std::string key = "layout.offload.optimizer";
  const std::string all = R"({"optimizer": 1})";
  EXPECT_TRUE(refuses(gpt(offloading("megatron", 1, all)), Backend::kCuda, key));
  EXPECT_FALSE(refuses(gpt(offloading("megatron", 1, all)), Backend::kCpu, key));
  GptCase disks = offloading("deepspeed", 2, R"({"optimizer": 1, "optimizer_device": "nvme"})");
  disks.cluster = R"("base": "dgx-a100-80g", "disk_read": "20 GB/s", "disk_write": "10 GB/s")";
  EXPECT_TRUE(refuses(gpt(disks), Backend::kCpu, "layout.offload.optimizer_device"));
  // Sums behind the reduction over data ranks, which the host has the gradients of.
  GptCase late = offloading("native", 2, all);
  late.tp = 2;
  EXPECT_FALSE(refuses(gpt(late), Backend::kCpu, key));
  late.sequence_parallel = true;
  EXPECT_TRUE(refuses(gpt(late), Backend::kCpu, key));
  GptCase tied = offloading("native", 2, all);
  tied.pp = 2;
  EXPECT_FALSE(refuses(gpt(tied), Backend::kCpu, key));
  tied.tied = true;
  EXPECT_TRUE(refuses(gpt(tied), Backend::kCpu, key));
}

struct StatesOf {
  const char* optimizer;
  double moments;  // bytes of an element
};

// 8-bit moments with a scale in fp32 for each 256; one momentum; Adafactor's rows and columns.
TEST(OptimizerStates, AreTheirBytesForEachParameter) {
  for (const StatesOf& one : each_of(std::vector<StatesOf>{
           {"adamw", 8}, {"adamw_8bit", 2.03125}, {"sgd", 4}, {"adafactor", 0}})) {
    GptCase c = offloading("fsdp", 3, "");
    c.extra_training = std::string(R"(, "optimizer": ")") + one.optimizer + "\"";
    const Scenario scenario = gpt(c);
    const Program program = lower(scenario);
    const Role& role = program.roles.front();
    const double states = static_cast<double>(held_states(role, MemoryCategory::kOptimizer));
    const double shard = static_cast<double>(shard_of(role));
    if (one.moments > 0) {
      EXPECT_NEAR(states, one.moments * shard, 8) << one.optimizer;
    } else {
      // A matrix of r rows and c columns keeps r + c of r c numbers.
      EXPECT_GT(states, 0);
      EXPECT_LT(states, 0.1 * shard);
    }
    EXPECT_DOUBLE_EQ(moment_width(scenario), one.moments);
  }
}

}  // namespace
}  // namespace stepcast
