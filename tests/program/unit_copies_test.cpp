// SPDX-License-Identifier: Apache-2.0
// FSDP copies this beside its collectives, by the generation of its code.
#include "program/unit_copies.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "expert_scenarios.h"
#include "program/program.h"
#include "program/walk.h"
#include "scenario_from.h"

namespace stepcast {
namespace {

// Bytes for each parameter that a layer's passes copy, by the operations' names.
std::map<std::string, double> copied(int zero, const std::string& training,
                                     const std::string& framework = "fsdp") {
  testing::GptCase c;
  c.framework = framework;
  c.zero = zero;
  c.dp = 2;
  c.extra_training = training;
  const Scenario scenario = testing::gpt(c);
  std::map<std::string, double> out;
  const Program program = lower(scenario);
  for (const Block& block : program.blocks) {
    if (block.kind != BlockKind::kLayer) continue;
    for_each_operation(block, [&](const Operation& operation) {
      const auto* copy = std::get_if<UnitCopy>(&operation.work);
      if (copy == nullptr) return;
      EXPECT_EQ(copy->elements, block.parameters.total());
      out[operation.name] += copy->bytes / static_cast<double>(copy->elements);
    });
  }
  return out;
}

// A dense layer and layers of experts are units of different sizes, each with its own cast.
TEST(UnitCasts, AreAsLargeAsTheirUnits) {
  testing::ExpertCase c;
  c.layers = 3;
  c.dense_layers = 1;
  c.zero = 3;
  c.dp = 2;
  std::string text = testing::text_of(c);
  text.replace(text.find("megatron"), 8, "fsdp");
  const Scenario scenario = testing::scenario_from(text);
  ASSERT_EQ(scenario.training.reduce_precision, DataType::kFp32);
  const Program program = lower(scenario);
  const Role& role = program.roles[0];
  std::vector<std::int64_t> reduced, cast;
  for (const Instruction& instruction : role.instructions) {
    if (const auto* run = instruction.as<RunBlock>();
        run && run->kind == BlockKind::kCastGradients) {
      const Operation& only = program.block(run->block).pass(Pass::kForward).operations.front();
      cast.push_back(std::get<Cast>(only.work).size.elements);
    }
    const auto* call = instruction.as<CollectiveCall>();
    if (call != nullptr && call->purpose == Purpose::kGradients) {
      reduced.push_back(call->elements.size());
    }
  }
  ASSERT_EQ(reduced.size() % 4, 0u);  // three layers and the root in each micro-batch
  EXPECT_NE(reduced[0], reduced[2]);
  EXPECT_EQ(cast, reduced);
}

using Copies = std::map<std::string, double>;

TEST(UnitCopies, GatheredUnitsAreCopiedBeforeBothPasses) {
  EXPECT_EQ(copied(3, ""), (Copies{{"copy_gathered", 8}}));
  EXPECT_EQ(copied(2, ""), (Copies{{"copy_gathered", 4}}));  // kept for the backward
}

TEST(UnitCopies, GradientsOfTheirOwnTypeAreCopiedWithoutACast) {
  EXPECT_EQ(copied(3, R"(, "reduce_precision": "bf16")"),
            (Copies{{"copy_gathered", 8}, {"copy_gradients", 4}}));
}

TEST(UnitCopies, AFlatGradientIsFilledAndDivided) {
  EXPECT_EQ(copied(3, R"(, "release": "2023-10")"), (Copies{{"copy_gradients", 12}}));
  EXPECT_EQ(copied(3, R"(, "release": "2023-10", "reduce_precision": "bf16")"),
            (Copies{{"copy_gradients", 8}}));
  EXPECT_EQ(copied(3, R"(, "release": "2023-10", "no_sync": true)"),
            (Copies{{"copy_gradients", 4}}));
}

// Out of the flat tensor into the list, and out of the list, before both passes.
TEST(UnitCopies, DeepSpeedGatheredIntoListsUntil2022) {
  EXPECT_EQ(copied(3, R"(, "release": "2021-12")", "deepspeed"), (Copies{{"copy_gathered", 16}}));
  EXPECT_EQ(copied(3, R"(, "release": "2022-01")", "deepspeed"), Copies{});
}

TEST(UnitCopies, OtherFrameworksMakeNone) {
  testing::GptCase c;
  for (const char* framework : {"native", "deepspeed"}) {
    c.framework = framework;
    c.zero = 3;
    c.dp = 2;
    for_each_operation(lower(testing::gpt(c)), [&](const Operation& operation) {
      EXPECT_FALSE(std::holds_alternative<UnitCopy>(operation.work)) << framework;
    });
  }
}

}  // namespace
}  // namespace stepcast
