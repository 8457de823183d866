// SPDX-License-Identifier: Apache-2.0
#include "logs/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/limits.h"
#include "logs/bare_line.h"
#include "logs/log_number.h"
#include "logs/printed_settings.h"

namespace stepcast {
namespace {

// A rank that prints beside others is at most so many lines behind them.
constexpr std::size_t kMostLinesBehind = 2;

constexpr LogQuantity kRates[] = {LogQuantity::kSeconds, LogQuantity::kStepsPerSecond,
                                  LogQuantity::kSamplesPerSecond, LogQuantity::kTokensPerSecond,
                                  LogQuantity::kTokensPerSecondPerGpu};

std::optional<double> value_in(const LogValues& values, LogQuantity quantity) {
  return values[static_cast<std::size_t>(quantity)];
}

std::int64_t count_in(const LogValues& values, LogQuantity quantity) {
  constexpr double kMost = 1e15;
  const double value = value_in(values, quantity).value_or(0);
  return value > 0 && value < kMost ? std::llround(value) : 0;
}

std::optional<LogQuantity> rate_of(const LogValues& values) {
  for (const LogQuantity rate : kRates) {
    if (value_in(values, rate)) return rate;
  }
  return std::nullopt;
}

struct SettingWords {
  LogQuantity quantity;
  const char* words;
};
constexpr SettingWords kSettingWords[] = {{LogQuantity::kGpus, "a world size of"},
                                          {LogQuantity::kGlobalBatch, "a global batch of"},
                                          {LogQuantity::kMicroBatch, "a micro-batch of"},
                                          {LogQuantity::kSequence, "a sequence of"},
                                          {LogQuantity::kTokensPerStep, "tokens in a step:"}};

}  // namespace

LogValues values_of(const LogForm& form, std::string_view line) {
  LogValues out;
  for (const LogField& field : form.fields) {
    auto& value = out[static_cast<std::size_t>(field.quantity)];
    if (value) continue;
    value = field.is_in_front ? number_before(line, field.label) : number_behind(line, field.label);
    if (value) *value *= field.scale;
  }
  return out;
}

LogReader::LogReader(std::string file) {
  log_.file = std::move(file);
  for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].source = static_cast<LogSource>(i);
}

void LogReader::take(const FileLine& line) {
  ++log_.lines;
  if (table_ || (!has_begun_ && LogTable::is_header(line.text))) {
    if (!table_)
      table_.emplace(line.text);
    else if (line.is_ended)
      table_->take(line.text, of(LogSource::kTable), log_);
    has_begun_ = true;
    return;
  }
  has_begun_ = has_begun_ || line.text.find_first_not_of(" \t") != std::string_view::npos;
  if (line.is_too_long) {
    ++log_.too_long;
    return;
  }
  ends_in_a_line_ = line.is_ended || line.text.empty();
  if (line.text.empty()) return;
  const BareLine bare = bare_line(line.text);
  if (take_block(bare.text)) return;
  // A line that was cut may end in the middle of a number.
  if (line.is_ended) take_whole(bare.text, bare.rank);
}

bool LogReader::take_block(std::string_view line) {
  if (block_ == nullptr) {
    for (const LogBlock& block : log_blocks()) {
      if (line.find(block.begins) != std::string_view::npos) begin_block(block, line);
    }
    return block_ != nullptr;
  }
  if (block_->ends != nullptr && line.find(block_->ends) != std::string_view::npos) {
    end_block();
    return true;
  }
  if (printed_.text.size() + line.size() > static_cast<std::size_t>(kMostScriptBytes)) {
    log_.notes.push_back(fmt::format("the settings of line {} never end", printed_.line));
    block_ = nullptr;
    return false;
  }
  printed_.text += fmt::format("{}\n", line);
  if (block_->ends == nullptr) {
    depth_ += depth_of_braces(line);
    if (depth_ <= 0) end_block();
  }
  return true;
}

void LogReader::begin_block(const LogBlock& block, std::string_view line) {
  block_ = &block;
  printed_ = {block.format, "", log_.lines};
  if (block.ends != nullptr) return;
  const std::string_view first =
      line.substr(line.find(block.begins)).substr(std::string_view(block.begins).size() - 1);
  printed_.text = fmt::format("{}\n", first);
  depth_ = depth_of_braces(first);
  if (depth_ <= 0) end_block();
}

void LogReader::end_block() {
  block_ = nullptr;
  if (!log_.printed) {
    log_.printed = printed_;
    return;
  }
  // A restart prints its settings again, and several ranks may print them.
  const std::string differs = first_difference(log_.printed->text, printed_.text);
  if (differs.empty() || log_.printed->format != printed_.format) return;
  errors_.push_back({ErrorCode::kIllegal,
                     fmt::format("holds two runs: the settings of lines {} and {} differ in {}",
                                 log_.printed->line, printed_.line, differs),
                     log_.file, "", "a file for each run"});
}

