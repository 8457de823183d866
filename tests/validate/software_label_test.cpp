// SPDX-License-Identifier: Apache-2.0
#include "validate/software_label.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepcast {
namespace {

using nlohmann::json;

json taken(json training) {
  take_from_label(training);
  return training;
}

TEST(SoftwareLabel, StandsForTheReleaseAndTheKernelThatACaseLeavesOut) {
  const json triton = taken({{"software", "llm-foundry 2023-10 (Triton flash attention)"}});
  EXPECT_EQ(triton["release"], "2023-10");
  EXPECT_EQ(triton["attention_kernel"], "triton");
  const json second = taken({{"software", "llm-foundry 2024-01 (flash-attn 2.4.2)"}});
  EXPECT_EQ(second["release"], "2024-01");
  EXPECT_EQ(second["attention_kernel"], "fa2");
}

TEST(SoftwareLabel, WhatIsStatedStays) {
  const json stated = {
      {"software", "2023-10, flash-attn 2"}, {"release", "2022-05"}, {"attention_kernel", "fa1"}};
  EXPECT_EQ(taken(stated), stated);
  EXPECT_FALSE(
      taken({{"software", "flash-attn 2"}, {"attention", "unfused"}}).contains("attention_kernel"));
}

TEST(SoftwareLabel, OtherWordsSayNothing) {
  for (const json& training :
       {json{{"software", "build 12024-131 of ours"}}, json{{"software", 7}}, json::object()}) {
    EXPECT_EQ(taken(training), training);
  }
}

}  // namespace
}  // namespace stepcast
