// SPDX-License-Identifier: Apache-2.0
// The figures of a real run, by the definitions that a forecast's have (docs/terminology.md,
// "Work"; docs/formats/validation.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operation/memory_parts.h"
#include "predict/time_parts.h"
#include "validate/rank_file.h"

namespace stepcast {

struct Program;
struct Scenario;

// The median and two quantiles over the measured steps.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
};

struct MeasuredRank {
  RankId rank;
  std::string host;
  std::int32_t stage = 0;
  Seconds busy;                // median
  double bubble_fraction = 0;  // median
  ByteCount peak_memory = 0;
  MemoryParts memory{};
  std::optional<ByteCount> device_used = {};  // of the GPU (RankFile), as the next
  std::optional<ByteCount> pool_used = {};
};

struct MachineLoad {
  std::string host;
  ProcessorUse processors;  // while its ranks measured their steps
};

struct MeasuredRun {
  std::size_t periods = 0;  // between the ends of successive steps
  Spread step_time;         // seconds
  Spread bubble_fraction;
  std::optional<RankId> alone;  // the only rank that ran: no rates
  double tokens_per_s = 0;      // of the median step, as the following
  double tokens_per_s_per_gpu = 0;
  double model_tflops_per_gpu = 0;
  std::optional<double> mfu;  // where the data sheet has the peak
  RankId critical_rank;       // the last to end, in most steps
  TimeParts time;             // its mean step, scaled to the median step time
  ByteCount peak_memory = 0;  // of the fullest rank, as the following
  std::optional<ByteCount> device_used;
  std::vector<MeasuredRank> ranks;
  std::vector<OperationTime> operations;  // of the critical rank
  std::optional<Numerics> numerics;       // the worst of all ranks
  std::optional<MachineLoad> load;        // of the machine that others used most
};

// `files` as read_rank_files() gives them.
MeasuredRun measure(const Scenario& scenario, const Program& program, const RankGrid& grid,
                    const std::vector<RankFile>& files);

}  // namespace stepcast