void LogReader::take_whole(std::string_view line, std::optional<std::int64_t> rank) {
  for (const LogForm& form : log_forms()) {
    if (!is_of(form, line)) continue;
    take_form(form, line, rank);
    return;
  }
}

void LogReader::take_form(const LogForm& form, std::string_view line,
                          std::optional<std::int64_t> rank) {
  Steps& steps = of(form.source);
  const LogValues values = values_of(form, line);
  switch (form.kind) {
    case LogLineKind::kTellsStep:
      add_step(steps, values, rank);
      return;
    case LogLineKind::kHeading:
      end_heading(steps);
      steps.heading = values;
      steps.has_heading = true;
      return;
    case LogLineKind::kUnder:
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] && !steps.heading[i]) steps.heading[i] = values[i];
      }
      return;
    case LogLineKind::kMemory:
      // States of the optimizer come with the first step.
      if (count_in(values, LogQuantity::kAfterSteps) >= 2) add_memory(values);
      return;
    case LogLineKind::kSettings:
      add_settings(form, values);
      return;
    case LogLineKind::kBlockBegins:
      steps.block_began_s = value_in(values, LogQuantity::kClock);
      steps.block_first_sample = value_in(values, LogQuantity::kSamples);
      return;
    case LogLineKind::kBlockEnds:
      end_training_block(steps, values);
      return;
    case LogLineKind::kStarts:
      start(form.source);
      return;
    case LogLineKind::kDisturbs:
      // Whoever prints it, the next step of every tool is slow.
      for (Steps& other : steps_) other.is_disturbed = true;
      return;
  }
}

void LogReader::start(LogSource source) {
  for (Steps& steps : steps_) {
    const bool concerned =
        steps.source == source || tool_of(source).runs_inside || tool_of(steps.source).runs_inside;
    const bool has_some = !steps.steps.empty() && steps.steps.back().segment == steps.segment;
    if (concerned && has_some) ++steps.segment;
  }
}

// A step that was already said: by another rank, when the steps go on from there; by a run that
// went back to a checkpoint, when it is further back than a rank can be.
bool LogReader::is_said_again(Steps& steps, std::int64_t step, std::optional<std::int64_t> rank) {
  if (steps.steps.empty()) {
    steps.rank = rank;
    return false;
  }
  const bool is_other_rank = rank && steps.rank && *rank != *steps.rank;
  const auto& known = steps.steps;
  if (!is_other_rank && step > known.back().step) return false;
  const std::size_t near = std::min(kMostLinesBehind, known.size());
  const bool is_near = step >= known[known.size() - near].step && step <= known.back().step &&
                       known.back().segment == steps.segment;
  if (is_other_rank || is_near) {
    ++steps.of_other_ranks;
    return true;
  }
  if (known.back().segment == steps.segment) ++steps.segment;
  return false;
}

void LogReader::add_step(Steps& steps, const LogValues& values, std::optional<std::int64_t> rank) {
  const auto unit = rate_of(values);
  if (!unit) {
    ++steps.unreadable;
    return;
  }
  if (steps.steps.empty()) steps.unit = *unit;
  const std::int64_t total = count_in(values, LogQuantity::kTotalSteps);
  if (steps.source == LogSource::kTrainerBar && steps.total > 0 && total != steps.total) {
    steps.is_disturbed = true;  // the bar of an evaluation
    return;
  }
  const auto stated = value_in(values, LogQuantity::kStep);
  auto samples = value_in(values, LogQuantity::kSamples);
  const auto batch = log_.settings.find(LogQuantity::kGlobalBatch);
  if (samples && batch != log_.settings.end() && batch->second > 0) *samples /= batch->second;
  const std::int64_t next = steps.steps.empty() ? 1 : steps.steps.back().step + 1;
  constexpr double kMostSteps = 1e15;
  const double at = stated ? *stated : samples.value_or(static_cast<double>(next));
  const bool has_step = at >= 0 && at < kMostSteps;
  const double rate = value_in(values, steps.unit).value_or(0);
  constexpr double kLeast = 1e-9, kMost = 1e12;
  if (!has_step || !(rate > kLeast && rate < kMost)) {
    ++steps.unreadable;
    return;
  }
  if (is_said_again(steps, std::llround(at), rank)) return;
  if (steps.steps.size() >= kMostLoggedSteps) {
    if (errors_.empty()) {
      errors_.push_back({ErrorCode::kBadValue,
                         fmt::format("holds more than {} steps", kMostLoggedSteps), log_.file, "",
                         "a part of it: head -n 100000"});
    }
    return;
  }
  const auto loss = value_in(values, LogQuantity::kLoss);
  const bool is_number = !loss || std::isfinite(*loss);
  if (!is_number || count_in(values, LogQuantity::kNotNumbers) > 0) ++steps.not_numbers;
  steps.total = std::max(steps.total, total);
  steps.steps.push_back({std::llround(at), rate, count_in(values, LogQuantity::kGlobalBatch),
                         steps.segment, steps.is_disturbed,
                         count_in(values, LogQuantity::kSkipped) > 0});
  steps.is_disturbed = false;
  add_memory(values);
}

