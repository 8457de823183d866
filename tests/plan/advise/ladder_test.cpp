// SPDX-License-Identifier: Apache-2.0
#include "plan/advise/ladder.h"

#include <map>

#include "plan/advise/advising.h"

namespace stepcast {
namespace {

constexpr const char* kLadderScenario =
    R"({"stepcast":1,"model":"gpt3-1.3b","cluster":"dgx-a100-80gx1",
    "training":{"global_batch":16,"sequence_length":1024},"layout":{"recompute":"none"}})";

std::size_t layouts_of(const Rung& rung, const std::string& text) {
  auto document = JsonDocument::parse(text, "test");
  const auto whole = planner_of(text);
  auto planner =
      Planner::make(**document, source_folders(), rung.part(whole->space().base().cluster.spec));
  EXPECT_TRUE(planner) << rung.id;
  return all_layouts((*planner)->space()).size();
}

// The rungs hold what `plan` searches on one node, no layout twice: ZeRO-2 is DeepSpeed's, which
// `plan` searches only if the scenario states it.
TEST(Ladder, RungsOfAllGpusPartTheSpaceAmongThem) {
  for (const char* framework : {"", R"("framework":"deepspeed",)"}) {
    std::string text = kLadderScenario;
    text.insert(text.find("\"global_batch\""), framework);
    std::size_t sum = 0;
    for (const Rung& rung : ladder()) {
      if (!rung.one_gpu) sum += layouts_of(rung, text);
    }
    EXPECT_EQ(sum, all_layouts(planner_of(text)->space()).size()) << text;
  }
}

TEST(Ladder, TensorParallelismStaysWhereNoNetworkIsCrossed) {
  ClusterSpec cluster;
  cluster.gpus_per_node = 4;
  cluster.gpus = 72;
  const auto most = [&] { return rung_named("tp").part(cluster).front().most; };
  EXPECT_EQ(most(), 4);
  cluster.nvlink_domain_nodes = 18;
  EXPECT_EQ(most(), 72);
  cluster.gpus = 2;
  EXPECT_EQ(most(), 2);
}

TEST(Ladder, FineTuningStartsWithAdaptersAndPretrainingWithOneGpu) {
  std::map<TrainingMode, std::string> first;
  for (const Rung& rung : ladder()) {
    for (const TrainingMode mode : rung.modes) first.try_emplace(mode, rung.id);
  }
  EXPECT_EQ(first[TrainingMode::kPretrain], "one-gpu");
  EXPECT_EQ(first[TrainingMode::kLora], "lora");
  EXPECT_EQ(first[TrainingMode::kQlora], "qlora");
}

}  // namespace
}  // namespace stepcast
