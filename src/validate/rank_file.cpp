// SPDX-License-Identifier: Apache-2.0
#include "validate/rank_file.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "core/json.h"
#include "validate/documents.h"

namespace stepcast {
namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::max();

double required_number(ObjectReader& reader, const char* key, double min = 0) {
  return reader.required(key) ? reader.number(key, min, kAnyNumber).value_or(0) : 0;
}

const std::vector<std::string>& phase_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (int i = 0; i < kPhases; ++i) out.emplace_back(name_of(static_cast<Phase>(i)));
    return out;
  }();
  return names;
}

class RankFileReader {
 public:
  RankFileReader(ObjectReader& reader, const Program& program, const RankGrid& grid)
      : reader_(reader), program_(program), grid_(grid) {}

  RankFile read(RankId rank) {
    RankFile out;
    out.rank = rank;
    expect("rank", rank.value);
    const GridPoint point = grid_.point(rank);
    expect("stage", point.pp);
    expect("tp", point.tp);
    expect("dp", point.dp);
    out.host = reader_.text("host").value_or("");
    const Role& role = program_.roles[static_cast<std::size_t>(point.pp)];
    read_steps(role.instructions.size(), out);
    read_operations(out);
    read_memory(out);
    if (const auto processors = reader_.value("processors")) {
      ObjectReader reader(*processors);
      out.processors =
          ProcessorUse{required_number(reader, "span_s"), required_number(reader, "busy_s"),
                       required_number(reader, "stolen_s"), required_number(reader, "own_s")};
      reader.finish();
    }
    if (const auto numerics = reader_.value("numerics")) {
      ObjectReader reader(*numerics);
      out.numerics = Numerics{required_number(reader, "loss_relative_error"),
                              reader.number("parameter_relative_error", 0, kAnyNumber)};
      reader.finish();
    }
    reader_.finish();
    return out;
  }

 private:
  void expect(const char* key, std::int32_t value) {
    const std::int64_t found = reader_.required_integer(key, 0);
    if (reader_.has(key) && found != value) {
      reader_.fail(key, ErrorCode::kIllegal,
                   fmt::format("{} is not what the layout gives this rank", found),
                   fmt::format("{} is", value));
    }
  }

  void read_steps(std::size_t instructions, RankFile& out) {
    const auto steps = reader_.required("steps");
    if (!steps) return;
    for (const JsonValue& item : steps->items()) {
      ObjectReader reader(item);
      MeasuredStep& step = out.steps.emplace_back();
      step.begin = required_number(reader, "begin_s", -kAnyNumber);
      step.end = required_number(reader, "end_s", -kAnyNumber);
      step.loss_sum = reader.number("loss_sum", -kAnyNumber, kAnyNumber).value_or(0);
      if (const auto spans = reader.required("spans")) read_spans(*spans, instructions, step);
      reader.finish();
    }
    if (out.steps.size() < 2) {
      steps->fail(ErrorCode::kBadValue, fmt::format("{} steps are too few", out.steps.size()),
                  "a step time is the period between the ends of two");
    }
  }

  static void read_spans(const JsonValue& value, std::size_t instructions, MeasuredStep& step) {
    for (const JsonValue& pair : value.items()) {
      const std::vector<JsonValue> ends = pair.items();
      const auto start = ends.size() == 2 ? ends[0].number() : std::nullopt;
      const auto end = ends.size() == 2 ? ends[1].number() : std::nullopt;
      if (!start || !end || *end < *start) {
        pair.fail(ErrorCode::kBadValue, pair.dump() + " is not a span", "[start_s, end_s]");
        return;
      }
      step.spans.push_back({*start, *end});
    }
    if (step.spans.size() != instructions) {
      value.fail(ErrorCode::kIllegal,
                 fmt::format("{} spans for {} instructions", step.spans.size(), instructions),
                 "the rank ran another program: stepcast-rank must be of the same build");
    }
  }

  void read_operations(RankFile& out) {
    const auto operations = reader_.value("operations");
    if (!operations) return;
    for (const JsonValue& item : operations->items()) {
      ObjectReader reader(item);
      OperationTime& operation = out.operations.emplace_back();
      operation.signature = reader.required_text("signature");
      operation.name = reader.required_text("name");
      if (reader.required("phase")) {
        operation.phase = static_cast<Phase>(reader.choice("phase", phase_names()).value_or(0));
      }
      operation.calls_per_step = required_number(reader, "calls_per_step");
      operation.median = Seconds(required_number(reader, "median_s"));
      operation.total = Seconds(required_number(reader, "total_s_per_step"));
      if (operation.is_collective()) {
        operation.group = read_group(reader);
        operation.exposed = Seconds(required_number(reader, "exposed_s_per_step"));
      }
      reader.finish();
    }
  }

  static AxisGroup read_group(ObjectReader& reader) {
    const std::string text = reader.required_text("group");
    const auto group = group_named(text);
    if (!group && reader.has("group")) {
      reader.fail("group", ErrorCode::kBadValue, fmt::format("'{}' is not a group of ranks", text),
                  "axes of the layout: tp, dp-cp");
    }
    return group.value_or(AxisGroup{});
  }

  void read_memory(RankFile& out) {
    out.peak_memory = reader_.required_integer("peak_memory_bytes", 0);
    out.device_used = reader_.integer("device_used_bytes", 0);
    out.pool_used = reader_.integer("pool_used_bytes", 0);
    const auto memory = reader_.value("memory_bytes");
    if (!memory) return;
    ObjectReader reader(*memory);
    for (int i = 0; i < kMemoryCategories; ++i) {
      out.memory[static_cast<std::size_t>(i)] =
          reader.integer(name_of(static_cast<MemoryCategory>(i)), 0).value_or(0);
    }
    reader.finish();
  }

  ObjectReader& reader_;
  const Program& program_;
  const RankGrid& grid_;
};

std::string rank_file_name(RankId rank) { return fmt::format("rank-{}.json", rank.value); }

}  // namespace

RankFile read_rank_file(JsonDocument& document, RankId rank, const Program& program,
                        const RankGrid& grid) {
  ObjectReader reader(document.root());
  return RankFileReader(reader, program, grid).read(rank);
}

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

}  // namespace stepcast
