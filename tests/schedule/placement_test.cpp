// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "schedule/schedule.h"

namespace stepcast {
namespace {

TEST(Placement, ChunksGoRoundTheStages) {
  const Pipeline pipeline{4, 3};
  EXPECT_EQ(stage_of_chunk(pipeline, 0, 0), 0);
  EXPECT_EQ(stage_of_chunk(pipeline, 5, 0), 1);
  EXPECT_EQ(stage_of_chunk(pipeline, 11, 0), 3);
  EXPECT_EQ(chunk_of(pipeline, 1, 2), 9);
}

TEST(Placement, AFoldedModelComesBackUp) {
  const Pipeline pipeline{4, 2, 1, Placement::kFolded};
  const std::int64_t stages[] = {0, 1, 2, 3, 3, 2, 1, 0};
  for (std::int64_t chunk = 0; chunk < 8; ++chunk) {
    EXPECT_EQ(stage_of_chunk(pipeline, chunk, 0), stages[chunk]);
  }
}

// Half of the micro-batches go down the stages, the others come up. Stage 0 and stage 3 hold the
// same chunks, in the same places.
TEST(Placement, AMirroredModelStandsOnTheStagesTwice) {
  const Pipeline pipeline{4, 2, 6, Placement::kMirrored};
  EXPECT_EQ(pipeline.all_chunks(), 4);
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    for (std::int64_t local = 0; local < 2; ++local) {
      const std::int64_t chunk = chunk_of(pipeline, stage, local);
      EXPECT_EQ(chunk, chunk_of(pipeline, 3 - stage, local));
      EXPECT_EQ(local_chunk_of(pipeline, chunk), local);
      const auto [begin, end] = micro_batches_of(pipeline, stage, local);
      EXPECT_EQ(end - begin, 3);
      for (std::int64_t i = begin; i < end; ++i) {
        EXPECT_EQ(stage_of_chunk(pipeline, chunk, i), stage);
        const Slot slot{Pass::kForward, static_cast<std::int32_t>(i),
                        static_cast<std::int32_t>(local)};
        EXPECT_EQ(goes_up(pipeline, slot), i >= 3);
      }
    }
  }
  EXPECT_EQ(chunk_of(pipeline, 0, 0), 0);
  EXPECT_EQ(chunk_of(pipeline, 0, 1), 3);
  EXPECT_EQ(stage_of_chunk(pipeline, 1, 5), 2);
}

TEST(Placement, ChunkAndStageAreInverse) {
  for (const Placement placement : {Placement::kStraight, Placement::kFolded}) {
    const Pipeline pipeline{5, 2, 1, placement};
    for (std::int64_t stage = 0; stage < 5; ++stage) {
      for (std::int64_t local = 0; local < 2; ++local) {
        const std::int64_t chunk = chunk_of(pipeline, stage, local);
        EXPECT_EQ(stage_of_chunk(pipeline, chunk, 0), stage);
        EXPECT_EQ(local_chunk_of(pipeline, chunk), local);
      }
    }
  }
}

}  // namespace
}  // namespace stepcast
