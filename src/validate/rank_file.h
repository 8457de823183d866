// SPDX-License-Identifier: Apache-2.0
// One rank of a real run wrote this down (docs/formats/validation.md, "Rank files").
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/json_field.h"
#include "core/processor_use.h"
#include "core/quantity.h"
#include "core/result.h"
#include "layout/rank_grid.h"
#include "operation/memory_parts.h"
#include "operation/phase.h"
#include "operation/signature.h"

namespace stepcast {

struct Program;

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

  static auto fields() {
    using F = MeasuredStep;
    return std::tuple{
        json_field("begin_s", &F::begin)
            .required()
            .within(-kAnyNumber, kAnyNumber)
            .says("of the machine's monotonic clock, which its ranks share"),
        json_field("end_s", &F::end)
            .required()
            .within(-kAnyNumber, kAnyNumber)
            .says("of that clock"),
        json_field("loss_sum", &F::loss_sum)
            .within(-kAnyNumber, kAnyNumber)
            .says("over the rank's tokens"),
        json_field("spans", &F::spans).required().says("of each instruction of the rank's role")};
  }
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

  static auto fields() {
    using F = OperationTime;
    const auto collective = [](const F& operation) { return operation.is_collective(); };
    return std::tuple{
        json_field("signature", &F::signature).required().says("what the operation does"),
        json_field("name", &F::name).required().says("its name in the program, for people"),
        json_field("phase", &F::phase).required().says("the part of the step that calls it"),
        json_field("calls_per_step", &F::calls_per_step)
            .required()
            .says("how often a step calls it"),
        json_field("median_s", &F::median).required().says("of a call"),
        json_field("total_s_per_step", &F::total).required().says("of all calls of a step"),
        json_field("group", &F::group)
            .required()
            .where(collective)
            .says("of a collective: who takes part"),
        json_field("exposed_s_per_step", &F::exposed)
            .required()
            .where(collective)
            .says("of a collective: all of its time, or of one beside kernels how long they waited "
                  "for it")};
  }
};

// How far results are from those of the same steps computed by one rank alone.
struct Numerics {
  double loss_relative_error = 0;                  // the largest over steps
  std::optional<double> parameter_relative_error;  // where they can be compared

  static auto fields() {
    using F = Numerics;
    return std::tuple{json_field("loss_relative_error", &F::loss_relative_error)
                          .required()
                          .says("the largest over steps, against one rank alone"),
                      json_field("parameter_relative_error", &F::parameter_relative_error)
                          .says("where parameters can be compared")};
  }
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

  static auto fields() {
    using F = RankFile;
    return std::tuple{
        json_field("rank", &F::rank).required().says("its number"),
        json_field("host", &F::host).says("the name of its machine"),
        json_field("stage", &F::stage).required().says("its pipeline stage"),
        json_field("tp", &F::tp).required().says("its place in its tensor group"),
        json_field("dp", &F::dp).required().says("its replica"),
        json_field("steps", &F::steps).required(),
        json_field("operations", &F::operations),
        json_field("peak_memory_bytes", &F::peak_memory)
            .required()
            .says("the peak of living tensors"),
        json_field("memory_bytes", &F::memory)
            .named(enum_names<MemoryCategory>)
            .says("its parts at that moment"),
        json_field("processors", &F::processors)
            .says("of the machine while the rank measured its steps, from `/proc/stat`"),
        json_field("device_used_bytes", &F::device_used)
            .says("on GPUs: what the driver counts at the end of the run, less what it counted "
                  "before"),
        json_field("pool_used_bytes", &F::pool_used)
            .says("on GPUs: what tensors took at most of the pool that they come from"),
        json_field("numerics", &F::numerics).says("only in files of ranks that compared")};
  }
};

Json rank_file_json(const RankFile& file);

// The files of all ranks of `grid` in `folder`, by rank; of one rank that ran alone, its own.
// Errors name the file and the key: what is missing, what does not fit the program that the ranks
// ran.
Result<std::vector<RankFile>> read_rank_files(const std::string& folder, const Program& program,
                                              const RankGrid& grid,
                                              std::optional<RankId> alone = std::nullopt);

}  // namespace stepcast
