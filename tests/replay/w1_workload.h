// SPDX-License-Identifier: Apache-2.0
// A training step of a GPT-3 with 175 billion parameters in its simplest form: tensor, pipeline and
// data parallelism, 1F1B, rings everywhere, times given. The same operations become a workload of
// the engine, a graph, and a schedule in GOAL with every ring in single messages.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "graphs/execution_graph.h"
#include "sim/engine.h"

namespace stepcast::testing {

struct W1 {
  std::int32_t ranks = 1024;
  std::int32_t layers = 96;
  std::int32_t micro_batches = 24;

  static constexpr std::int32_t kTp = 8, kPp = 8, kDataBuckets = 12;
  static constexpr std::int64_t kActivations = 50'331'648, kBucket = 452'984'832;  // bytes
  // Links of a group of tp ranks, and of a rank to the others.
  static constexpr double kNear = 400e9, kFar = 50e9;  // bytes/s
  static constexpr double kNearLatency = 500e-9, kFarLatency = 2e-6;
  std::int32_t dp() const { return ranks / (kTp * kPp); }
};

// One operation of a rank. All but sends follow each other.
struct W1Operation {
  enum class Kind { kCompute, kTensorReduce, kDataReduce, kSend, kReceive } kind;
  double us = 0;
  std::int32_t peer = kNowhere;
  std::int32_t tag = 0;
};

std::vector<W1Operation> operations_of(const W1& spec, std::int32_t rank);
// Ranks of the rank's tensor-parallel or data-parallel group.
std::vector<std::int32_t> group_of(const W1& spec, std::int32_t rank, W1Operation::Kind collective);

// On the engine's interface, with collectives and messages in closed form.
Result<sim::Replay> replay_on_engine(const W1& spec);
ExecutionGraph graph_of(const W1& spec);
// In GOAL; collectives of `n` ranks are 2(n - 1) rounds of messages.
std::string goal_text(const W1& spec);

}  // namespace stepcast::testing
