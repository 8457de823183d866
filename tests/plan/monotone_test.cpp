// SPDX-License-Identifier: Apache-2.0
// More of what a cluster has makes no step slower, a larger batch none shorter, and fewer bytes
// none slower or larger: a thousand random scenarios of all frameworks, each against changes of one
// figure or key. The one exception is a choice of NCCL, and each such case is shown to be one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/each.h"
#include "core/json_tree.h"
#include "kept_choices.h"
#include "plan/what_if.h"
#include "predict/prediction.h"
#include "random_choice.h"
#include "random_scenario.h"

namespace stepcast {
namespace {

using testing::DrawnScenario;
using testing::one_of;
using testing::ScenarioDraw;
using testing::source_folders;

// Address sanitizers make a forecast some ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // g++
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif
constexpr int kScenariosOfASeed = kSanitized ? 10 : 125;
constexpr int kChangesOfAScenario = 2;

// A step may be longer by this all the same: work that overlaps meets at other times. The scenarios
// of these seeds show up to 0.6 %, but for steps that lose much on shared links: a pipeline over
// one NIC that loses 38 % there moves by 2.8 % either way when a latency of a tenth of a
// microsecond changes who meets whom.
constexpr double kOtherMeetings = 0.01;
constexpr double kOfWhatLinksTake = 0.1;
// Gradients reduced in another type than they are kept in are cast, in launches of their own.
constexpr double kCasts = 0.03;

struct Change {
  std::string what;
  double slack;
  std::function<std::optional<Scenario>(const DrawnScenario&, SeededRandom&)> make;
};

double factor(SeededRandom& random) {
  constexpr double kFactors[] = {1.02, 1.1, 1.25, 1.5, 2, 4};
  return kFactors[random.below(static_cast<std::int64_t>(std::size(kFactors)))];
}

// Makes no scenario if the resource has no effect.
Change more_of(const ClusterResource& resource) {
  const std::string name = resource.name;
  return {name, kOtherMeetings,
          [&resource](const DrawnScenario& drawn, SeededRandom& random) -> std::optional<Scenario> {
            auto changed = apply_what_if(drawn.scenario, {&resource, factor(random)});
            if (!changed) return std::nullopt;
            return std::move(*changed);
          }};
}

Change more_memory() {
  return {"capacity", 0,
          [](const DrawnScenario& drawn, SeededRandom& random) -> std::optional<Scenario> {
            Scenario out = drawn.scenario;
            ByteCount& memory = out.cluster.spec.accelerator.memory;
            memory = static_cast<ByteCount>(static_cast<double>(memory) * factor(random));
            return out;
          }};
}

Change wider_trunks() {
  return {"trunks", kOtherMeetings,
          [](const DrawnScenario& drawn, SeededRandom& random) -> std::optional<Scenario> {
            Scenario out = drawn.scenario;
            out.cluster.spec.oversubscription /= factor(random);
            out.cluster.topology = build_topology(out.cluster.spec);
            return out;
          }};
}

// Makes no scenario if the key has this value already, or may not have it.
Change narrower(const char* key) {
  return {key, kCasts, [key](const DrawnScenario& drawn, SeededRandom&) -> std::optional<Scenario> {
            SortedJson stated = SortedJson::parse(drawn.text);
            // DeepSpeed has another optimizer for each, with buffers of its own.
            if (stated["training"]["framework"] == "deepspeed") return std::nullopt;
            stated["training"][key] = "bf16";
            const auto document = JsonDocument::from(stated, "changed.json");
            auto changed = read_scenario(*document, source_folders());
            if (!changed) return std::nullopt;
            return std::move(*changed);
          }};
}

std::vector<Change> all_changes() {
  std::vector<Change> out;
  for (const ClusterResource& resource : each_of(cluster_resources()))
    out.push_back(more_of(resource));
  out.push_back(more_memory());
  out.push_back(wider_trunks());
  out.push_back(narrower("reduce_precision"));
  return out;
}

// The part of a step that other meetings may take.
double most_of_meetings(const DrawnScenario& drawn, Seconds before) {
  const auto apart = predict(drawn.scenario, source_folders(), {.contention = false});
  EXPECT_TRUE(apart) << drawn.text;
  const double lost = apart ? 1 - apart->step_time / before : 0;
  return std::max(kOtherMeetings, kOfWhatLinksTake * lost);
}

void expect_choice(const DrawnScenario& drawn, const Scenario& changed, Seconds before) {
  const auto kept = testing::keep_choices(drawn.scenario, changed, source_folders());
  ASSERT_TRUE(kept) << to_string(kept.error()) << drawn.text;
  EXPECT_TRUE(kept->differ) << drawn.text;
  EXPECT_LE(kept->step_time / before, 1 + most_of_meetings(drawn, before)) << drawn.text;
}

class Monotone : public ::testing::TestWithParam<int> {};

TEST_P(Monotone, MoreIsNeverSlowerAndFewerBytesAreNeverLarger) {
  const std::vector<Change> changes = all_changes();
  const std::vector<std::string> frameworks = {"megatron", "fsdp", "deepspeed", "native"};
  const auto seed = static_cast<std::uint32_t>(GetParam());
  ScenarioDraw draw(seed, testing::all_that_forecasts());
  SeededRandom random(2026, seed);
  int compared = 0, choices = 0;
  for (int i = 0; i < kScenariosOfASeed; ++i) {
    const DrawnScenario drawn = draw.draw(one_of(frameworks, random));
    const auto before = predict(drawn.scenario, source_folders());
    ASSERT_TRUE(before) << to_string(before.error()) << drawn.text;
    for (int j = 0; j < kChangesOfAScenario; ++j) {
      const Change& change = one_of(changes, random);
      const auto changed = change.make(drawn, random);
      if (!changed) continue;
      const auto after = predict(*changed, source_folders());
      ASSERT_TRUE(after) << to_string(after.error()) << drawn.text;
      ++compared;
      const double longer = after->step_time / before->step_time - 1;
      const bool moves_meetings = change.slack > 0;
      if (longer > change.slack &&
          !(moves_meetings && longer <= most_of_meetings(drawn, before->step_time))) {
        SCOPED_TRACE(change.what);
        ++choices;
        expect_choice(drawn, *changed, before->step_time);
      }
      // A caching allocator keeps more of what it needs no more where there is more room for it.
      const bool has_more_room =
          changed->cluster.spec.accelerator.memory > drawn.scenario.cluster.spec.accelerator.memory;
      if (!has_more_room || before->fits) {
        EXPECT_LE(after->peak_device, before->peak_device) << change.what << "\n" << drawn.text;
      }
      EXPECT_LE(after->peak_memory, before->peak_memory) << change.what << "\n" << drawn.text;
    }
  }
  // Most changes have a meaning, and few of them change what NCCL does for the worse. One is
  // allowed for where so few scenarios are drawn that it is more than its share.
  EXPECT_GE(compared, kScenariosOfASeed);
  EXPECT_LE(choices, 1 + compared / 20);
}

TEST_P(Monotone, ALargerBatchIsNeverShorter) {
  const std::vector<std::string> frameworks = {"megatron", "fsdp", "deepspeed", "native"};
  const auto seed = static_cast<std::uint32_t>(GetParam());
  ScenarioDraw draw(seed, testing::all_that_forecasts());
  SeededRandom random(2027, seed);
  int compared = 0;
  for (int i = 0; i < kScenariosOfASeed / 5; ++i) {
    const DrawnScenario drawn = draw.draw(one_of(frameworks, random));
    SortedJson stated = SortedJson::parse(drawn.text);
    stated["training"]["global_batch"] = 2 * stated["training"]["global_batch"].get<int>();
    const auto larger = read_scenario(*JsonDocument::from(stated, "larger.json"), source_folders());
    ASSERT_TRUE(larger) << to_string(larger.error()) << drawn.text;
    const auto before = predict(drawn.scenario, source_folders());
    const auto after = predict(*larger, source_folders());
    ASSERT_TRUE(before && after) << drawn.text;
    EXPECT_GE(after->step_time / before->step_time, 1 - kOtherMeetings) << drawn.text;
    ++compared;
  }
  EXPECT_EQ(compared, kScenariosOfASeed / 5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Monotone, ::testing::Range(0, 8));

double step_time(const Scenario& scenario) {
  const auto prediction = predict(scenario, source_folders());
  EXPECT_TRUE(prediction) << (prediction ? "" : to_string(prediction.error()));
  return prediction ? prediction->step_time.value() : 0;
}

// If nothing overlaps and the host is ahead, twice of what binds makes a step shorter. A node of 4
// slow NICs is not bound by PCIe, and one without NVLink by nothing else.
TEST(MonotoneStep, EveryResourceThatBindsCounts) {
  const std::map<std::string, std::set<std::string>> free = {{"aws-p4d", {"pcie"}},
                                                             {"a100-pcie-8", {"scale_up", "nic"}}};
  for (const auto& [base, idle] : free) {
    const Scenario scenario = testing::scenario_from(
        fmt::format(R"({{"stepcast":1,"model":"gpt3-1.3b","cluster":{{"base":"{}","nodes":4}},)"
                    R"("training":{{"global_batch":64,"sequence_length":2048}},)"
                    R"("layout":{{"tp":4,"dp":8,"micro_batch":4,)"
                    R"("overlap":{{"tp":false,"grad_reduce":false}}}}}})",
                    base));
    const double plain = step_time(scenario);
    for (const ClusterResource& resource : each_of(cluster_resources())) {
      const auto more = apply_what_if(scenario, {&resource, 2});
      ASSERT_TRUE(more) << to_string(more.error());
      if (idle.contains(resource.name)) {
        EXPECT_LE(step_time(*more), plain * (1 + 1e-9)) << base << " " << resource.name;
      } else {
        EXPECT_LT(step_time(*more), plain) << base << " " << resource.name;
      }
    }
  }
}

// On 16 nodes of A100 NCCL would take twice the channels for NICs of 230 Gb/s, if PCIe 4 let them
// through: kernels lost 3.5 % to the SMs of those channels.
TEST(MonotoneStep, FasterNicsDoNotSlowFsdpOnA100) {
  double last = 0;
  for (const int rate : {100, 150, 200, 220, 230, 250, 300, 400}) {
    const double time = step_time(testing::scenario_from(fmt::format(
        R"({{"stepcast":1,"model":"llama-2-7b","cluster":{{"base":"dgx-a100-80g","nodes":16,)"
        R"("nic":"{} Gb/s"}},"training":{{"global_batch":512,"sequence_length":4096,)"
        R"("framework":"fsdp"}},"layout":{{"zero":3}}}})",
        rate)));
    if (last > 0) {
      EXPECT_LE(time, last * (1 + 1e-9)) << rate;
    }
    last = time;
  }
}

}  // namespace
}  // namespace stepcast
