// SPDX-License-Identifier: Apache-2.0
// A step whose weight gradients run apart from its input gradients trains the same model as one
// whose backward is whole, in the memory and the time that are forecast for it.
#include <gtest/gtest.h>

#include <string>

#include "core/each.h"
#include "execute/threaded_training.h"
#include "predict/block_cost.h"
#include "predict/memory_replay.h"
#include "split_orders.h"

namespace stepcast {
namespace {

using testing::GptCase;

GptCase pipeline() {
  GptCase c = testing::small_local();
  c.layers = 4;
  c.hidden = 64;
  c.heads = 4;
  c.vocab = 512;
  c.sequence = 64;
  c.global_batch = 8;
  c.framework = "native";
  c.pp = 2;
  return c;
}

std::vector<GptCase> split_cases() {
  std::vector<GptCase> out(5, pipeline());
  out[1].recompute = "full";
  out[2].attention = "unfused";
  out[2].tied = false;
  out[3].dp = 2;
  out[3].zero = 1;
  out[4].tp = 2;
  out[4].sequence_parallel = true;
  return out;
}

TEST(SplitBackward, TrainsAsTheWholeInTheForecastsMemory) {
  constexpr int kSplitSteps = 3;
  for (const GptCase& c : each_of(split_cases())) {
    const Scenario scenario = testing::gpt(c);
    const testing::TrainedRun whole = testing::train(scenario, kSplitSteps);
    const Program program = lower(scenario, testing::split_orders(scenario));
    const testing::TrainedRun split = testing::train(scenario, program, kSplitSteps);
    for (std::size_t s = 0; s < kSplitSteps; ++s) {
      EXPECT_NEAR(split.loss[s] / whole.loss[s], 1, 1e-5) << "step " << s;
      EXPECT_NEAR(split.gradient_norm[s] / whole.gradient_norm[s], 1, 1e-5) << "step " << s;
    }
    EXPECT_LT(split.model.relative_error(whole.model), 1e-5);
    const RankGrid grid(scenario.layout);
    for (std::int32_t r = 0; r < grid.size(); ++r) {
      const Role& role = program.roles[static_cast<std::size_t>(grid.point(RankId(r)).pp)];
      const auto forecast = static_cast<double>(total(replay_memory(program, role).parts));
      const auto counted = static_cast<double>(total(split.peaks[static_cast<std::size_t>(r)]));
      EXPECT_NEAR(counted / forecast, 1, 0.01) << "rank " << r;
    }
  }
}

// Without collectives among them kernels run one after the other, in whichever pass.
TEST(SplitBackward, TakesAsLongAsTheWhole) {
  const Scenario scenario = testing::gpt(pipeline());
  const Program whole = lower(scenario);
  const Program split = lower(scenario, testing::split_orders(scenario));
  const KernelCosts kernels(scenario.cluster.spec.accelerator,
                            data_sheet_profile(scenario.cluster.spec.accelerator),
                            KernelStyle::kFused, scenario.training.framework);
  const CollectiveCosts collectives(scenario.cluster, "");
  const BlockCosts costs(scenario, kernels, collectives);
  const auto gpu = [&](const Block& block, Pass pass) {
    return costs.price(block.pass(pass).operations).gpu.value();
  };
  ASSERT_EQ(whole.blocks.size(), split.blocks.size());
  int compared = 0;
  for (std::size_t b = 0; b < whole.blocks.size(); ++b) {
    const double sum =
        gpu(split.blocks[b], Pass::kInputGradient) + gpu(split.blocks[b], Pass::kWeightGradient);
    const double backward = gpu(whole.blocks[b], Pass::kBackward);
    EXPECT_NEAR(sum, backward, 1e-12 * backward);
    if (backward > 0) ++compared;
  }
  EXPECT_EQ(compared, 3);  // embedding, head and the layer
}

}  // namespace
}  // namespace stepcast
