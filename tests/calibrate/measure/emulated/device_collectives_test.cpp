// SPDX-License-Identifier: Apache-2.0
// Communication between GPUs as a calibration measures it, on the stand-ins for NCCL and CUDA's
// runtime, whose operations take what algebra says; and what becomes of it in a profile.
#include "calibrate/measure/gpu/device_collectives.h"

#include <gtest/gtest.h>

#include <atomic>

#include "calibrate/import/imported_profile.h"
#include "calibrate/measure/collective_sampler.h"
#include "calibrate/measured_on_gpu.h"
#include "cli/rank_results.h"
#include "core/atomic_file.h"
#include "core/each.h"
#include "core/json_tree.h"
#include "core/temporary_folder.h"
#include "core/text/escape.h"
#include "emulated_nccl.h"
#include "nccl_world.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using emulated::as_each_gpu;
using Groups = std::vector<std::vector<int>>;

constexpr double kLatency_s = 1e-3, kBusRate = 1e8;  // bytes per second

// nccl-tests: time = latency + size * factor / bus bandwidth.
double factor(const std::string& collective, int ranks) {
  const double part = (ranks - 1.0) / ranks;
  if (collective == "all_reduce") return 2 * part;
  return collective == "broadcast" || collective == "send_recv" ? 1 : part;
}
double expected_s(const std::string& collective, double bytes, int ranks) {
  return kLatency_s + bytes * factor(collective, ranks) / kBusRate;
}

// NCCL's calls cost this on the stand-in, so that the times above come out. An all-to-all is made
// of messages that go at once: each takes as long as all of them.
double cost(const std::string& name, double bytes, int ranks) {
  if (name == "AllReduce") return expected_s("all_reduce", bytes, ranks);
  if (name == "AllGather") return expected_s("all_gather", bytes, ranks);
  if (name == "ReduceScatter") return expected_s("reduce_scatter", bytes, ranks);
  return expected_s("broadcast", bytes, ranks);
}

class DeviceCollectivesTest : public ::testing::Test {
 protected:
  void SetUp() override { emulated::set_nccl_cost(cost); }
  void TearDown() override { emulated::set_nccl_cost(nullptr); }
};

TEST_F(DeviceCollectivesTest, GroupsAreWholeNodesAndPowersOfTwoWithinOne) {
  EXPECT_EQ(measured_groups({0}), Groups{});
  EXPECT_EQ(measured_groups({0, 0}), (Groups{{0, 1}}));
  EXPECT_EQ(measured_groups({0, 0, 0, 0, 0, 0}),
            (Groups{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}, {0, 1}}));
  EXPECT_EQ(measured_groups({0, 0, 1, 1, 2, 2}),
            (Groups{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}, {0, 1}}));
  // One GPU per node: nothing within one.
  EXPECT_EQ(measured_groups({0, 1, 2, 3}), (Groups{{0, 1, 2, 3}, {0, 1}}));
  // Ranks in turns over the nodes.
  EXPECT_EQ(measured_groups({0, 1, 0, 1}), (Groups{{0, 1, 2, 3}, {0, 2}}));
}

TEST_F(DeviceCollectivesTest, RanksOfOneMachineAreANode) {
  as_each_gpu(4, [](const std::unique_ptr<DeviceCommunicator>& world) {
    const std::string host = world->rank() < 2 ? "first" : "second";
    EXPECT_EQ(nodes_of(*world, host), std::vector<int>({0, 0, 1, 1}));
  });
}

TEST_F(DeviceCollectivesTest, ASampleIsTheTimeOfACallOnTheLastOfItsMembers) {
  as_each_gpu(4, [](const std::unique_ptr<DeviceCommunicator>& world) {
    DeviceCollectives backend(*world, {0, 0, 0, 0}, {.largest = 1 << 14});
    const auto curves = backend.curves();
    for (std::size_t c = 0; c < curves.size(); ++c) {
      const auto meeting = backend.meet(c);
      EXPECT_EQ(meeting.takes_part, c < 6 || world->rank() < 2);
      if (!meeting.takes_part || curves[c].collective == "all_to_all") continue;
      const ByteCount bytes = curves[c].sizes.back();
      backend.begin_size(bytes);
      const Sample sample = backend.sample(bytes);
      const double seconds = expected_s(curves[c].collective, static_cast<double>(bytes),
                                        static_cast<int>(meeting.placement.size()));
      // Milliseconds in fp32.
      EXPECT_NEAR(sample.seconds / static_cast<double>(sample.calls) / seconds, 1, 1e-4)
          << curves[c].collective;
      EXPECT_GT(sample.calls, 1);
    }
  });
}

