// SPDX-License-Identifier: Apache-2.0
#include "report/run_columns.h"

#include <fmt/format.h>

#include "report/number_text.h"

namespace stepcast {
namespace {

const std::string kNoPrice = "no price";
const std::string kNever = "never ends";

}  // namespace

std::vector<Column> run_columns(bool length) {
  if (!length) return {{"goodput"}, {"$/M tokens"}};
  return {{"run"}, {"goodput"}, {"cost"}, {"$/M tokens"}};
}

std::vector<std::string> run_cells(const RunOutlook& run, bool length) {
  const RunForecast& forecast = run.forecast;
  const bool priced = run.terms.dollars_per_gpu_hour.has_value();
  std::vector<std::string> out;
  if (length) {
    out.push_back(forecast.length ? duration_text(Seconds(forecast.length->wall_s.value)) : kNever);
  }
  out.push_back(percent_text(forecast.goodput.value));
  if (length) {
    const bool dollars = forecast.length && forecast.length->dollars;
    out.push_back(dollars ? dollars_text(forecast.length->dollars->value)
                          : (priced ? kNever : kNoPrice));
  }
  out.push_back(forecast.dollars_per_million_tokens
                    ? number_text(*forecast.dollars_per_million_tokens, 3)
                    : (priced ? kNever : kNoPrice));
  return out;
}

std::vector<Column> run_csv_columns() {
  return {{"goodput"},        {"wall_time_s"},  {"cost_usd"}, {"usd_per_million_tokens"},
          {"meets_deadline"}, {"within_budget"}};
}

std::vector<std::string> run_csv_cells(const RunOutlook& run) {
  const RunForecast& forecast = run.forecast;
  const auto number = [](std::optional<double> value) { return value ? exact_text(*value) : ""; };
  const auto truth = [](std::optional<bool> value) {
    return value ? (*value ? "true" : "false") : "";
  };
  std::optional<double> wall, dollars;
  std::optional<bool> deadline, budget;
  if (forecast.length) {
    wall = forecast.length->wall_s.value;
    if (forecast.length->dollars) dollars = forecast.length->dollars->value;
    deadline = forecast.length->meets_deadline;
    budget = forecast.length->within_budget;
  }
  return {exact_text(forecast.goodput.value),          number(wall),    number(dollars),
          number(forecast.dollars_per_million_tokens), truth(deadline), truth(budget)};
}

std::string price_text(const RunTerms& terms) {
  if (!terms.dollars_per_gpu_hour) {
    return "no price is listed, so no money: --price 2.5 gives one, --prices FILE several";
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
        duration_text(*run.terms.deadline), percent_text(*length.deadline_chance, 0)));
  }
  if (length.within_budget) {
    out.push_back(
        fmt::format("{} the budget of {} (chance {})", *length.within_budget ? "meets" : "misses",
                    dollars_text(*run.terms.budget), percent_text(*length.budget_chance, 0)));
  }
  return out;
}

}  // namespace stepcast
