// SPDX-License-Identifier: Apache-2.0
#include "validate/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include "core/row_types.h"

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
    const auto measured = result->compared_step_time_s();
    if (!measured) continue;
    Group& group = groups[result->group];
    group.predicted.push_back(*result->predicted->step_time_s);
    group.measured.push_back(*measured);
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

// By judged figure.
constexpr ErrorStatistics SummaryRow::*kStatistics[] = {
    &SummaryRow::step_time, &SummaryRow::peak_memory, &SummaryRow::bubble_fraction,
    &SummaryRow::collective_time};

struct Metric {
  std::string name;
  std::function<std::optional<double>(const SummaryRow&)> value;
  bool larger_is_better = false;
};

std::optional<double> number_of(const Row& field, const ErrorStatistics& errors) {
  const void* value = field.of(&errors);
  const RowType* type = field.type;
  if (type->kind == RowKind::kOptional) {
    value = type->held(value);
    type = type->element;
  }
  if (errors.count == 0 || value == nullptr) return std::nullopt;
  return type->number(value);
}

// "step_time.mean_abs_error": the statistics of each figure in which forecasts are judged.
void add_error_metrics(std::vector<Metric>& out) {
  for (std::size_t i = 0; i < judged_figures().size(); ++i) {
    for (const Row& field : ErrorStatistics::fields()) {
      if (field.key == std::string_view("count")) continue;
      out.push_back({fmt::format("{}.{}", judged_figures()[i].name, field.key),
                     [statistics = kStatistics[i], field](const SummaryRow& row) {
                       return number_of(field, row.*statistics);
                     }});
    }
  }
}

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all = [] {
    std::vector<Metric> out;
    add_error_metrics(out);
    out.push_back({"algorithms", [](const SummaryRow& row) { return row.algorithms; }, true});
    out.push_back({"coverage", [](const SummaryRow& row) { return row.coverage; }, true});
    out.push_back({"kendall_tau", [](const SummaryRow& row) { return row.kendall_tau; }, true});
    out.push_back({"regret", [](const SummaryRow& row) { return row.regret; }});
    out.push_back({"failed", [](const SummaryRow& row) { return double(row.failed); }});
    out.push_back(
        {"not_supported", [](const SummaryRow& row) { return double(row.not_supported); }});
    return out;
  }();
  return all;
}

}  // namespace

SummaryRow summarise(const std::vector<const CaseResult*>& cases) {
  SummaryRow row;
  std::vector<ErrorSeries> errors(judged_figures().size());
  std::size_t covered = 0, timed = 0, named = 0, chosen = 0;
  for (const CaseResult* result : cases) {
    const bool failed = !result->failed.empty() && !result->not_supported;
    ++row.count;
    row.not_supported += result->not_supported ? 1 : 0;
    row.failed += failed ? 1 : 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const JudgedFigure& figure = judged_figures()[i];
      errors[i].add(result->errors.*figure.error, failed && figure.is_told_by(result->measured));
    }
    if (result->collective && !result->collective->named_algorithm.empty()) {
      ++named;
      chosen += result->collective->algorithm == result->collective->named_algorithm ? 1 : 0;
    }
    timed += result->covered ? 1 : 0;
    covered += result->covered.value_or(false) ? 1 : 0;
  }
  for (std::size_t i = 0; i < errors.size(); ++i) row.*kStatistics[i] = errors[i].statistics();
  if (timed > 0) row.coverage = static_cast<double>(covered) / static_cast<double>(timed);
  if (named > 0) row.algorithms = static_cast<double>(chosen) / static_cast<double>(named);
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
  const auto found = std::ranges::find(metrics(), name, &Metric::name);
  return found == metrics().end() ? std::nullopt : found->value(row);
}

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Metric& metric : metrics()) out.push_back(metric.name);
    return out;
  }();
  return names;
}

bool larger_is_better(std::string_view name) {
  const auto found = std::ranges::find(metrics(), name, &Metric::name);
  return found != metrics().end() && found->larger_is_better;
}

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

Rows ErrorStatistics::fields() {
  using F = ErrorStatistics;
  static constexpr Row all[] = {row<&F::count>("count"),
                                row<&F::mean_abs>("mean_abs_error"),
                                row<&F::median_abs>("median_abs_error"),
                                row<&F::p90_abs>("p90_abs_error"),
                                row<&F::max_abs>("max_abs_error"),
                                row<&F::bias>("bias")};
  return rows_of<F>(all);
}

Rows SummaryRow::fields() {
  using F = SummaryRow;
  static constexpr Row all[] = {
      row<&F::count>("count"),
      row<&F::failed>("failed"),
      row<&F::not_supported>("not_supported"),
      row<&F::step_time>("step_time").where<F>([](const F& row) {
        return row.step_time.count > 0;
      }),
      row<&F::peak_memory>("peak_memory").where<F>([](const F& row) {
        return row.peak_memory.count > 0;
      }),
      row<&F::bubble_fraction>("bubble_fraction").where<F>([](const F& row) {
        return row.bubble_fraction.count > 0;
      }),
      row<&F::collective_time>("collective_time").where<F>([](const F& row) {
        return row.collective_time.count > 0;
      }),
      row<&F::algorithms>("algorithms"),
      row<&F::coverage>("coverage"),
      row<&F::groups>("groups").where<F>([](const F& row) { return row.groups > 0; }),
      row<&F::kendall_tau>("kendall_tau"),
      row<&F::regret>("regret")};
  return rows_of<F>(all);
}

}  // namespace stepcast
