// SPDX-License-Identifier: Apache-2.0
#include "predict/sent_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/each.h"
#include "cost/collective_cost.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::source_folders;

// Eight nodes of H100 under leaves of two; tensor parallel ranks inside nodes, two stages.
Scenario scenario_of(const std::string& oversubscription) {
  return testing::scenario_from(
      R"({"stepcast":1,"model":{"hidden":4096,"layers":4,"heads":32,"vocab":32000},
          "cluster":{"base":"dgx-h100","nodes":8,"nodes_per_leaf_group":2,"oversubscription":)" +
      oversubscription + R"(},"training":{"global_batch":8,"sequence_length":2048},
          "layout":{"tp":8,"pp":2}})");
}

Prediction forecast_of(const Scenario& scenario) {
  const auto out = predict(scenario, source_folders(), {.trace = true, .collectives = true});
  EXPECT_TRUE(out.has_value());
  return out.value_or(Prediction{});
}

// The one that is sent most often.
const SentCollective* find(const Prediction& forecast, const std::string& kind,
                           const std::string& group, std::int32_t stage = 0) {
  const SentCollective* most = nullptr;
  for (const SentCollective& one : forecast.collectives) {
    if (one.kind != kind || one.group != group || one.stage != stage) continue;
    if (most == nullptr || one.times > most->times) most = &one;
  }
  return most;
}

TEST(SentCollectives, AreWhatTheLibraryChooses) {
  const Scenario scenario = scenario_of("1");
  const Prediction forecast = forecast_of(scenario);
  const CollectiveCosts costs(scenario.cluster, source_folders().profiles);
  const SentCollective* inside = find(forecast, "all_gather", "tp");
  ASSERT_NE(inside, nullptr);
  EXPECT_EQ(inside->ranks, 8);
  // Two in the forward and two in the backward pass of each of two layers, for two micro-batches.
  EXPECT_GE(inside->times, 16);
  std::vector<DeviceId> devices;
  for (std::int32_t i = 0; i < 8; ++i) devices.emplace_back(i);
  const CollectivePrice price =
      costs.price(CollectiveKind::kAllGather, inside->bytes, DataType::kBf16, devices);
  EXPECT_EQ(inside->algorithm, name_of(price.algorithm));
  EXPECT_EQ(inside->protocol, name_of(price.protocol));
  EXPECT_EQ(inside->channels, price.channels);
  EXPECT_EQ(inside->curve, costs.curve_name(price));
  EXPECT_FALSE(inside->curve.empty());
  EXPECT_NEAR(inside->time.value(), price.time().value(), 1e-9 * price.time().value());

  const SentCollective* send = find(forecast, "send", "stage 1");
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->times, 2);
  EXPECT_EQ(send->bytes, 2 * 2048 * 4096 / 8);  // of the sequence each rank has a part
  EXPECT_EQ(find(forecast, "send", "stage 1", 1), nullptr);
}

TEST(SentCollectives, NameTheLinkThatBindsThem) {
  const auto of_replicas = [](const Prediction& forecast) {
    const auto largest = std::ranges::max_element(
        forecast.collectives, {},
        [](const SentCollective& one) { return one.group == "dp" ? one.bytes : 0; });
    EXPECT_NE(largest, forecast.collectives.end());
    return *largest;
  };
  const SentCollective slow = of_replicas(forecast_of(scenario_of("8")));
  const SentCollective fast = of_replicas(forecast_of(scenario_of("1")));
  EXPECT_NE(slow.bound_by.find("leaf"), std::string::npos) << slow.bound_by;
  EXPECT_NE(slow.bound_by.find("spine"), std::string::npos) << slow.bound_by;
  EXPECT_EQ(fast.bound_by.find("spine"), std::string::npos) << fast.bound_by;
  EXPECT_NEAR(slow.full, 1, 1e-9);
  EXPECT_GT(fast.full, 0.5);
  EXPECT_LE(fast.full, 1 + 1e-9);
  EXPECT_GT(slow.time.value(), 2 * fast.time.value());
}

TEST(SentCollectives, StandInTracesAndExplanations) {
  const Scenario scenario = scenario_of("1");
  const Prediction forecast = forecast_of(scenario);
  std::size_t drawn = 0;
  for (const TraceSlice& slice : each_of(forecast.slices)) {
    if (!slice.collective || slice.sent < 0) continue;
    const SentCollective& sent = forecast.collectives[static_cast<std::size_t>(slice.sent)];
    EXPECT_EQ(sent.bytes, slice.bytes) << slice.name;
    ++drawn;
  }
  EXPECT_GT(drawn, 16U);
  EXPECT_TRUE(
      forecast_of(testing::scenario_from(
                      R"({"stepcast":1,"model":"gpt2","cluster":{"base":"dgx-h100","gpus":1},
                      "training":{"global_batch":8},"layout":{}})"))
          .collectives.empty());
}

}  // namespace
}  // namespace stepcast
