// SPDX-License-Identifier: Apache-2.0
#include "layout/recomputed_layers.h"

#include <gtest/gtest.h>

namespace stepcast {
namespace {

TEST(RecomputedLayers, AreThoseThatTheLoweringDeals) {
  for (const RecomputeMode mode : {RecomputeMode::kNone, RecomputeMode::kFull}) {
    for (std::int64_t every = 1; every <= 5; ++every) {
      for (std::int64_t layers = 0; layers <= 4; ++layers) {
        for (std::int64_t first = 0; first <= 7; ++first) {
          const Recompute recompute{.mode = mode, .layers = layers, .every = every, .modules = {}};
          std::int64_t dealt = 0;
          for (std::int64_t count = 0; count <= 9; ++count) {
            EXPECT_EQ(recomputed_layers(recompute, first, count), dealt)
                << "every " << every << ", " << layers << " layers, " << count << " from " << first;
            dealt += recompute_of(recompute, first + count, count) != RecomputeMode::kNone ? 1 : 0;
          }
        }
      }
    }
  }
}

// Layers 3 to 8, of each chunk the first four, every second: 4 and 6.
TEST(RecomputedLayers, CountThroughTheModel) {
  const Recompute recompute{.mode = RecomputeMode::kFull, .layers = 4, .every = 2, .modules = {}};
  EXPECT_EQ(recomputed_layers(recompute, 3, 6), 2);
}

}  // namespace
}  // namespace stepcast
