// SPDX-License-Identifier: Apache-2.0
// One rank of a real run wrote this down (docs/formats/validation.md, "Rank files").
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json_fwd.h"
#include "core/processor_use.h"
#include "core/quantity.h"
#include "core/result.h"
#include "layout/rank_grid.h"
#include "operation/memory_parts.h"
#include "operation/phase.h"
#include "operation/signature.h"

namespace stepcast {

struct Program;
struct Rows;  // core/rows.h

inline constexpr double kAnyNumber = std::numeric_limits<double>::max();

// Times are in seconds of a clock that all ranks of the machine share.
struct MeasuredSpan {
  static constexpr const char* kAccepts = "[start_s, end_s]";
  double start = 0, end = 0;
};
bool read_json(const JsonValue& value, MeasuredSpan& out);  // [start_s, end_s]
Json written_json(const MeasuredSpan& span);

struct MeasuredStep {
  double begin = 0, end = 0;
  double loss_sum = 0;
  std::vector<MeasuredSpan> spans;  // by instruction of the rank's role

  static Rows fields();
};

// All calls of one operation.
struct OperationTime {
  std::string signature;
  std::string name;
  Phase phase = Phase::kForward;
  double calls_per_step = 0;
  Seconds median;  // of a call
  Seconds total;   // of all calls of a step
  // A collective has these; `exposed` is what computing waited for all of a step.
  AxisGroup group = {};
  Seconds exposed = {};
  bool is_collective() const { return is_signature_of_collective(signature); }

  static Rows fields();
};

// How far results are from those of the same steps computed by one rank alone.
struct Numerics {
  double loss_relative_error = 0;                  // the largest over steps
  std::optional<double> parameter_relative_error;  // where they can be compared

  static Rows fields();
};

struct RankFile {
  RankId rank;
  std::string host;
  std::int32_t stage = 0, tp = 0, dp = 0;
  std::vector<MeasuredStep> steps;
  std::vector<OperationTime> operations;
  ByteCount peak_memory = 0;
  MemoryParts memory{};                  // at the peak
  std::optional<ByteCount> pool_used;    // at most, of tensors in the GPU's memory
  std::optional<ByteCount> device_used;  // at most, of what the GPU had left before the run
  std::optional<Numerics> numerics;
  std::optional<ProcessorUse> processors;  // of its machine while it measured, where that tells

  static Rows fields();
};

Json rank_file_json(const RankFile& file);

// The files of all ranks of `grid` in `folder`, by rank; of one rank that ran alone, its own.
// Errors name the file and the key: what is missing, what does not fit the program that the ranks
// ran.
Result<std::vector<RankFile>> read_rank_files(const std::string& folder, const Program& program,
                                              const RankGrid& grid,
                                              std::optional<RankId> alone = std::nullopt);

}  // namespace stepcast
