// SPDX-License-Identifier: Apache-2.0
#include "validate/rank_file.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "core/read_rows.h"
#include "core/row_types.h"
#include "core/write_rows.h"
#include "program/program.h"
#include "validate/documents.h"

namespace stepcast {
namespace {

// Holds what a rank says of itself against the layout and the program that it ran.
class RankFileCheck {
 public:
  RankFileCheck(JsonDocument& document, const Program& program, const RankGrid& grid)
      : document_(document), program_(program), grid_(grid) {}

  void check(const RankFile& file, RankId rank) {
    const GridPoint point = grid_.point(rank);
    expect("rank", file.rank.value, rank.value);
    expect("stage", file.stage, point.pp);
    expect("tp", file.tp, point.tp);
    expect("dp", file.dp, point.dp);
    const Role& role = program_.roles[static_cast<std::size_t>(point.pp)];
    const std::size_t instructions = role.instructions.size();
    for (std::size_t step = 0; step < file.steps.size(); ++step) {
      const std::size_t spans = file.steps[step].spans.size();
      if (spans == instructions) continue;
      fail(ErrorCode::kIllegal, fmt::format("steps[{}].spans", step),
           fmt::format("{} spans for {} instructions", spans, instructions),
           "the rank ran another program: stepcast-rank must be of the same build");
    }
    if (file.steps.size() < 2) {
      fail(ErrorCode::kBadValue, "steps", fmt::format("{} steps are too few", file.steps.size()),
           "a step time is the period between the ends of two");
    }
  }

 private:
  void expect(const char* key, std::int32_t found, std::int32_t value) {
    if (found == value) return;
    fail(ErrorCode::kIllegal, key, fmt::format("{} is not what the layout gives this rank", found),
         fmt::format("{} is", value));
  }
  void fail(ErrorCode code, std::string path, std::string message, std::string hint) {
    document_.add({code, std::move(message), "", std::move(path), std::move(hint)});
  }

  JsonDocument& document_;
  const Program& program_;
  const RankGrid& grid_;
};

std::string rank_file_name(RankId rank) { return fmt::format("rank-{}.json", rank.value); }

}  // namespace

RankFile read_rank_file(JsonDocument& document, RankId rank, const Program& program,
                        const RankGrid& grid) {
  RankFile out = read_object<RankFile>(document.root());
  if (document.ok()) RankFileCheck(document, program, grid).check(out, rank);
  return out;
}

bool read_json(const JsonValue& value, MeasuredSpan& out) {
  const std::vector<JsonValue> ends = value.items();
  const auto start = ends.size() == 2 ? ends[0].number() : std::nullopt;
  const auto end = ends.size() == 2 ? ends[1].number() : std::nullopt;
  const bool is_span = start && end && *end >= *start;
  if (is_span) {
    out = {*start, *end};
  } else {
    value.fail(ErrorCode::kBadValue, value.dump() + " is not a span", "[start_s, end_s]");
  }
  return is_span;
}
Json written_json(const MeasuredSpan& span) { return {span.start, span.end}; }

Json rank_file_json(const RankFile& file) { return json_of(file); }

Result<std::vector<RankFile>> read_rank_files(const std::string& folder, const Program& program,
                                              const RankGrid& grid, std::optional<RankId> alone) {
  std::vector<RankFile> out;
  Errors errors;
  const std::int32_t first_rank = alone ? alone->value : 0;
  const auto end = alone ? first_rank + 1 : static_cast<std::int32_t>(grid.size());
  for (std::int32_t rank = first_rank; rank < end; ++rank) {
    const auto document = JsonDocument::load(folder + "/" + rank_file_name(RankId(rank)));
    Errors found = document ? Errors{} : document.error();
    if (document) {
      out.push_back(read_rank_file(**document, RankId(rank), program, grid));
      const std::size_t steps = out.back().steps.size(), first = out.front().steps.size();
      if ((*document)->ok() && steps != first) {
        (*document)->add(
            {ErrorCode::kIllegal,
             fmt::format("{} steps, and rank {} has {}", steps, out.front().rank.value, first), "",
             "steps", ""});
      }
      found = (*document)->errors();
    }
    errors.insert(errors.end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
  }
  if (!errors.empty()) return failure(std::move(errors));
  return out;
}

Rows MeasuredStep::fields() {
  using F = MeasuredStep;
  static constexpr Row all[] = {
      row<&F::begin>("begin_s")
          .required()
          .within(-kAnyNumber, kAnyNumber)
          .says("of the machine's monotonic clock, which its ranks share"),
      row<&F::end>("end_s").required().within(-kAnyNumber, kAnyNumber).says("of that clock"),
      row<&F::loss_sum>("loss_sum").within(-kAnyNumber, kAnyNumber).says("over the rank's tokens"),
      row<&F::spans>("spans").required().says("of each instruction of the rank's role")};
  return rows_of<F>(all);
}

Rows OperationTime::fields() {
  using F = OperationTime;
  constexpr auto collective = [](const F& operation) { return operation.is_collective(); };
  static constexpr Row all[] = {
      row<&F::signature>("signature").required().says("what the operation does"),
      row<&F::name>("name").required().says("its name in the program, for people"),
      row<&F::phase>("phase").required().says("the part of the step that calls it"),
      row<&F::calls_per_step>("calls_per_step").required().says("how often a step calls it"),
      row<&F::median>("median_s").required().says("of a call"),
      row<&F::total>("total_s_per_step").required().says("of all calls of a step"),
      row<&F::group>("group")
          .required()
          .where<F>(collective)
          .says("of a collective: who takes part"),
      row<&F::exposed>("exposed_s_per_step")
          .required()
          .where<F>(collective)
          .says("of a collective: all of its time, or of one beside kernels how long they waited "
                "for it")};
  return rows_of<F>(all);
}

Rows Numerics::fields() {
  using F = Numerics;
  static constexpr Row all[] = {row<&F::loss_relative_error>("loss_relative_error")
                                    .required()
                                    .says("the largest over steps, against one rank alone"),
                                row<&F::parameter_relative_error>("parameter_relative_error")
                                    .says("where parameters can be compared")};
  return rows_of<F>(all);
}

Rows RankFile::fields() {
  using F = RankFile;
  static constexpr Row all[] = {
      row<&F::rank>("rank").required().says("its number"),
      row<&F::host>("host").says("the name of its machine"),
      row<&F::stage>("stage").required().says("its pipeline stage"),
      row<&F::tp>("tp").required().says("its place in its tensor group"),
      row<&F::dp>("dp").required().says("its replica"),
      row<&F::steps>("steps").required(),
      row<&F::operations>("operations"),
      row<&F::peak_memory>("peak_memory_bytes").required().says("the peak of living tensors"),
      row<&F::memory>("memory_bytes")
          .named(enum_names<MemoryCategory>)
          .says("its parts at that moment"),
      row<&F::processors>("processors")
          .says("of the machine while the rank measured its steps, from `/proc/stat`"),
      row<&F::device_used>("device_used_bytes")
          .says("on GPUs: what the driver counts at the end of the run, less what it counted "
                "before"),
      row<&F::pool_used>("pool_used_bytes")
          .says("on GPUs: what tensors took at most of the pool that they come from"),
      row<&F::numerics>("numerics").says("only in files of ranks that compared")};
  return rows_of<F>(all);
}

}  // namespace stepcast
