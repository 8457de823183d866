// SPDX-License-Identifier: Apache-2.0
#include "validate/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "validate/run_figures.h"

namespace stepcast {
namespace {

std::optional<double> relative(double predicted, double measured) {
  if (measured == 0) return std::nullopt;
  return (predicted - measured) / measured;
}

std::vector<ComparedFigure> compare_figures(const Prediction& predicted,
                                            const MeasuredRun& measured) {
  std::vector<ComparedFigure> out;
  for (const RunFigure& figure : run_figures()) {
    const auto run = figure.measured(measured);
    if (!run) continue;
    const double forecast = figure.forecast.of(predicted);
    out.push_back({figure.key, forecast, *run,
                   figure.as_difference ? forecast - *run : relative(forecast, *run)});
  }
  return out;
}

std::vector<ComparedOperation> compare_operations(const std::vector<OperationPrice>& prices,
                                                  const std::vector<OperationTime>& measured,
                                                  bool alone) {
  std::vector<ComparedOperation> out;
  std::map<std::pair<std::string, Phase>, std::size_t> index;
  const auto row = [&](const std::string& name, Phase phase) -> ComparedOperation& {
    const auto [found, fresh] = index.try_emplace({name, phase}, out.size());
    if (fresh) {
      out.emplace_back();
      out.back().name = name;
      out.back().phase = phase;
    }
    return out[found->second];
  };
  for (const OperationPrice& price : prices) {
    if (alone && price.is_collective()) continue;
    ComparedOperation& one = row(price.name, price.phase);
    one.predicted += price.total;
    one.predicted_calls += price.calls_per_step;
  }
  for (const OperationTime& operation : measured) {
    if (alone && operation.is_collective()) continue;
    ComparedOperation& one = row(operation.name, operation.phase);
    one.measured += operation.total;
    one.measured_calls += operation.calls_per_step;
  }
  for (ComparedOperation& one : out) {
    one.error = relative(one.predicted.value(), one.measured.value());
  }
  const auto difference = [](const ComparedOperation& one) {
    return std::abs((one.predicted - one.measured).value());
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const ComparedOperation& a, const ComparedOperation& b) {
                     return difference(a) > difference(b);
                   });
  return out;
}

void judge_numerics(const std::optional<Numerics>& numerics, const NumericsLimits& limits,
                    std::vector<Finding>& broken) {
  if (!numerics || (limits.parameters && !numerics->parameter_relative_error)) {
    broken.push_back({"numerics", "no rank has compared its results with the reference"});
    return;
  }
  const auto judge = [&](const char* what, double error, double limit) {
    if (error <= limit) return;
    broken.push_back(
        {fmt::format("numerics: {}", what),
         fmt::format("differs by {:.3g} of the reference, above the limit {:g}", error, limit)});
  };
  judge("loss", numerics->loss_relative_error, limits.loss);
  if (limits.parameters) {
    judge("parameters", *numerics->parameter_relative_error, *limits.parameters);
  }
}

void judge_tolerance(const Validation& validation, const Tolerance& tolerance,
                     std::vector<Finding>& broken) {
  for (const RunFigure* one : limited_figures()) {
    if (tolerance.metric != one->limited) continue;
    const ComparedFigure* figure = validation.figure(one->key);
    if (figure == nullptr || !figure->error) {
      // A limit on what was not measured must not pass silently.
      broken.push_back({one->limited, fmt::format("{} was not measured", one->words)});
    } else if (std::abs(*figure->error) > tolerance.limit) {
      broken.push_back(
          {one->limited, fmt::format("{} is off by {:+.2f} %, beyond the limit of {:g} %",
                                     one->words, 100 * *figure->error, 100 * tolerance.limit)});
    }
  }
}

}  // namespace

const ComparedFigure* Validation::figure(std::string_view key) const {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const ComparedFigure& one) { return one.key == key; });
  return found == figures.end() ? nullptr : &*found;
}

Result<Tolerance> parse_validation_tolerance(std::string_view text) {
  auto out = parse_limit(text, limited_names(), "step_time=0.05");
  if (!out) return out;
  if (out->row != "all" || out->limit < 0) {
    return failure({ErrorCode::kBadValue, fmt::format("'{}' is not a limit of one run", text), "",
                    "--tolerance", "for example step_time=0.05"});
  }
  return out;
}

Validation compare(Prediction predicted, MeasuredRun measured,
                   const std::vector<OperationPrice>& prices, const ValidationLimits& limits) {
  Validation out;
  out.figures = compare_figures(predicted, measured);
  out.covered = measured.step_time.median >= predicted.step_time_low.value() &&
                measured.step_time.median <= predicted.step_time_high.value();
  if (!measured.operations.empty()) {
    out.operations = compare_operations(prices, measured.operations, measured.alone.has_value());
  }
  out.numerics = limits.numerics;
  if (limits.numerics) judge_numerics(measured.numerics, *limits.numerics, out.broken);
  for (const Tolerance& tolerance : limits.tolerances) {
    judge_tolerance(out, tolerance, out.broken);
  }
  out.predicted = std::move(predicted);
  out.measured = std::move(measured);
  return out;
}

}  // namespace stepcast
