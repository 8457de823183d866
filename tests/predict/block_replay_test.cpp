// SPDX-License-Identifier: Apache-2.0
#include "predict/block_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/seeded_random.h"

namespace stepcast {
namespace {

constexpr auto kCompute = BlockStream::kCompute;
constexpr auto kBeside = BlockStream::kCommunication;

// A pass whose prices a test writes down.
class Sketch {
 public:
  void kernel(double gpu, double host, std::array<std::int32_t, kBlockStreams> after = kNobody) {
    add(kCompute, gpu, host, after);
    costs_.back().compute = Seconds(gpu);
  }
  void beside(double gpu, double host, std::array<std::int32_t, kBlockStreams> after = kNobody) {
    add(kBeside, gpu, host, after);
    costs_.back().communication(AxisGroup::kTensor) = Seconds(gpu);
    operations_.back().work =
        Collective{CollectiveKind::kAllReduce, AxisGroup::kTensor, 1, DataType::kBf16};
  }
  std::vector<PricedOperation> priced() const {
    std::vector<PricedOperation> out;
    for (std::size_t i = 0; i < costs_.size(); ++i) out.push_back({&operations_[i], costs_[i]});
    return out;
  }
  static constexpr std::array<std::int32_t, kBlockStreams> kNobody{-1, -1, -1};

