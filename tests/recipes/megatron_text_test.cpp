// SPDX-License-Identifier: Apache-2.0
#include "recipes/megatron_text.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

// The examples of Megatron's own comments (pipeline_parallel_layer_layout.py).
TEST(MegatronText, LayoutStringsUnrollAsMegatronUnrollsThem) {
  const auto layout = read_layout_text("Ettt|(tt|)*29,m|L");
  ASSERT_TRUE(layout);
  std::vector<std::int64_t> layers(32, 2);
  layers.front() = 3;
  layers[30] = layers[31] = 0;
  EXPECT_EQ(layout->layers, layers);
  EXPECT_EQ(layout->mtp, 1);
  EXPECT_EQ(layout->last_mtp, 30);
  EXPECT_EQ(read_layout_text("Et*3|t*2L")->layers, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read_layout_text("E|(t|)*3,m|m||L")->layers,
            (std::vector<std::int64_t>{0, 1, 1, 1, 0, 0, 0, 0}));
}

TEST(MegatronText, WhatIsNoLayoutIsNotRead) {
  for (const char* text : {"", "Ex|L", "E(t|L", "E*|L", "(tt)|L", "Et*0L", "*3", "Et*99999999L"}) {
    EXPECT_FALSE(read_layout_text(text)) << text;
  }
}

TEST(MegatronText, LayoutsReadBack) {
  const std::vector<std::int64_t> layers = {3, 4, 0, 1};
  EXPECT_EQ(layout_text(layers, 0, false), "Et*3|t*4||t*1L");
  EXPECT_EQ(read_layout_text(layout_text(layers, 2, false))->layers, layers);
  EXPECT_EQ(read_layout_text(layout_text(layers, 2, false))->mtp, 2);
}

TEST(MegatronText, ModulesApartStandBeforeTheLoss) {
  const std::string text = layout_text({3, 4, 0, 0}, 1, true);
  EXPECT_EQ(text, "Et*3|t*4|m|L");
  EXPECT_EQ(read_layout_text(text)->last_mtp, 2);
}

TEST(MegatronText, LayerPatternsAreListExpressions) {
  using Pattern = std::vector<bool>;
  EXPECT_EQ(*read_layer_pattern("([0]*3+[1]*2)", 5), (Pattern{false, false, false, true, true}));
  EXPECT_EQ(*read_layer_pattern("([1]*3+[0]*1)*2", 8),
            (Pattern{true, true, true, false, true, true, true, false}));
  EXPECT_EQ(*read_layer_pattern("[0,1]", 2), (Pattern{false, true}));
  EXPECT_EQ(*read_layer_pattern("2", 4), (Pattern{true, false, true, false}));  // layer % 2 == 0
  EXPECT_EQ(layer_pattern({false, true, true}), "([0]*1+[1]*2)");
}

TEST(MegatronText, APatternOfAnotherLengthOrLetterIsNone) {
  for (const char* text : {"[1]*4", "[2]*5", "([1]*5", "[1]*5)", "", "0", "x", "[1]*5+", "((((("}) {
    EXPECT_FALSE(read_layer_pattern(text, 5)) << text;
  }
}

}  // namespace
}  // namespace stepcast
