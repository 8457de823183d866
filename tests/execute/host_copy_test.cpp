// SPDX-License-Identifier: Apache-2.0
// Activations that were in host memory between forward and backward are what they were, and the
// two memories hold what the program says.
#include <gtest/gtest.h>

#include <algorithm>

#include "offloaded_program.h"
#include "threaded_training.h"

namespace stepcast {
namespace {

using testing::GptCase;
using testing::train;
using testing::TrainedRun;

GptCase offloaded_case() {
  GptCase c = testing::tiny_local();
  c.layers = 4;
  c.global_batch = 4;
  c.schedule = "gpipe";
  return c;
}

class Offload : public ::testing::TestWithParam<const char*> {};  // by recomputation

TEST_P(Offload, BringsEveryActivationBackAsItWas) {
  GptCase c = offloaded_case();
  c.recompute = GetParam();
  const Scenario scenario = testing::gpt(c);
  const Program kept = lower(scenario);
  const Program moved = testing::offloaded(kept);
  const TrainedRun before = train(scenario, kept, 3);
  const TrainedRun after = train(scenario, moved, 3);
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.gradient_norm, before.gradient_norm);
  EXPECT_EQ(after.model.relative_error(before.model), 0);

  ByteCount saved = 0;  // of one micro-batch
  for (const BlockId block : moved.roles.front().chunks.front().blocks) {
    saved += total(saved_by(moved.block(block)));
  }
  EXPECT_EQ(total(before.host_peaks.front()), 0);
  EXPECT_EQ(total(after.host_peaks.front()), 4 * saved);
  EXPECT_EQ(total(before.peaks.front()) - total(after.peaks.front()), 3 * saved);
}

// The layout's own key offloads likewise, with copies beside the layers next to them.
TEST_P(Offload, OfAFractionOfTheLayersIsTheLayoutsOwn) {
  GptCase c = offloaded_case();
  c.recompute = GetParam();
  const Scenario scenario = testing::gpt(c);
  c.extra_layout = R"(, "offload": {"activations": 0.5})";
  const Scenario offloading = testing::gpt(c);
  const Program moved = lower(offloading);
  const TrainedRun before = train(scenario, lower(scenario), 3);
  const TrainedRun after = train(offloading, moved, 3);
  EXPECT_EQ(after.loss, before.loss);
  EXPECT_EQ(after.gradient_norm, before.gradient_norm);
  EXPECT_EQ(after.model.relative_error(before.model), 0);
  ByteCount on_host = 0, most = 0;
  for (const Instruction& what : moved.roles.front().instructions) {
    most = std::max(most, on_host += what.host_birth());
    on_host -= what.host_death();
  }
  EXPECT_GT(most, 0);
  EXPECT_EQ(total(after.host_peaks.front()), most);
  EXPECT_LT(total(after.peaks.front()), total(before.peaks.front()));
}

INSTANTIATE_TEST_SUITE_P(Recomputation, Offload, ::testing::Values("none", "selective", "full"));

}  // namespace
}  // namespace stepcast
