// SPDX-License-Identifier: Apache-2.0
#include "report/recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/json_tree.h"
#include "predict/mechanisms.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kMost = 4;
constexpr double kLeastLikeness = 0.5;
constexpr std::size_t kMostTold = 3;
constexpr double kMissed = 0.05;  // of a step: less is as good as forecasts are
constexpr std::size_t kMostMissed = 2;

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

// "without overlapped tensor parallelism; with ZeRO 0": what the run had otherwise.
std::string otherwise(const std::vector<std::string>& mine, const std::vector<std::string>& its) {
  std::vector<std::string> words;
  for (const std::string& name : its) {
    if (!has(mine, name)) words.push_back("with " + name);
  }
  for (const std::string& name : mine) {
    if (!has(its, name)) words.push_back("without " + name);
  }
  const std::size_t more = words.size() > kMostTold ? words.size() - kMostTold : 0;
  words.resize(words.size() - more);
  std::string out = fmt::format("{}", fmt::join(words, "; "));
  return more > 0 ? out + fmt::format("; and {} more", more) : out;
}

std::vector<RecordedMechanism> missed_mechanisms(const std::vector<std::string>& mine,
                                                 const MeasuredErrors& errors) {
  std::vector<RecordedMechanism> out;
  for (const std::string& name : mine) {
    const auto seen = errors.of(name);
    if (!seen) continue;
    const double error = std::expm1(-seen->log_error);
    if (std::abs(error) > kMissed) out.push_back({name, seen->runs, error});
  }
  std::ranges::stable_sort(out, std::greater(),
                           [](const RecordedMechanism& one) { return std::abs(one.error); });
  if (out.size() > kMostMissed) out.resize(kMostMissed);
  return out;
}

}  // namespace

RecordedRuns recorded_runs(const Scenario& scenario, const MeasuredErrors& errors) {
  const std::vector<std::string> mine = mechanisms_of(scenario);
  RecordedRuns out;
  for (const NearRun& near : errors.nearest(mine, kMost)) {
    if (near.likeness < kLeastLikeness) break;
    out.nearest.push_back(
        {near.run, near.likeness, std::expm1(-near.log_error), otherwise(mine, near.mechanisms)});
  }
  out.mechanisms = missed_mechanisms(mine, errors);
  return out;
}

std::string recorded_runs_text(const RecordedRuns& runs) {
  std::vector<std::string> parts;
  if (!runs.nearest.empty()) {
    const auto [low, high] = std::ranges::minmax(runs.nearest, {}, &RecordedRun::error);
    const std::size_t count = runs.nearest.size();
    const std::string which = count == 1 ? "recorded run" : fmt::format("{} recorded runs", count);
    const std::string least = signed_percent_text(low.error),
                      most = signed_percent_text(high.error);
    parts.push_back(fmt::format("by {1} for the {0} most like it", which,
                                least == most ? least : range_text(least, most)));
  }
  for (const RecordedMechanism& one : runs.mechanisms) {
    parts.push_back(fmt::format("by {} in the mean of {} with {}", signed_percent_text(one.error),
                                one.runs == 1 ? "one run" : fmt::format("{} runs", one.runs),
                                one.name));
  }
  if (parts.empty()) return "";
  return fmt::format("forecasts were off {}", fmt::join(parts, "; "));
}

Written recorded_runs_table(const RecordedRuns& runs, Form form) {
  if (runs.empty()) return {};
  Written out = heading("Recorded runs like it", form);
  if (!runs.nearest.empty()) {
    TextTable table({{"recorded run", Align::kLeft},
                     {"similar"},
                     {"forecast was"},
                     {"how it differed", Align::kLeft}});
    for (const RecordedRun& run : runs.nearest) {
      table.add_row(
          {run.run, percent_text(run.likeness, 0), signed_percent_text(run.error), run.otherwise});
    }
    out += shown(table, form);
  }
  return out + bullet(recorded_runs_text(runs), form);
}

Json recorded_runs_object(const RecordedRuns& runs) {
  Json out{{"nearest", Json::array()}, {"mechanisms", Json::array()}};
  for (const RecordedRun& run : runs.nearest) {
    out["nearest"].push_back({{"run", run.run},
                              {"likeness", run.likeness},
                              {"error", run.error},
                              {"otherwise", run.otherwise}});
  }
  for (const RecordedMechanism& one : runs.mechanisms) {
    out["mechanisms"].push_back(
        {{"mechanism", one.name}, {"runs", one.runs}, {"error", one.error}});
  }
  return out;
}

}  // namespace stepcast
