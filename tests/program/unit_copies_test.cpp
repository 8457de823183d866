// SPDX-License-Identifier: Apache-2.0
// What FSDP copies beside its collectives, by the generation of its code.
#include "program/unit_copies.h"

#include <gtest/gtest.h>

#include <map>

#include "program/program.h"
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
    for (const BlockPass& pass : block.passes) {
      for (const Operation& operation : pass.operations) {
        const auto* copy = std::get_if<UnitCopy>(&operation.work);
        if (copy == nullptr) continue;
        EXPECT_EQ(copy->elements, block.parameters.total());
        out[operation.name] += copy->bytes / static_cast<double>(copy->elements);
      }
    }
  }
  return out;
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
    for (const Block& block : lower(testing::gpt(c)).blocks) {
      for (const BlockPass& pass : block.passes) {
        for (const Operation& operation : pass.operations) {
          EXPECT_FALSE(std::holds_alternative<UnitCopy>(operation.work)) << framework;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
