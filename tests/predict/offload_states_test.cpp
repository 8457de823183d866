// SPDX-License-Identifier: Apache-2.0
// How long an update in host memory holds a step up.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cluster/host_link.h"
#include "core/each.h"
#include "core/temporary_folder.h"
#include "places.h"
#include "predict/host_update.h"
#include "predict/prediction.h"
#include "program/instruction.h"
#include "program/program.h"
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
  const double memory = host_update_time(scenario, {1, 3e9, 0, {}}).value();
  const double disks = host_update_time(scenario, {1, 3e9, 2e9, {}}).value() - memory;
  EXPECT_NEAR(disks, 2.0 / 10 + 2.0 / 5, 1e-9);
}

// A profile's own rates take the place of a cluster's: of the threads, as far as all cores reach so
// much together.
TEST(HostUpdate, GoesAtTheRatesThatAProfileHas) {
  Scenario scenario = gpt(offloading(1));  // two ranks on a node
  const HostMemory measured{12, BytesPerSecond(60e9), BytesPerSecond(8e9), BytesPerSecond(5e9)};
  scenario.rules.host_threads = 1;
  EXPECT_DOUBLE_EQ(host_update_rate(scenario, measured).value(), 8e9);
  scenario.rules.host_threads = 3;
  EXPECT_DOUBLE_EQ(host_update_rate(scenario, measured).value(), 24e9);
  scenario.rules.host_threads = 0;  // six cores, which would move 48 GB/s
  EXPECT_DOUBLE_EQ(host_update_rate(scenario, measured).value(), 60e9 / 2);
  EXPECT_DOUBLE_EQ(host_update_time(scenario, {1, 3e9, 0, {}}, measured).value(), 0.1);
  const BytesPerSecond link(25e9);
  EXPECT_EQ(host_copy_rate(scenario, link, measured), link);
  scenario.cluster.spec.accelerator.architecture = GpuArchitecture::kCpu;
  EXPECT_EQ(host_copy_rate(scenario, link, measured), measured.copy_one_core);
  EXPECT_EQ(host_copy_rate(scenario, link), link);
}

// An update is the last of a step but for the way back, and exposed: with rates that are half as
// high it takes twice its time, and the step as much longer.
TEST(HostUpdate, TakesTheStepLongerAsTheProfileSays) {
  const testing::TemporaryFolder folder;
  const auto step = [&](double rate) {
    std::ifstream shipped(source_folder() + "/calibrate/profiles/a100-sxm4-80g.json");
    auto profile = nlohmann::json::parse(shipped);
    const std::string text = std::to_string(rate) + " GB/s";
    profile["host_memory"] = {{"provenance", "measured"},
                              {"cores", 128},
                              {"update", text},
                              {"update_one_core", text},
                              {"copy_one_core", text}};
    folder.write("profile.json", profile.dump());
    Scenario scenario = gpt(offloading(1));
    scenario.profile = folder / "profile.json";
    return forecast(scenario).step_time.value();
  };
  const Scenario scenario = gpt(offloading(1));
  const Program program = lower(scenario);
  double bytes = 0;
  for (const Instruction& what : program.roles.front().instructions) {
    if (const auto* update = what.as<HostUpdate>()) bytes += update->bytes;
  }
  // Each of two ranks has half of what all cores reach.
  EXPECT_NEAR(step(20) - step(40), 2 * bytes / 20e9 - 2 * bytes / 40e9, 1e-4 * bytes / 20e9);
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