void LogReader::end_heading(Steps& steps) {
  if (!steps.has_heading) return;
  steps.has_heading = false;
  // Windows of a rate are not full in the first steps.
  if (rate_of(steps.heading)) add_step(steps, steps.heading, std::nullopt);
  steps.heading = {};
}

void LogReader::end_training_block(Steps& steps, const LogValues& values) {
  const auto began = steps.block_began_s, first = steps.block_first_sample;
  const auto ended = value_in(values, LogQuantity::kClock);
  const auto last = value_in(values, LogQuantity::kSamples);
  steps.block_began_s.reset();
  if (!began || !ended || !last) return;
  LogValues block;
  block[static_cast<std::size_t>(LogQuantity::kSamples)] = *last;
  const double samples = *last - first.value_or(0);
  block[static_cast<std::size_t>(LogQuantity::kSamplesPerSecond)] = samples / (*ended - *began);
  add_step(steps, block, std::nullopt);
}

void LogReader::add_settings(const LogForm& form, const LogValues& values) {
  for (const LogField& field : form.fields) {
    const auto value = value_in(values, field.quantity);
    if (!value || !(*value >= 1) || *value > 1e12) continue;
    const auto [known, is_new] = log_.settings.emplace(field.quantity, *value);
    if (is_new || known->second == *value) continue;
    const auto words = std::ranges::find(kSettingWords, field.quantity, &SettingWords::quantity);
    if (words == std::end(kSettingWords) || !errors_.empty()) continue;
    errors_.push_back({ErrorCode::kIllegal,
                       fmt::format("holds two runs: {} {}, and in line {} {}", words->words,
                                   known->second, log_.lines, *value),
                       log_.file, "", "a file for each run"});
  }
}

void LogReader::add_memory(const LogValues& values) {
  constexpr double kMost = 1e15;
  const auto keep = [&](LogQuantity quantity, std::optional<double>& most) {
    const auto value = value_in(values, quantity);
    if (value && *value > 0 && *value < kMost) most = std::max(most.value_or(0), *value);
  };
  keep(LogQuantity::kAllocated, log_.most_allocated_bytes);
  keep(LogQuantity::kReserved, log_.most_reserved_bytes);
}

// The first tool of the table that printed steps. Two that do not run inside each other are two
// runs.
const LogReader::Steps* LogReader::chosen(Errors& errors) const {
  const Steps* out = nullptr;
  for (const Steps& steps : steps_) {
    if (steps.steps.empty()) continue;
    if (out == nullptr ||
        (tool_of(out->source).runs_inside && !tool_of(steps.source).runs_inside)) {
      out = &steps;
    } else if (!tool_of(steps.source).runs_inside) {
      errors.push_back({ErrorCode::kIllegal,
                        fmt::format("holds steps of {} and of {}", tool_of(out->source).name,
                                    tool_of(steps.source).name),
                        log_.file, "", "a file for each run"});
    }
  }
  return out;
}

Result<TrainingLog> LogReader::finish() {
  for (Steps& steps : steps_) end_heading(steps);
  if (table_ && table_->runs() > 1) {
    errors_.push_back({ErrorCode::kIllegal,
                       fmt::format("has the step time of {} runs", table_->runs()), log_.file, "",
                       "a file for each run"});
  }
  if (block_ != nullptr) {
    log_.notes.push_back(fmt::format("the settings of line {} are cut", printed_.line));
  }
  if (!ends_in_a_line_) log_.notes.emplace_back("its last line is cut, and left out");
  if (log_.too_long > 0) {
    log_.notes.push_back(fmt::format("{} line{} longer than {} KiB, left out", log_.too_long,
                                     log_.too_long == 1 ? " is" : "s are", kLongestLogLine >> 10));
  }
  const Steps* steps = chosen(errors_);
  if (!errors_.empty()) return failure(errors_);
  if (steps != nullptr) log_.steps = *steps;
  return std::move(log_);
}

}  // namespace stepcast
