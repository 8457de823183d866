// SPDX-License-Identifier: Apache-2.0
#include "program/block_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/seeded_random.h"
#include "operation/block_stream.h"
#include "operation/operation.h"
#include "operation/phase.h"
#include "operation/product.h"
#include "program/liveness.h"
#include "program/program.h"

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
  EXPECT_EQ(sketch.after(4, kCompute), 3);  // also those before it that touch none of its data
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

// Memory is freed in the order of what is computed: a wait on another stream does not tell the
// computing one, until it waits for that.
TEST(BlockEvents, BuffersLiveUntilTheComputingStreamKnows) {
  Sketch sketch;
  const BufferId x = sketch.buffer("x"), y = sketch.buffer("y"), z = sketch.buffer("z");
  sketch.operation(kBeside, {}, {x});
  sketch.operation(BlockStream::kCopy, {x}, {y});
  sketch.operation(kCompute, {}, {z});
  sketch.operation(kCompute, {y}, {});
  sketch.operation(kCompute, {z}, {});
  finish_block(sketch.block);
  EXPECT_EQ(uses_end(sketch.block.pass(Pass::kForward).operations),
            (std::vector<std::int32_t>{3, 3, 2, 3, 4}));
}

// Streams that run as they like within what they wait for, again and again: when computing comes to
// where the buffers of an operation are free, the operation has ended, whatever the times.
TEST(BlockEvents, NoBufferIsFreedUnderAnOperation) {
  SeededRandom random(14);
  int early = 0;  // freed before the pass ends
  for (int round = 0; round < 300; ++round) {
    Sketch sketch;
    std::vector<BufferId> buffers;
    for (int b = 0; b < 5; ++b) buffers.push_back(sketch.buffer("buffer"));
    const auto any = [&] { return buffers[static_cast<std::size_t>(random.below(5))]; };
    const auto count = static_cast<std::size_t>(3 + random.below(14));
    sketch.operation(kCompute, {}, buffers);  // so that all of them have been written
    for (std::size_t i = 1; i < count; ++i) {
      sketch.operation(static_cast<BlockStream>(random.below(kBlockStreams)), {any()}, {any()});
    }
    finish_block(sketch.block);
    const auto& pass = sketch.block.pass(Pass::kForward).operations;
    const std::vector<std::int32_t> ends = uses_end(pass);
    for (int times = 0; times < 5; ++times) {
      std::array<std::int64_t, kBlockStreams> free{};
      std::vector<std::int64_t> start, end;
      for (const Operation& operation : pass) {
        std::int64_t& stream = free[static_cast<std::size_t>(operation.stream)];
        for (const std::int32_t before : operation.after) {
          if (before >= 0) stream = std::max(stream, end[static_cast<std::size_t>(before)]);
        }
        start.push_back(stream);
        end.push_back(stream += random.below(9));
      }
      for (std::size_t i = 0; i < count; ++i) {
        const auto freed = static_cast<std::size_t>(ends[i]);
        if (freed + 1 == count) continue;  // behind all streams
        ASSERT_EQ(pass[freed].stream, kCompute);
        ASSERT_LE(end[i], freed == i ? end[i] : start[freed]) << i << " of round " << round;
        if (freed > i) ++early;
      }
    }
  }
  EXPECT_GT(early, 100);
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
