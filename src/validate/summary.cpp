// SPDX-License-Identifier: Apache-2.0
#include "validate/summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/statistics.h"

namespace stepcast {
namespace {

// The absolute error of a case that could not be predicted.
constexpr double kFailedError = 1.0;

class ErrorSeries {
 public:
  void add(std::optional<double> error, bool failed) {
    if (error) {
      signed_.push_back(*error);
      absolute_.push_back(std::abs(*error));
    } else if (failed) {
      absolute_.push_back(kFailedError);
    }
  }

  ErrorStatistics statistics() const {
    ErrorStatistics out;
    out.count = absolute_.size();
    if (absolute_.empty()) return out;
    out.mean_abs = mean(absolute_);
    out.median_abs = median(absolute_);
    out.p90_abs = quantile(absolute_, 0.9);
    out.max_abs = *std::max_element(absolute_.begin(), absolute_.end());
    if (!signed_.empty()) out.bias = mean(signed_);
    return out;
  }

 private:
  std::vector<double> signed_;
  std::vector<double> absolute_;
};

bool states_time(const Measured& measured) {
  return measured.step_time_s || measured.tokens_per_s_per_gpu || measured.model_tflops_per_gpu ||
         measured.mfu;
}

// Predicted and measured step times of cases that differ in their layout only.
struct Group {
  std::vector<double> predicted;
  std::vector<double> measured;
};

double regret_of(const Group& group) {
  const auto chosen =
      std::min_element(group.predicted.begin(), group.predicted.end()) - group.predicted.begin();
  const double best = *std::min_element(group.measured.begin(), group.measured.end());
  return group.measured[static_cast<std::size_t>(chosen)] / best - 1;
}

void rank_layouts(const std::vector<const CaseResult*>& cases, SummaryRow& row) {
  std::map<std::string, Group> groups;
  for (const CaseResult* result : cases) {
    if (!result->predicted || !result->measured_step_time_s) continue;
    Group& group = groups[result->group];
    group.predicted.push_back(result->predicted->step_time_s);
    group.measured.push_back(*result->measured_step_time_s);
  }
  double tau = 0, pairs = 0, regret = 0;
  for (const auto& [name, group] : groups) {
    const auto size = static_cast<double>(group.measured.size());
    if (size < 2) continue;
    ++row.groups;
    const double weight = size * (size - 1) / 2;
    tau += weight * kendall_tau(group.predicted, group.measured);
    pairs += weight;
    regret += regret_of(group);
  }
  if (row.groups == 0) return;
  row.kendall_tau = tau / pairs;
  row.regret = regret / static_cast<double>(row.groups);
}

struct Metric {
  const char* name;
  std::optional<double> (*value)(const SummaryRow&);
};

using ErrorFigure = double ErrorStatistics::*;

template <ErrorStatistics SummaryRow::*statistics, ErrorFigure figure>
std::optional<double> error_figure(const SummaryRow& row) {
  const ErrorStatistics& errors = row.*statistics;
  return errors.count > 0 ? std::optional(errors.*figure) : std::nullopt;
}

template <ErrorStatistics SummaryRow::*statistics>
std::optional<double> bias_figure(const SummaryRow& row) {
  return (row.*statistics).bias;
}

constexpr auto kTime = &SummaryRow::step_time;
constexpr auto kMemory = &SummaryRow::peak_memory;
constexpr auto kBubble = &SummaryRow::bubble_fraction;

constexpr Metric kMetrics[] = {
    {"step_time.mean_abs_error", error_figure<kTime, &ErrorStatistics::mean_abs>},
    {"step_time.median_abs_error", error_figure<kTime, &ErrorStatistics::median_abs>},
    {"step_time.p90_abs_error", error_figure<kTime, &ErrorStatistics::p90_abs>},
    {"step_time.max_abs_error", error_figure<kTime, &ErrorStatistics::max_abs>},
    {"step_time.bias", bias_figure<kTime>},
    {"peak_memory.mean_abs_error", error_figure<kMemory, &ErrorStatistics::mean_abs>},
    {"peak_memory.median_abs_error", error_figure<kMemory, &ErrorStatistics::median_abs>},
    {"peak_memory.p90_abs_error", error_figure<kMemory, &ErrorStatistics::p90_abs>},
    {"peak_memory.max_abs_error", error_figure<kMemory, &ErrorStatistics::max_abs>},
    {"peak_memory.bias", bias_figure<kMemory>},
    {"bubble_fraction.mean_abs_error", error_figure<kBubble, &ErrorStatistics::mean_abs>},
    {"bubble_fraction.median_abs_error", error_figure<kBubble, &ErrorStatistics::median_abs>},
    {"bubble_fraction.p90_abs_error", error_figure<kBubble, &ErrorStatistics::p90_abs>},
    {"bubble_fraction.max_abs_error", error_figure<kBubble, &ErrorStatistics::max_abs>},
    {"bubble_fraction.bias", bias_figure<kBubble>},
    {"coverage", [](const SummaryRow& row) { return row.coverage; }},
    {"kendall_tau", [](const SummaryRow& row) { return row.kendall_tau; }},
    {"regret", [](const SummaryRow& row) { return row.regret; }},
    {"failed",
     [](const SummaryRow& row) { return std::optional(static_cast<double>(row.failed)); }},
    {"not_supported",
     [](const SummaryRow& row) { return std::optional(static_cast<double>(row.not_supported)); }},
};

}  // namespace

SummaryRow summarise(const std::vector<const CaseResult*>& cases) {
  SummaryRow row;
  ErrorSeries time, memory, bubble;
  std::size_t covered = 0, timed = 0;
  for (const CaseResult* result : cases) {
    const bool failed = !result->failed.empty() && !result->not_supported;
    ++row.count;
    row.not_supported += result->not_supported ? 1 : 0;
    row.failed += failed ? 1 : 0;
    time.add(result->step_time_error, failed && states_time(result->measured));
    memory.add(result->peak_memory_error, failed && result->measured.peak_memory_bytes);
    bubble.add(result->bubble_difference, failed && result->measured.bubble_fraction);
    timed += result->covered ? 1 : 0;
    covered += result->covered.value_or(false) ? 1 : 0;
  }
  row.step_time = time.statistics();
  row.peak_memory = memory.statistics();
  row.bubble_fraction = bubble.statistics();
  if (timed > 0) row.coverage = static_cast<double>(covered) / static_cast<double>(timed);
  rank_layouts(cases, row);
  return row;
}

Summary summarise(const std::vector<CaseResult>& cases) {
  std::vector<const CaseResult*> all, nothing_assumed, fitted;
  std::map<std::string, std::vector<const CaseResult*>> suites, tags;
  for (const CaseResult& result : cases) {
    if (result.fitted) {
      fitted.push_back(&result);
      continue;
    }
    all.push_back(&result);
    if (result.nothing_assumed) nothing_assumed.push_back(&result);
    suites[result.suite].push_back(&result);
    for (const std::string& tag : result.tags) {
      auto& list = tags[tag];
      if (list.empty() || list.back() != &result) list.push_back(&result);
    }
  }
  Summary out;
  out.all = summarise(all);
  out.nothing_assumed = summarise(nothing_assumed);
  for (const auto& [name, list] : suites) out.suites.emplace(name, summarise(list));
  for (const auto& [name, list] : tags) out.tags.emplace(name, summarise(list));
  if (!fitted.empty()) out.fitted = summarise(fitted);
  return out;
}

std::optional<double> metric_of(const SummaryRow& row, std::string_view name) {
  for (const Metric& metric : kMetrics) {
    if (name == metric.name) return metric.value(row);
  }
  return std::nullopt;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> out;
  for (const Metric& metric : kMetrics) out.emplace_back(metric.name);
  return out;
}

bool larger_is_better(std::string_view name) { return name == "coverage" || name == "kendall_tau"; }

const SummaryRow* row_of(const Summary& summary, std::string_view name) {
  if (name == "all") return &summary.all;
  if (name == "nothing_assumed") return &summary.nothing_assumed;
  if (name == "fitted") return summary.fitted ? &*summary.fitted : nullptr;
  const std::string key(name);
  if (const auto suite = summary.suites.find(key); suite != summary.suites.end()) {
    return &suite->second;
  }
  const auto tag = summary.tags.find(key);
  return tag != summary.tags.end() ? &tag->second : nullptr;
}

std::vector<std::string> row_names(const Summary& summary) {
  std::vector<std::string> out{"all", "nothing_assumed"};
  if (summary.fitted) out.emplace_back("fitted");
  for (const auto& [name, row] : summary.suites) out.push_back(name);
  for (const auto& [name, row] : summary.tags) out.push_back(name);
  return out;
}

}  // namespace stepcast
