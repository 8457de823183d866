// SPDX-License-Identifier: Apache-2.0
#include "program/block_events.h"

#include <gtest/gtest.h>

#include "program/liveness.h"

namespace stepcast {
namespace {

constexpr auto kCompute = BlockStream::kCompute;
constexpr auto kBeside = BlockStream::kCommunication;

// A block of one-byte buffers whose forward pass a test writes operation by operation.
class Sketch {
 public:
  BufferId buffer(const char* name) {
    block.buffers.push_back({name, 1, DataType::kInt8, MemoryCategory::kActivations});
    return BufferId(block.buffers.size() - 1);
  }
  void operation(BlockStream stream, std::vector<BufferId> reads, std::vector<BufferId> writes) {
    Operation out{"operation", Phase::kForward, Gemm{}, std::move(reads), std::move(writes)};
    out.stream = stream;
    block.pass(Pass::kForward).operations.push_back(std::move(out));
  }
  std::int32_t after(std::size_t operation, BlockStream stream) const {
    return block.pass(Pass::kForward).operations[operation].after[static_cast<std::size_t>(stream)];
  }
  Block block;
};

TEST(BlockEvents, WhoReadsWaitsForTheWriterOnAnotherStream) {
  Sketch sketch;
  const BufferId x = sketch.buffer("x"), y = sketch.buffer("y"), z = sketch.buffer("z");
  sketch.operation(kCompute, {}, {x});
  sketch.operation(kBeside, {x}, {y});
  sketch.operation(kCompute, {x}, {z});
  sketch.operation(kCompute, {y}, {});
  finish_block(sketch.block);
  EXPECT_EQ(sketch.after(1, kCompute), 0);
  EXPECT_EQ(sketch.after(2, kBeside), -1);  // reading together disturbs nobody
  EXPECT_EQ(sketch.after(3, kBeside), 1);
  EXPECT_EQ(sketch.after(3, kCompute), -1);  // its own stream keeps order by itself
}

TEST(BlockEvents, WhoOverwritesWaitsForReadersAndWriters) {
  Sketch sketch;
  const BufferId x = sketch.buffer("x"), y = sketch.buffer("y");
  sketch.operation(kBeside, {}, {x});
  sketch.operation(kBeside, {x}, {});
  sketch.operation(kCompute, {}, {y});
  sketch.operation(kCompute, {}, {x});
  sketch.operation(kBeside, {}, {y});
  finish_block(sketch.block);
  EXPECT_EQ(sketch.after(2, kBeside), -1);
  EXPECT_EQ(sketch.after(3, kBeside), 1);
  EXPECT_EQ(sketch.after(4, kCompute), 2);
}

TEST(BlockEvents, BuffersLiveUntilSomebodyWaits) {
  Sketch sketch;
  const BufferId x = sketch.buffer("x"), y = sketch.buffer("y"), z = sketch.buffer("z");
  sketch.operation(kCompute, {}, {x});
  sketch.operation(kBeside, {x}, {y});
  sketch.operation(kCompute, {}, {z});
  sketch.operation(kCompute, {y}, {});
  finish_block(sketch.block);
  EXPECT_EQ(uses_end(sketch.block.pass(Pass::kForward).operations),
            (std::vector<std::int32_t>{0, 3, 2, 3}));
  // x is read beside the third operation and must not be freed under it: x, y and z at once.
  EXPECT_EQ(sketch.block.pass(Pass::kForward).memory.peak, 3);
  const BlockLives lives = trace_lives(sketch.block);
  EXPECT_EQ(lives.pass(Pass::kForward)[3].deaths, (std::vector<BufferId>{x, y}));
  EXPECT_EQ(total(sketch.block.pass(Pass::kForward).memory.after), 0);
}

TEST(BlockEvents, WithoutAWaitBuffersLiveToTheEndOfThePass) {
  Sketch sketch;
  const BufferId x = sketch.buffer("x"), z = sketch.buffer("z");
  sketch.operation(kCompute, {}, {x});
  sketch.operation(kBeside, {x}, {});
  sketch.operation(kCompute, {}, {z});
  sketch.operation(kCompute, {z}, {});
  finish_block(sketch.block);
  EXPECT_EQ(uses_end(sketch.block.pass(Pass::kForward).operations)[1], 3);
  EXPECT_EQ(trace_lives(sketch.block).pass(Pass::kForward)[3].deaths,
            (std::vector<BufferId>{x, z}));
}

}  // namespace
}  // namespace stepcast
