// SPDX-License-Identifier: Apache-2.0
// How long an update in host memory holds a step up.
#include <gtest/gtest.h>

#include <string>

#include "core/each.h"
#include "predict/host_update.h"
#include "predict/prediction.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

GptCase offloading(double fraction) {
  GptCase c;
  c.hidden = 2048;
  c.heads = 16;
  c.zero = 1;
  c.dp = 2;
  c.attention = "flash";
  if (fraction > 0)
    c.extra_layout = R"(, "offload": {"optimizer": )" + std::to_string(fraction) + "}";
  return c;
}

Prediction forecast(const Scenario& scenario) {
  auto out = predict(scenario, source_folders());
  EXPECT_TRUE(out.has_value()) << (out ? std::string() : to_string(out.error()));
  return out ? *out : Prediction{};
}

// One thread of a rank, as torchrun starts it, moves a core's bytes; all cores of a node share what
// an Adam reaches of its memory.
TEST(HostUpdate, GoesAtTheRateOfItsThreadsOrOfTheMemory) {
  Scenario scenario = gpt(offloading(1));
  const NodeHost host = host_of(scenario.cluster.spec);
  EXPECT_EQ(host.cores, 128);
  scenario.rules.host_threads = 1;
  EXPECT_DOUBLE_EQ(host_update_rate(scenario).value(), host.core_rate.value());
  scenario.rules.host_threads = 0;
  EXPECT_DOUBLE_EQ(host_update_rate(scenario).value(), 0.49 * 409.6e9 / 2);
  scenario.cluster.spec.disk_read = BytesPerSecond(20e9);
  scenario.cluster.spec.disk_write = BytesPerSecond(10e9);
  const double memory = host_update_time(scenario, {1, 3e9, 0}).value();
  EXPECT_NEAR(host_update_time(scenario, {1, 3e9, 2e9}).value() - memory, 2.0 / 10 + 2.0 / 5, 1e-9);
}

// The way out, the update and the way back are exposed, one after the other.
TEST(HostUpdate, IsExposedWithTheCopiesAroundIt) {
  const Scenario scenario = gpt(offloading(1));
  const Program program = lower(scenario);
  double least = 0;
  AtLeast parts(3);
  for (const Instruction& what : program.roles.front().instructions) {
    if (const auto* copy = what.as<StateCopy>()) {
      const HostLink link = host_link(scenario.cluster, DeviceId(0), copy->direction);
      least += static_cast<double>(copy->bytes) / link.rate.value();
      ++parts;
    } else if (const auto* update = what.as<HostUpdate>()) {
      least += host_update_time(scenario, *update).value();
      ++parts;
    }
  }
  const Prediction with = forecast(scenario), without = forecast(gpt(offloading(0)));
  EXPECT_NEAR(with.time.exposed_offload.value(), least, 0.03 * least);
  EXPECT_EQ(without.time.exposed_offload.value(), 0);
  // A part hides what the update on the device takes, and what waits for it.
  const double longer = with.step_time.value() - without.step_time.value();
  EXPECT_LT(longer, 1.03 * least);
  EXPECT_GT(longer, 0.7 * least);
}

TEST(HostUpdate, TakesLongerAndFreesMoreWithTheFraction) {
  Prediction before = forecast(gpt(offloading(0)));
  for (const double fraction : each_of(std::vector<double>{0.25, 0.5, 1})) {
    const Prediction one = forecast(gpt(offloading(fraction)));
    EXPECT_GT(one.step_time, before.step_time);
    EXPECT_LT(one.peak_memory, before.peak_memory);
    EXPECT_GT(one.peak_host, before.peak_host);
    before = one;
  }
  EXPECT_TRUE(before.fits);
  Scenario small = gpt(offloading(1));
  small.cluster.spec.host_memory = before.peak_host - 1;
  EXPECT_FALSE(forecast(small).fits);
}

// Copies of other pieces hide behind the update of one.
TEST(HostUpdate, HidesCopiesWhereTheyRunBeside) {
  GptCase c = offloading(1);
  const Prediction apart = forecast(gpt(c));
  c.extra_layout += R"(, "overlap": {"offload": true})";
  const Prediction beside = forecast(gpt(c));
  EXPECT_LT(beside.step_time, apart.step_time);
  EXPECT_LT(beside.time.exposed_offload, apart.time.exposed_offload);
}

}  // namespace
}  // namespace stepcast
