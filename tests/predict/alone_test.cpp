// SPDX-License-Identifier: Apache-2.0
// One rank of a layout without the others: its kernels, its host and its memory, without any
// traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/each.h"
#include "cost/profile.h"
#include "layout/framework.h"
#include "predict/choose_profile.h"
#include "predict/operation_table.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::small_local;
using testing::source_folders;

Prediction forecast(const Scenario& scenario, std::optional<RankId> alone = {}) {
  PredictOptions options;
  options.alone = alone;
  auto out = predict(scenario, source_folders(), options);
  EXPECT_TRUE(out.has_value()) << (out ? std::string() : to_string(out.error()));
  return out ? std::move(*out) : Prediction{};
}

// The time of all kernels of the rank's step, back to back.
double kernel_seconds(const Scenario& scenario, RankId rank) {
  const auto table = operation_table(scenario, source_folders(), rank);
  EXPECT_TRUE(table.has_value());
  double sum = 0;
  for (const OperationPrice& row : *table) {
    if (!row.is_collective()) sum += row.total.value();
  }
  return sum;
}

std::vector<RankId> all_ranks(const Scenario& scenario) {
  std::vector<RankId> out;
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(scenario.cluster.gpus()); ++r) {
    out.emplace_back(r);
  }
  return out;
}

const RankClass& class_of(const Prediction& prediction, RankId rank) {
  return *std::find_if(
      prediction.rank_classes.begin(), prediction.rank_classes.end(), [&](const RankClass& one) {
        return std::find(one.ranks.begin(), one.ranks.end(), rank) != one.ranks.end();
      });
}

GptCase on_gpus(const std::string& framework, int zero) {
  GptCase c;
  c.framework = framework;
  c.zero = zero;
  c.dropout = 0;
  return c;
}

TEST(RankAlone, OfALayoutOfOneRankIsTheWholeForecast) {
  const Scenario scenario = gpt(on_gpus("native", 0));
  const Prediction whole = forecast(scenario), alone = forecast(scenario, RankId(0));
  EXPECT_EQ(alone.step_time, whole.step_time);
  EXPECT_EQ(alone.step_time_low, whole.step_time_low);
  EXPECT_EQ(alone.step_time_high, whole.step_time_high);
  EXPECT_EQ(alone.time.compute, whole.time.compute);
  EXPECT_EQ(alone.peak_memory, whole.peak_memory);
  EXPECT_EQ(alone.peak_device, whole.peak_device);
}

// Without a host every kernel follows the one before.
TEST(RankAlone, OfATensorGroupTakesItsKernelsBackToBack) {
  GptCase c = small_local();
  c.tp = 2;
  for (const bool sequence_parallel : {false, true}) {
    c.sequence_parallel = sequence_parallel;
    const Scenario scenario = gpt(c);
    const Prediction alone = forecast(scenario, RankId(1));
    const double kernels = kernel_seconds(scenario, RankId(1));
    EXPECT_NEAR(alone.step_time / Seconds(kernels), 1, 1e-9);
    AtLeast exposed(3);
    for (const TimePartRow& row : kTimeParts) {
      if (row.kind != TimeKind::kExposed) continue;
      ++exposed;
      EXPECT_EQ((alone.time.*row.time).value(), 0) << row.words;
    }
    EXPECT_LT(alone.step_time, forecast(scenario).step_time);
  }
}

TEST(RankAlone, OfAPipelineNeverWaits) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
    GptCase c = small_local();
    c.pp = 2;
    c.dp = 2;
    c.schedule = schedule;
    c.virtual_stages = c.schedule == "interleaved" ? 2 : 1;
    const Scenario scenario = gpt(c);
    for (const RankId rank : each_of(all_ranks(scenario))) {
      const Prediction alone = forecast(scenario, rank);
      EXPECT_NEAR(alone.step_time.value() / kernel_seconds(scenario, rank), 1, 1e-9) << schedule;
      EXPECT_NEAR(alone.bubble_fraction, 0, 1e-9) << schedule;
      EXPECT_EQ(alone.time.bubble.value(), 0) << schedule;
    }
  }
}

TEST(RankAlone, HoldsTheMemoryThatItHasAmongTheOthers) {
  GptCase stages = on_gpus("megatron", 1);
  stages.tp = stages.pp = stages.dp = 2;
  GptCase sharded = on_gpus("fsdp", 3);
  sharded.dp = 4;
  for (const GptCase& c : {stages, sharded}) {
    const Scenario scenario = gpt(c);
    const Prediction whole = forecast(scenario);
    for (const RankId rank : each_of(all_ranks(scenario))) {
      const Prediction alone = forecast(scenario, rank);
      const RankClass& among = class_of(whole, rank);
      EXPECT_EQ(alone.peak_memory, among.peak_memory);
      EXPECT_EQ(alone.rank_classes.front().memory, among.memory);
      EXPECT_EQ(alone.rank_classes.front().stage, among.stage);
      EXPECT_LT(alone.peak_device, whole.peak_device);  // no communicators
    }
  }
}

// A replica alone is a layout of one with its share of the batch, bound by its host or not.
TEST(RankAlone, IsHeldUpByItsHostAsEver) {
  for (const int hidden : {128, 4096}) {
    GptCase replica = on_gpus("native", 0);
    replica.hidden = hidden;
    GptCase pair = replica;
    pair.dp = 2;
    replica.global_batch /= 2;
    const Prediction alone = forecast(gpt(pair), RankId(0)), single = forecast(gpt(replica));
    EXPECT_NEAR(alone.step_time / single.step_time, 1, 1e-9) << hidden;
    EXPECT_NEAR(alone.time.other.value(), single.time.other.value(), 1e-9) << hidden;
    if (hidden == 128) {
      EXPECT_GT(alone.time.other.value(), 0.2 * alone.step_time.value());
    }
  }
}

TEST(RankAlone, PartsAddUpToTheStep) {
  GptCase c = on_gpus("megatron", 1);
  c.tp = c.pp = c.dp = 2;
  const Prediction alone = forecast(gpt(c), RankId(5));
  EXPECT_NEAR(alone.time.total() / alone.step_time, 1, 1e-9);
  EXPECT_EQ(alone.alone, RankId(5));
  EXPECT_EQ(alone.rank_classes.size(), 1u);
  EXPECT_EQ(alone.tokens_per_s, 0);  // of one rank's step nothing follows for all
}

TEST(OwnKernels, AreThoseOfNativeWhoseverTheProgramIs) {
  Profile profile;
  for (const Framework f : all_frameworks()) {
    profile.host[f].launch_s = 1e-6 * (static_cast<int>(f) + 1);
    profile.attention_kernel[f] = name_of(f);
  }
  const auto native = framework_named("native");
  const HostFit host = profile.host[native];
  use_own_kernels(profile);
  for (const Framework f : all_frameworks()) {
    EXPECT_EQ(profile.host[f].launch_s, host.launch_s);
    EXPECT_EQ(profile.attention_kernel[f], "native");
  }
}

}  // namespace
}  // namespace stepcast
