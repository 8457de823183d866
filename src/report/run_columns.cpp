// SPDX-License-Identifier: Apache-2.0
#include "report/run_columns.h"

#include <fmt/format.h>

#include <utility>

#include "economics/outlook_figures.h"
#include "report/number_text.h"

namespace stepcast {
namespace {

// How long the run takes comes first if the tokens are given.
std::vector<const OutlookFigure*> shown_figures(bool length) {
  std::vector<const OutlookFigure*> out;
  for (const OutlookFigure& figure : outlook_figures()) {
    if (figure.title != nullptr && (length || !figure.of_length)) out.push_back(&figure);
  }
  if (length) std::swap(out[0], out[1]);
  return out;
}

std::string text_of(const OutlookFigure& figure, const RunOutlook& run) {
  const auto value = figure.of(run);
  const bool priced = run.terms.dollars_per_gpu_hour.has_value();
  if (!value) return priced || figure.unit == OutlookUnit::kSeconds ? "never ends" : "no price";
  if (figure.unit == OutlookUnit::kSeconds) return duration_text(Seconds(*value));
  if (figure.unit == OutlookUnit::kFraction) return percent_text(*value);
  return figure.unit == OutlookUnit::kDollars ? dollars_text(*value) : number_text(*value, 3);
}

}  // namespace

std::vector<Column> run_columns(bool length) {
  std::vector<Column> out;
  for (const OutlookFigure* figure : shown_figures(length)) out.push_back({figure->title});
  return out;
}

std::vector<RunCell> run_cells(const RunOutlook& run, bool length) {
  std::vector<RunCell> out;
  for (const OutlookFigure* figure : shown_figures(length)) {
    out.push_back({text_of(*figure, run), figure->of(run)});
  }
  return out;
}

std::vector<Column> run_csv_columns() {
  std::vector<Column> out;
  for (const OutlookFigure& figure : outlook_figures()) out.push_back({figure.key});
  return out;
}

std::vector<std::string> run_csv_cells(const RunOutlook& run) {
  std::vector<std::string> out;
  for (const OutlookFigure& figure : outlook_figures()) {
    const auto value = figure.of(run);
    std::string& cell = out.emplace_back(value ? exact_text(*value) : "");
    if (value && figure.unit == OutlookUnit::kTruth) cell = *value > 0 ? "true" : "false";
  }
  return out;
}

std::string price_text(const RunTerms& terms) {
  if (!terms.dollars_per_gpu_hour) {
    return terms.no_price + ", so no money: --price 2.5 gives one, --prices FILE several";
  }
  std::string out = fmt::format("${:.2f} per GPU-hour", *terms.dollars_per_gpu_hour);
  for (const Assumption& assumption : terms.assumptions) {
    if (assumption.key == "run.price_per_gpu_hour") out += fmt::format(": {}", assumption.basis);
  }
  return out;
}

std::string billed_text(const RunTerms& terms) {
  const std::int64_t wanted = terms.gpus + terms.spare_gpus;
  if (terms.rented_gpus == wanted) return "";
  return fmt::format(
      "{} billed for {} that {}, because {} are let together; run.rented_together: 1 where single "
      "GPUs are let",
      counted_text(terms.rented_gpus, "GPU") + (terms.rented_gpus == 1 ? " is" : " are"), wanted,
      wanted == 1 ? "is used" : "are used", terms.rented_together);
}

std::vector<std::string> limit_texts(const RunOutlook& run) {
  std::vector<std::string> out;
  if (!run.forecast.length) return out;
  const RunLength& length = *run.forecast.length;
  if (length.meets_deadline) {
    out.push_back(fmt::format(
        "{} the deadline of {} (chance {})", *length.meets_deadline ? "meets" : "misses",
        duration_text(*run.terms.deadline), chance_text(*length.deadline_chance)));
  }
  if (length.within_budget) {
    out.push_back(fmt::format("{} the budget of {} (chance {})",
                              *length.within_budget ? "meets" : "misses",
                              dollars_text(*run.terms.budget), chance_text(*length.budget_chance)));
  }
  return out;
}

}  // namespace stepcast
