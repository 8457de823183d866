// SPDX-License-Identifier: Apache-2.0
#include "logs/trainer_state.h"

#include <cmath>

#include "core/json_tree.h"
#include "core/limits.h"
#include "core/parse_json.h"
#include "logs/log_number.h"

namespace stepcast {
namespace {

constexpr double kBytesOfGiB = 1073741824;

// A number, which newer releases write as text.
std::optional<double> number_at(const SortedJson& object, std::string_view key) {
  if (!object.is_object() || !object.contains(key)) return std::nullopt;
  const SortedJson& value = object[key];
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return leading_number(value.get_text());
  return std::nullopt;
}

bool is_rate(std::optional<double> value) {
  constexpr double kLeast = 1e-9, kMost = 1e12;
  return value && *value > kLeast && *value < kMost;
}

void add_rate(const SortedJson& entry, TrainingLog& log) {
  const auto rate = number_at(entry, "tokens/train_per_sec_per_gpu");
  const auto step = number_at(entry, "step");
  const auto keep = [](std::optional<double> value, std::optional<double>& most) {
    constexpr double kMostGiB = 1e6;
    if (value && *value > 0 && *value < kMostGiB)
      most = std::max(most.value_or(0), *value * kBytesOfGiB);
  };
  keep(number_at(entry, "memory/max_allocated (GiB)"), log.most_allocated_bytes);
  keep(number_at(entry, "memory/device_reserved (GiB)"), log.most_reserved_bytes);
  if (!rate || !step || !(*step >= 0 && *step < 1e15)) return;
  if (!is_rate(rate)) {
    ++log.steps.unreadable;
    return;
  }
  if (log.steps.steps.size() >= kMostLoggedSteps) return;
  log.steps.source = LogSource::kTrainerRate;
  log.steps.unit = LogQuantity::kTokensPerSecondPerGpu;
  LoggedStep& out = log.steps.steps.emplace_back();
  out.step = std::llround(*step);
  out.rate = *rate;
  const auto loss = number_at(entry, "loss");
  if (loss && !std::isfinite(*loss)) ++log.steps.not_numbers;
}

void add_summary(const SortedJson& entry, TrainingLog& log) {
  const auto rate = number_at(entry, "train_samples_per_second");
  if (!number_at(entry, "train_runtime") || !is_rate(rate) || !log.steps.steps.empty()) return;
  log.steps.source = LogSource::kTrainerSummary;
  log.steps.unit = LogQuantity::kSamplesPerSecond;
  LoggedStep& out = log.steps.steps.emplace_back();
  out.step = std::llround(std::min(number_at(entry, "step").value_or(1), 1e15));
  out.rate = *rate;
}

}  // namespace

bool read_trainer_state(const std::string& text, TrainingLog& log) {
  const auto document = parse_json(text, log.file);
  if (!document || !document->is_object()) return false;
  const bool has_history =
      document->contains("log_history") && (*document)["log_history"].is_array();
  if (!has_history && !document->contains("train_runtime")) return false;
  const auto micro = number_at(*document, "train_batch_size");
  if (micro && *micro >= 1 && *micro < 1e9) log.settings[LogQuantity::kMicroBatch] = *micro;
  if (has_history) {
    for (const SortedJson& entry : (*document)["log_history"]) add_rate(entry, log);
    for (const SortedJson& entry : (*document)["log_history"]) add_summary(entry, log);
  }
  add_summary(*document, log);
  return true;
}

}  // namespace stepcast
