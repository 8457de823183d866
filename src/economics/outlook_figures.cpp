// SPDX-License-Identifier: Apache-2.0
#include "economics/outlook_figures.h"

#include <array>

namespace stepcast {
namespace {

using Run = const RunOutlook&;
using Value = std::optional<double>;

constexpr const char* kTokens = "--tokens says how long the run is";

Value truth_of(const RunOutlook& run, std::optional<bool> RunLength::*truth) {
  if (!run.forecast.length || !((*run.forecast.length).*truth)) return std::nullopt;
  return *((*run.forecast.length).*truth) ? 1 : 0;
}

constexpr std::array kFigures{
    OutlookFigure{"goodput", [](Run run) -> Value { return run.forecast.goodput.value; },
                  OutlookUnit::kFraction, "goodput", false, "goodput", kTokens},
    OutlookFigure{"wall_time_s",
                  [](Run run) {
                    const auto& length = run.forecast.length;
                    return length ? Value(length->wall_s.value) : Value();
                  },
                  OutlookUnit::kSeconds, "run", true, "days", kTokens},
    OutlookFigure{"cost_usd",
                  [](Run run) {
                    const auto& length = run.forecast.length;
                    return length && length->dollars ? Value(length->dollars->value) : Value();
                  },
                  OutlookUnit::kDollars, "cost", true, "cost",
                  "--tokens and a price: --price DOLLARS"},
    OutlookFigure{"usd_per_million_tokens",
                  [](Run run) { return run.forecast.dollars_per_million_tokens; },
                  OutlookUnit::kRate, "$/M tokens"},
    OutlookFigure{"meets_deadline",
                  [](Run run) { return truth_of(run, &RunLength::meets_deadline); },
                  OutlookUnit::kTruth, nullptr, false, "deadline", "--tokens and --deadline"},
    OutlookFigure{"within_budget", [](Run run) { return truth_of(run, &RunLength::within_budget); },
                  OutlookUnit::kTruth, nullptr, false, "budget", "--tokens, --budget and a price"},
};

}  // namespace

std::span<const OutlookFigure> outlook_figures() { return kFigures; }

}  // namespace stepcast