 private:
  void add(BlockStream stream, double gpu, double host,
           std::array<std::int32_t, kBlockStreams> after) {
    Operation operation{"operation", Phase::kForward, Gemm{}, {}, {}};
    operation.stream = stream;
    operation.after = after;
    operations_.push_back(operation);
    RunCost cost;
    cost.gpu = Seconds(gpu);
    cost.host = Seconds(host);
    cost.floor = cost.gpu + cost.host;
    cost.by_curve[0] = cost.gpu;
    costs_.push_back(cost);
  }
  std::vector<Operation> operations_;
  std::vector<RunCost> costs_;
};

// Kernels lose half of the processor to a collective of 6 beside them.
TEST(BlockReplay, WhatRunsBesideTakesItsPartOfTheProcessor) {
  Sketch sketch;
  sketch.beside(6, 0);
  sketch.kernel(2, 0);
  sketch.kernel(4, 0);
  std::vector<PricedOperation> operations = sketch.priced();
  operations[0].held = 0.5;
  settle(operations);
  EXPECT_EQ(operations[0].cost.gpu.value(), 6);
  EXPECT_EQ(operations[1].cost.gpu.value(), 4);  // all of it beside
  EXPECT_EQ(operations[2].cost.gpu.value(), 5);  // 1 of 4 in the 2 that are left, then 3 alone
  EXPECT_EQ(operations[2].cost.compute.value(), 5);
  EXPECT_EQ(replay_block(operations).gpu.value(), 9);
}

// A collective that takes 1 + 2 alone and waits 1 for its last member, on a link that a sibling
// sends over too. Kernels beside it lose half of the processor as long as it takes.
TEST(BlockReplay, SiblingsShareTheirLinks) {
  const auto links = std::make_shared<SiblingLinks>();
  links->capacities = {10, 5};
  const Way way{CollectiveKind::kAllReduce, Algorithm::kRing, 0, 0};
  std::vector<SiblingUses>& uses = links->uses[{AxisGroup::kTensor, way}];
  uses = {{{0, 1}}, {{0, 1}}};
  Sketch sketch;
  sketch.beside(3, 0);
  sketch.kernel(4, 0);
  std::vector<PricedOperation> operations = sketch.priced();
  operations[0].siblings = {links, &uses, Seconds(1), Bytes(20), BytesPerSecond(10), 1};
  operations[0].lag = Seconds(1);
  settle(operations);
  EXPECT_EQ(operations[0].cost.gpu.value(), 6);  // lag, latency, 20 bytes at half of the link
  EXPECT_EQ(operations[0].cost.communication(TrafficKind::kTensor).value(), 6);
  EXPECT_EQ(operations[1].cost.gpu.value(), 4);

  // A third on the same link; one of the three is bound to a quarter of it by a link of its own.
  uses = {{{0, 1}}, {{0, 1}}, {{0, 1}, {1, 2}}};
  operations = sketch.priced();
  operations[0].siblings = {links, &uses, Seconds(1), Bytes(15), BytesPerSecond(10), 1};
  operations[0].held = 0.5;
  settle(operations);
  EXPECT_EQ(operations[0].cost.gpu.value(), 5);    // 15 bytes at (10 - 2.5) / 2
  EXPECT_EQ(operations[1].cost.gpu.value(), 6.5);  // 2.5 of it beside, 1.5 behind
  EXPECT_EQ(replay_block(operations).gpu.value(), 6.5);
}

double parts(const RunCost& cost) {
  return (cost.compute + cost.communication(TrafficKind::kTensor)).value();
}

TEST(BlockReplay, OneStreamIsTheSumOfItsOperations) {
  Sketch sketch;
  sketch.kernel(3, 1);
  sketch.kernel(5, 10);
  const RunCost cost = replay_block(sketch.priced());
  EXPECT_EQ(cost.gpu.value(), 8);
  EXPECT_EQ(cost.host.value(), 11);
  EXPECT_EQ(cost.floor.value(), 16);  // the second kernel is issued at 11
}

// A product of 4 beside a collective of 6, and a kernel of 1 that needs both: 7, of which 2
// waiting.
TEST(BlockReplay, WhatRunsBesideCountsOnlyWhereSomebodyWaits) {
  Sketch sketch;
  sketch.beside(6, 0);
  sketch.kernel(4, 0);
  sketch.kernel(1, 0, {-1, 0, -1});
  const RunCost cost = replay_block(sketch.priced());
  EXPECT_EQ(cost.gpu.value(), 7);
  EXPECT_EQ(cost.compute.value(), 5);
  EXPECT_EQ(cost.communication(TrafficKind::kTensor).value(), 2);
  EXPECT_EQ(cost.by_curve[0].value(), 7);
}

TEST(BlockReplay, ThePassEndsWithItsLastStream) {
  Sketch sketch;
  sketch.kernel(4, 0);
  sketch.beside(6, 0, {0, -1, -1});
  sketch.kernel(1, 0);
  const RunCost cost = replay_block(sketch.priced());
  EXPECT_EQ(cost.gpu.value(), 10);
  EXPECT_EQ(cost.communication(TrafficKind::kTensor).value(), 5);
}

// The end of a pass whose streams are free at `free` and whose host starts at `host`, in the plain
// way: event by event.
double end_of(const std::vector<PricedOperation>& operations, double free, double host) {
  std::array<double, kBlockStreams> streams{free, free, free};
  std::vector<double> ends;
  double last = free;
  for (const PricedOperation& priced : operations) {
    double& stream = streams[static_cast<std::size_t>(priced.operation->stream)];
    host += priced.cost.host.value();
    double start = std::max(stream, host);
    for (const std::int32_t before : priced.operation->after) {
      if (before >= 0) start = std::max(start, ends[static_cast<std::size_t>(before)]);
    }
    stream = start + priced.cost.gpu.value();
    ends.push_back(stream);
    last = std::max(last, stream);
  }
  return last;
}

// max(s + gpu, h + floor), whatever runs beside what: (max, +) algebra of two sources.
TEST(BlockReplay, AMacroActivityEndsWhenItsReplayDoes) {
  SeededRandom random(14);
  for (int round = 0; round < 500; ++round) {
    Sketch sketch;
    const int count = 1 + static_cast<int>(random.below(12));
    for (int i = 0; i < count; ++i) {
      std::array<std::int32_t, kBlockStreams> after = Sketch::kNobody;
      if (i > 0 && random.below(2) == 0) {
        after[static_cast<std::size_t>(random.below(2))] =
            static_cast<std::int32_t>(random.below(i));
      }
      const double gpu = static_cast<double>(random.below(8));
      const double host = static_cast<double>(random.below(8));
      if (random.below(3) == 0) {
        sketch.beside(gpu, host, after);
      } else {
        sketch.kernel(gpu, host, after);
      }
    }
    const std::vector<PricedOperation> operations = sketch.priced();
    const RunCost cost = replay_block(operations);
    EXPECT_NEAR(parts(cost), cost.gpu.value(), 1e-9);
    EXPECT_NEAR(cost.by_curve[0].value(), cost.gpu.value(), 1e-9);
    for (const double host : {0.0, 7.0, 31.0}) {
      const double free = static_cast<double>(random.below(40));
      EXPECT_NEAR(end_of(operations, free, host),
                  std::max(free + cost.gpu.value(), host + cost.floor.value()), 1e-9);
    }
  }
}

}  // namespace
}  // namespace stepcast