TEST_F(DeviceCollectivesTest, AnAllToAllTakesAsLongAsItsLongestMessage) {
  as_each_gpu(4, [](const std::unique_ptr<DeviceCommunicator>& world) {
    DeviceCollectives backend(*world, {0, 0, 0, 0}, {.largest = 1 << 14});
    ASSERT_EQ(backend.curves()[3].collective, "all_to_all");
    backend.meet(3);
    backend.begin_size(1 << 14);
    const Sample sample = backend.sample(1 << 14);
    EXPECT_NEAR(sample.seconds / static_cast<double>(sample.calls),
                expected_s("broadcast", (1 << 14) / 4.0, 4), 1e-8);
  });
}

TEST_F(DeviceCollectivesTest, AClockHeldDownOnOneRankIsKnownToAll) {
  as_each_gpu(2, [](const std::unique_ptr<DeviceCommunicator>& world) {
    const bool hot = world->rank() == 1;
    DeviceCollectives backend(*world, {0, 0},
                              {.largest = 4096, .is_throttled = [hot] { return hot; }});
    backend.meet(0);
    backend.begin_size(4096);
    EXPECT_EQ(backend.sample(4096).disturbance.throttle_events, 1);
  });
}

TEST_F(DeviceCollectivesTest, RegisteredBuffersAreThoseOfTheGroup) {
  const emulated::NcclUse before = emulated::nccl_use();
  std::atomic<int> members = 0;
  as_each_gpu(4, [&](const std::unique_ptr<DeviceCommunicator>& world) {
    {
      DeviceCollectives backend(*world, {0, 0, 0, 0}, {.largest = 4096, .registered = true});
      EXPECT_TRUE(backend.key_of(4096).ends_with("registered"));
      if (backend.meet(0).takes_part) {
        ++members;
        EXPECT_GE(emulated::nccl_use().registrations, before.registrations + 2);
        backend.begin_size(4096);
        backend.sample(4096);
      }
    }
  });
  EXPECT_GE(members, 2);
  EXPECT_EQ(emulated::nccl_use().registrations, before.registrations);
  EXPECT_EQ(emulated::nccl_use().allocations, before.allocations);
}

// Ranks measure, and a forecast reads their profile: what was measured comes back.
TEST_F(DeviceCollectivesTest, TheProfileHoldsTheMeasuredTimes) {
  const testing::TemporaryFolder folder;
  as_each_gpu(4, [&](const std::unique_ptr<DeviceCommunicator>& world) {
    auto journal = Journal::open(folder / ("rank-" + std::to_string(world->rank()) + ".jsonl"),
                                 {{"gpu", "emulated"}});
    ASSERT_TRUE(journal);
    RankReporter report(world->rank(), -1);
    Job job;
    job.target_half_width = 0.1;
    DeviceCollectives backend(*world, {0, 0, 0, 0}, {.largest = 1 << 16});
    Json collectives = Json::array();
    CollectiveSampler(job, report, *journal, backend).measure(collectives);
    EXPECT_EQ(collectives.empty(), world->rank() != 0);
    if (world->rank() != 0) return;
    const Json out{{"rank", 0}, {"operations", SortedJson::array()}, {"collectives", collectives}};
    ASSERT_TRUE(write_file_atomically(folder / "rank-0.json", json_text(out)));
  });
  cli::RankResults results;
  Errors errors;
  results.read(folder / "rank-0.json", errors);
  EXPECT_TRUE(errors.empty()) << to_string(errors);
  std::vector<MeasuredOperation> operations;
  std::vector<MeasuredCollective> collectives;
  results.move_to(operations, collectives);
  Imported measured;
  add_collectives(collectives, measured);
  ASSERT_EQ(measured.collectives.size(), 12U);  // 6 kinds among 4 and among 2

  const Scenario scenario = testing::scenario_from(
      R"({"stepcast": 1, "model": "gpt2", "cluster": "dgx-h100",
          "training": {"global_batch": 8}})");
  const auto profile =
      make_imported_profile(measured, scenario.cluster.spec,
                            data_sheet_profile(scenario.cluster.spec.accelerator), "measured");
  ASSERT_TRUE(profile) << to_string(profile.error());
  ASSERT_EQ(profile->collectives.size(), 12U);
  for (const CollectiveTable& table : profile->collectives) {
    const std::string name = name_of(table.group.kind);
    EXPECT_EQ(table.group.group.domains, 1);
    if (name == "all_to_all") continue;
    for (const CollectiveSample& sample : each_of(table.samples)) {
      const double seconds =
          expected_s(name, sample.size.value(), static_cast<int>(table.group.group.ranks));
      EXPECT_NEAR(sample.time.value() / seconds, 1, 1e-3) << name << sample.size.value();
    }
  }
}

}  // namespace
}  // namespace stepcast
