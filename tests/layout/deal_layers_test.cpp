// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "layout/layout.h"

#include "layout/pipeline.h"

namespace stepcast {
namespace {

using Layers = std::vector<std::int64_t>;

Layout chunks(std::int64_t pp, std::int64_t virtual_stages) {
  Layout layout;
  layout.pp = pp;
  layout.virtual_stages = virtual_stages;
  return layout;
}

TEST(DealLayers, ExtraLayersGoToTheEarliestChunks) {
  EXPECT_EQ(deal_layers(32, chunks(4, 2)), (Layers{4, 4, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(deal_layers(10, chunks(4, 1)), (Layers{3, 3, 2, 2}));
}

// Embedding and loss each take one layer's place: 70 + 2 = 12 * 6.
TEST(DealLayers, EmbeddingAndLossTakeALayersPlace) {
  Layout layout = chunks(12, 1);
  layout.account_for_embedding = true;
  layout.account_for_loss = true;
  EXPECT_EQ(deal_layers(70, layout), (Layers{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}));
  layout.account_for_loss = false;
  EXPECT_EQ(deal_layers(71, layout), (Layers{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}));
}

TEST(DealLayers, AStatedListIsTaken) {
  Layout layout = chunks(2, 1);
  layout.stage_layers = {3, 9};
  EXPECT_EQ(deal_layers(12, layout), (Layers{3, 9}));
}

TEST(DealLayers, NoLayerIsLostAndNoChunkIsTwoAheadOfAnother) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto up_to = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(1, n)(random);
    };
    Layout layout = chunks(up_to(8), up_to(4));
    layout.account_for_embedding = up_to(2) == 1;
    layout.account_for_loss = up_to(2) == 1;
    const std::int64_t layers = layout.pp * layout.virtual_stages + up_to(100);
    Layers dealt = deal_layers(layers, layout);
    EXPECT_EQ(std::accumulate(dealt.begin(), dealt.end(), std::int64_t{0}), layers);
    dealt.front() += layout.account_for_embedding ? 1 : 0;
    dealt.back() += layout.account_for_loss ? 1 : 0;
    EXPECT_LE(dealt.front() - dealt.back(), 1);
    EXPECT_TRUE(std::is_sorted(dealt.rbegin(), dealt.rend()));
  }
}

}  // namespace
}  // namespace stepcast
