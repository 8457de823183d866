// SPDX-License-Identifier: Apache-2.0
#include "report/recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "predict/mechanisms.h"
#include "report/number_text.h"
#include "report/text_table.h"

namespace stepcast {
namespace {

constexpr std::size_t kMost = 4;
constexpr double kLeastLikeness = 0.5;
constexpr std::size_t kMostTold = 3;

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

}  // namespace

std::vector<RecordedRun> recorded_runs(const Scenario& scenario, const MeasuredErrors& errors) {
  const std::vector<std::string> mine = mechanisms_of(scenario);
  std::vector<RecordedRun> out;
  for (const NearRun& near : errors.nearest(mine, kMost)) {
    if (near.likeness < kLeastLikeness) break;
    out.push_back({near.run->run, near.likeness, std::expm1(-near.run->log_error),
                   otherwise(mine, near.run->mechanisms)});
  }
  return out;
}

Written recorded_runs_table(const std::vector<RecordedRun>& runs, Form form) {
  if (runs.empty()) return {};
  TextTable table(
      {{"recorded run", Align::kLeft}, {"alike"}, {"forecast was"}, {"and ran", Align::kLeft}});
  for (const RecordedRun& run : runs) {
    table.add_row(
        {run.run, percent_text(run.likeness, 0), signed_percent_text(run.error), run.otherwise});
  }
  return heading("Recorded runs like it", form) + shown(table, form);
}

nlohmann::ordered_json recorded_runs_object(const std::vector<RecordedRun>& runs) {
  auto out = nlohmann::ordered_json::array();
  for (const RecordedRun& run : runs) {
    out.push_back({{"run", run.run},
                   {"likeness", run.likeness},
                   {"error", run.error},
                   {"otherwise", run.otherwise}});
  }
  return out;
}

}  // namespace stepcast
