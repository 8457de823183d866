// SPDX-License-Identifier: Apache-2.0
// Weight gradients of the head that wait for the end of the passes (layout.defer_head_wgrad).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/each.h"
#include "predict/prediction.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

using testing::gpt;
using testing::GptCase;
using testing::source_folders;

GptCase pipeline() {
  GptCase c;
  c.attention = "flash";
  c.dropout = 0;
  c.tied = false;
  c.pp = 2;
  return c;
}

GptCase deferring(GptCase c, const std::string& micro_batches) {
  c.extra_layout += R"(, "defer_head_wgrad": )" + micro_batches;
  return c;
}

// The last pass over layers of the last stage, and which micro-batches' heads come behind it.
struct Passes {
  std::vector<std::int32_t> in_place, behind;
};

Passes of_head(const Program& program) {
  Passes out;
  const Role& role = program.roles.back();
  for (const Instruction& what : role.instructions) {
    const auto* run = what.as<RunPass>();
    if (run == nullptr) continue;
    if (run->slot.pass == Pass::kWeightGradient) {
      out.behind.push_back(run->slot.micro_batch);
    } else if (run->slot.pass == Pass::kBackward) {
      out.in_place.insert(out.in_place.end(), out.behind.begin(), out.behind.end());
      out.behind.clear();
    }
  }
  return out;
}

// Megatron defers the first ones, as many as the limit says.
TEST(DeferredHead, TheFirstMicroBatchesWaitForAllPasses) {
  const Passes three = of_head(lower(gpt(deferring(pipeline(), "3"))));
  EXPECT_EQ(three.behind, (std::vector<std::int32_t>{0, 1, 2}));
  // Each of the others has its own before its layers' backward.
  EXPECT_EQ(three.in_place, (std::vector<std::int32_t>{3, 4, 5, 6, 7}));
  for (const char* most : {"8", "100", R"("all")"}) {
    EXPECT_EQ(of_head(lower(gpt(deferring(pipeline(), most)))).behind.size(), 8u) << most;
  }
}

double flops(const Program& program) {
  double sum = 0;
  for (const Role& role : program.roles) {
    for (const Instruction& what : role.instructions) {
      for_each_operation(program, role, what, [&](const Operation& operation, const BlockVisit&) {
        sum += flops_of(operation).value();
      });
    }
  }
  return sum;
}

TEST(DeferredHead, ChangesNoWork) {
  EXPECT_DOUBLE_EQ(flops(lower(gpt(deferring(pipeline(), "3")))), flops(lower(gpt(pipeline()))));
}

// Each deferred micro-batch keeps the head's input and the gradient of its logits. Tensor ranks
// keep their shares of both: the input is gathered where the weight gradient is made.
TEST(DeferredHead, KeepsInputsAndGradientsOfLogits) {
  for (const int tp : {1, 2}) {
    GptCase c = pipeline();
    c.vocab = 65536;
    c.hidden = 4096;
    c.tp = tp;
    c.sequence_parallel = tp > 1;
    const auto peak = [&](const char* micro_batches) {
      const auto forecast = predict(gpt(deferring(c, micro_batches)), source_folders(), {});
      EXPECT_TRUE(forecast) << to_string(forecast.error());
      return forecast->peak_device;
    };
    const ByteCount of_one = 2 * (c.sequence * c.hidden + c.sequence * c.vocab) / tp;
    const ByteCount kept = peak("6") - peak("2");
    EXPECT_GE(kept, 4 * of_one);
    EXPECT_LE(kept, 4 * of_one * 106 / 100);  // the allocator holds a few percent beside
  }
}

// The last stage waits for the others at the end, so its products hide there.
TEST(DeferredHead, HidesInTheBubble) {
  for (const char* schedule : {"1f1b", "interleaved"}) {
    GptCase c = pipeline();
    c.pp = 4;
    c.layers = 16;
    c.vocab = 32768;
    c.schedule = schedule;
    c.virtual_stages = std::string(schedule) == "interleaved" ? 2 : 1;
    const auto step = [&](const GptCase& own) {
      const auto forecast = predict(gpt(own), source_folders(), {});
      EXPECT_TRUE(forecast) << to_string(forecast.error());
      return forecast->step_time.value();
    };
    EXPECT_LT(step(deferring(c, "2")), step(c)) << schedule;
  }
}

struct Refusal {
  const char* layout;
  const char* training;
  const char* says;
};

TEST(DeferredHead, IsRefusedWhereNothingCanWait) {
  const Refusal refusals[] = {
      {R"("pp": 1)", R"("framework": "megatron")", "without a pipeline"},
      {R"("pp": 2)", R"("framework": "deepspeed")", "framework deepspeed defers none"},
      {R"("pp": 2, "schedule": "zb-h1")", R"("framework": "megatron")",
       "has all weight gradients in passes of their own"},
  };
  for (const Refusal& refusal : refusals) {
    const std::string text =
        std::string(R"({"stepcast": 1, "model": "gpt2-1.5b", "cluster": {"base": )") +
        R"("dgx-a100-80g", "gpus": 8}, "training": {"global_batch": 16, )" + refusal.training +
        R"(}, "layout": {"defer_head_wgrad": 4, )" + refusal.layout + "}}";
    const auto document = JsonDocument::parse(text, "test.json");
    ASSERT_TRUE(document);
    const auto scenario = read_scenario(**document, source_folders());
    ASSERT_FALSE(scenario) << text;
    EXPECT_NE(to_string(scenario.error()).find(refusal.says), std::string::npos)
        << to_string(scenario.error());
  }
}

}  // namespace
}  // namespace stepcast
