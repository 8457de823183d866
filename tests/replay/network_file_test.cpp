// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "core/temporary_folder.h"
#include "replay/cluster_network.h"
#include "replay/dimension_network.h"

namespace stepcast {
namespace {

Result<SystemSettings> system_of(const std::string& text) {
  const testing::TemporaryFolder folder;
  folder.write("system.json", text);
  return read_system_file(folder / "system.json");
}

std::string refusal_of(const std::string& text) {
  const auto read = system_of(text);
  return read ? "" : to_string(read.error());
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SystemFile, SaysWhereTimesComeFrom) {
  const auto plain = system_of(R"({"peak-perf": 900, "roofline-enabled": 0})");
  const auto roofline = system_of(R"({"peak-perf": 900, "roofline-enabled": 1})");
  const auto stated = system_of(R"({"replay-only": true})");
  ASSERT_TRUE(plain && roofline && stated);
  EXPECT_FALSE(plain->roofline || plain->replay_alone);
  EXPECT_TRUE(roofline->roofline && !roofline->replay_alone);
  EXPECT_TRUE(stated->replay_alone && !stated->roofline);
}

TEST(SystemFile, HasAnAlgorithmForEachDimension) {
  const auto read = system_of(R"({"all-reduce-implementation": ["ring", "halvingDoubling"],
                                  "all-gather-implementation": "direct"})");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->all_reduce,
            (std::vector{DimensionAlgorithm::kRing, DimensionAlgorithm::kHalving}));
  EXPECT_EQ(read->all_gather, (std::vector{DimensionAlgorithm::kDirect}));

  // Two dimensions of 4 switches: an all-reduce of 1 GB takes 3/2 s in the first and 3/8 s in the
  // second, and 6 latencies of two links by a ring, 4 by halving.
  const NetworkDimension one{DimensionForm::kSwitch, 4, BytesPerSecond(1e9), Seconds(0.5)};
  const auto time = [&](std::vector<DimensionAlgorithm> algorithms) {
    SystemSettings system;
    system.all_reduce = std::move(algorithms);
    const auto network = dimension_network({"network.yml", {one, one}}, system);
    sim::Workload workload;
    network->add_resources(workload);
    std::vector<std::int32_t> ranks;
    for (std::int32_t r = 0; r < 16; ++r) ranks.push_back(r);
    return network->collective(CollectiveKind::kAllReduce, 1e9, ranks).time().value();
  };
  const double moving = 1.5 + 0.375;
  EXPECT_NEAR(time({DimensionAlgorithm::kRing}), moving + 12, 1e-9);
  EXPECT_NEAR(time({DimensionAlgorithm::kRing, DimensionAlgorithm::kHalving}), moving + 10, 1e-9);
}

TEST(SystemFile, DropsNoKeyWithoutAWord) {
  EXPECT_TRUE(says(refusal_of(R"({"endpoint-dealy": 10})"), "did you mean 'endpoint-delay'?"))
      << refusal_of(R"({"endpoint-dealy": 10})");
  const std::string custom =
      refusal_of(R"({"all-reduce-implementation-custom": ["my-algorithm"]})");
  EXPECT_TRUE(says(custom, "all-reduce-implementation-custom")) << custom;
  EXPECT_TRUE(says(custom, "is not modelled")) << custom;
  EXPECT_TRUE(says(refusal_of(R"({"model-shared-bus": 1})"), "is not modelled"));
  const auto odd = system_of(R"({"scheduling-policy": "LIFO", "system-name": "x"})");
  ASSERT_TRUE(odd) << to_string(odd.error());
  EXPECT_EQ(odd->not_read, std::vector<std::string>{"system-name"});
}

TEST(RankMap, NamesADifferentGpuForEachRank) {
  const testing::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    folder.write("map.json", text);
    return read_rank_map(folder / "map.json", 3, 16);
  };
  const auto error = [&](const std::string& text) {
    const auto out = read(text);
    return out ? "" : to_string(out.error());
  };
  EXPECT_EQ(*read("[8, 0, 3]"), (std::vector<std::int32_t>{8, 0, 3}));
  EXPECT_TRUE(says(error("[0, 0, 1]"), "GPU 0 has a rank already"));
  EXPECT_TRUE(says(error("[0, 16, 1]"), "15")) << error("[0, 16, 1]");
  EXPECT_TRUE(says(error("[0, 1]"), "names 2 GPUs, and there are 3 ranks"));
  EXPECT_TRUE(says(error("{}"), "is no list of GPUs"));
}

}  // namespace
}  // namespace stepcast
