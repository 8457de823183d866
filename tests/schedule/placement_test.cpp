// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

TEST(Placement, ChunksGoRoundTheStages) {
  const Pipeline pipeline{4, 3};
  EXPECT_EQ(stage_of_chunk(pipeline, 0), 0);
  EXPECT_EQ(stage_of_chunk(pipeline, 5), 1);
  EXPECT_EQ(stage_of_chunk(pipeline, 11), 3);
  EXPECT_EQ(chunk_of(pipeline, 1, 2), 9);
}

TEST(Placement, AFoldedModelComesBackUp) {
  const Pipeline pipeline{4, 2, 1, Placement::kFolded};
  const std::int64_t stages[] = {0, 1, 2, 3, 3, 2, 1, 0};
  for (std::int64_t chunk = 0; chunk < 8; ++chunk) {
    EXPECT_EQ(stage_of_chunk(pipeline, chunk), stages[chunk]);
  }
}

TEST(Placement, ChunkAndStageAreInverse) {
  for (const Placement placement : {Placement::kStraight, Placement::kFolded}) {
    const Pipeline pipeline{5, 2, 1, placement};
    for (std::int64_t stage = 0; stage < 5; ++stage) {
      for (std::int64_t local = 0; local < 2; ++local) {
        EXPECT_EQ(stage_of_chunk(pipeline, chunk_of(pipeline, stage, local)), stage);
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
